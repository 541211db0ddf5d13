#include "trace/attachment.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "trace/definitions.hpp"
#include "trace/entry.hpp"
#include "trace/segment.hpp"
#include "trace/writer.hpp"

namespace xpu::trace {

namespace internal {

constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr, 0, false};
constinit std::atomic<Segment*> g_segment{nullptr};
constinit std::atomic<std::uint64_t> g_lost_before_segment{0};
constinit std::uint32_t g_inherited_writers = 0;

}  // namespace internal

using base::Mutex;
using base::MutexLock;
using internal::Entry;
using internal::g_inherited_writers;
using internal::g_lost_before_segment;
using internal::g_segment;
using internal::t_state;

namespace {

constinit std::atomic<bool> g_gave_up{false};
constinit Mutex g_claim_mutex;
constinit const Attachment* g_attachment XPU_GUARDED_BY(g_claim_mutex) = nullptr;  // never freed: no static destructors
constinit bool g_recorder_started XPU_GUARDED_BY(g_claim_mutex) = false;
constinit Mutex g_writers_mutex;
constinit Writer* g_writers XPU_GUARDED_BY(g_writers_mutex) = nullptr;
constinit pthread_key_t g_writer_key = 0;
void give_up(const Error& error) noexcept {
  if (g_gave_up.exchange(true)) return;
  probe::unsubscribe();
  XPU_LOG_WARN("trace", "this process is not recorded: {}", error.message);
}

void hand_over_early_losses(Segment& segment) noexcept {
  segment.header().lost_before_any_chunk.fetch_add(g_lost_before_segment.exchange(0), std::memory_order_relaxed);
}

Result<Segment*> claim_segment() noexcept {
  const MutexLock lock(g_claim_mutex);
  if (Segment* segment = g_segment.load(std::memory_order_acquire)) return segment;
  if (g_attachment == nullptr) return Error{ErrorCode::failed_precondition, "nothing is attached"};
  if (g_attachment->start_recorder != nullptr && !g_recorder_started) {
    XPU_TRY(g_attachment->start_recorder(*g_attachment));
    g_recorder_started = true;
  }
  XPU_TRY_ASSIGN(Segment * segment, Segment::claim(g_attachment->live_path, g_attachment->max_live_bytes, g_attachment->claim_wait_ms));
  g_segment.store(segment, std::memory_order_release);
  hand_over_early_losses(*segment);
  return segment;
}

/// Opening files and waiting are cancellation points and set errno; the program's thread must notice neither.
class UnnoticedByThread {
 public:
  UnnoticedByThread() noexcept : errno_(errno) { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_); }
  ~UnnoticedByThread() {
    int ignored = 0;
    pthread_setcancelstate(cancel_state_, &ignored);
    errno = errno_;
  }
  UnnoticedByThread(const UnnoticedByThread&) = delete;
  UnnoticedByThread& operator=(const UnnoticedByThread&) = delete;

 private:
  const int errno_;
  int cancel_state_ = 0;
};

/// Threads hold pointers into this library until the process ends (thread-specific keys, fork handlers, the table), so it must not be
/// unloaded.
void pin_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&pin_this_library), &info) == 0 || info.dli_fname == nullptr) return;
  // The reference is kept on purpose. In a program that is linked statically to us there is nothing to pin and the call fails.
  dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

Segment* segment_of_process() noexcept {
  if (Segment* segment = g_segment.load(std::memory_order_acquire)) return segment;
  if (g_gave_up.load(std::memory_order_relaxed)) return nullptr;
  const UnnoticedByThread guard;
  try {
    Result<Segment*> claimed = claim_segment();
    if (claimed) return *claimed;
    give_up(claimed.error());
  } catch (const std::bad_alloc&) {
    give_up(Error{ErrorCode::out_of_host_memory, "there was no memory to begin with"});
  }
  return nullptr;
}

// ---- a thread's writer

void unlink(Writer* writer) XPU_REQUIRES(g_writers_mutex) {
  if (writer->previous != nullptr) writer->previous->next = writer->next;
  if (writer->next != nullptr) writer->next->previous = writer->previous;
  if (g_writers == writer) g_writers = writer->next;
}

void destroy_writer(void* pointer) {
  auto* writer = static_cast<Writer*>(pointer);
  {
    const MutexLock lock(g_writers_mutex);
    unlink(writer);
  }
  if (t_state.own == writer) t_state.own = t_state.idle = nullptr;  // a later destructor of this thread that publishes gets a new one
  delete writer;
}

probe::Id name_of_thread() noexcept {
  char name[64] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof name) != 0 || name[0] == '\0') return 0;
  t_state.naming = true;
  const probe::Id id = probe::intern(name);
  t_state.naming = false;
  return id;
}

bool write_process(Writer& writer) noexcept {
  const SegmentHeader& header = writer.segment().header();
  const std::vector<std::byte> record = encode_process(header.pid, header.start_ns);
  return !record.empty() && writer.append_records(record);
}

}  // namespace

Writer* internal::make_writer() noexcept {
  Segment* segment = segment_of_process();
  if (segment == nullptr || segment->is_off()) return nullptr;
  const std::uint32_t id = g_inherited_writers + segment->header().writer_count.fetch_add(1, std::memory_order_relaxed) + 1;
  auto* writer = new (std::nothrow) Writer(*segment, id, name_of_thread(), internal::write_definitions);
  if (writer == nullptr) {
    give_up(Error{ErrorCode::out_of_host_memory, "there was no memory for a thread's writer"});
    return nullptr;
  }
  {
    const MutexLock lock(g_writers_mutex);
    writer->next = g_writers;
    if (g_writers != nullptr) g_writers->previous = writer;
    g_writers = writer;
  }
  pthread_setspecific(g_writer_key, writer);
  t_state.own = writer;
  return writer;
}

void internal::write_definitions(Writer& writer) noexcept {
  struct Progress {
    Writer& writer;
    bool complete;
  } progress{writer, write_process(writer)};
  probe::for_each_text(
      [](probe::Id id, std::string_view text, void* user) {
        auto& state = *static_cast<Progress*>(user);
        if (state.complete) state.complete = state.writer.append_string(id, text);
      },
      &progress);
  if (progress.complete) progress.complete = writer.append_records(definitions().snapshot());
  if (progress.complete) {
    definitions().forget_ended();
  } else {
    writer.segment().definitions_missing.store(true, std::memory_order_release);
  }
}

namespace {

// ---- fork

void before_fork() XPU_NO_THREAD_SAFETY_ANALYSIS {
  internal::lock_captures_for_fork();
  internal::lock_callbacks_for_fork();
  g_claim_mutex.lock();
  internal::lock_kernel_filter_for_fork();
  definitions().lock_for_fork();
  g_writers_mutex.lock();
}

void after_fork() XPU_NO_THREAD_SAFETY_ANALYSIS {
  g_writers_mutex.unlock();
  definitions().unlock_after_fork();
  internal::unlock_kernel_filter_after_fork();
  g_claim_mutex.unlock();
  internal::unlock_callbacks_after_fork();
  internal::unlock_captures_after_fork();
}

/// Forgets the segment and all writers. Nobody else may be recording.
void forget_segment(bool chunks_are_ours) noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
  t_state = {nullptr, nullptr, 0, false};
  g_lost_before_segment.store(0);
  pthread_setspecific(g_writer_key, nullptr);
  while (Writer* writer = g_writers) {
    unlink(writer);
    if (!chunks_are_ours) writer->abandon_chunk();
    delete writer;
  }
  if (Segment* segment = g_segment.exchange(nullptr)) g_inherited_writers += segment->header().writer_count.load(std::memory_order_relaxed);
}

void after_fork_in_child() XPU_NO_THREAD_SAFETY_ANALYSIS {
  after_fork();
  // The parent goes on writing into its segment, which is mapped here too; nothing here may touch it.
  const bool was_in_memory = g_segment.load() != nullptr && g_segment.load()->is_in_memory();
  forget_segment(false);
  definitions().begin_child();
  // Whoever reads what happens here is in the parent.
  internal::forget_callbacks_after_fork();
  internal::forget_captures_after_fork();
  if (was_in_memory) {
    probe::unsubscribe();
    definitions().clear();
  } else if (g_attachment != nullptr) {
    internal::set_wanted(wanted_by(g_attachment->mode));
  }
}

bool prepare_process_once() {
  static const bool prepared = [] {
    if (pthread_key_create(&g_writer_key, destroy_writer) != 0) return false;
    definitions();
    return pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
  }();
  return prepared;
}

}  // namespace

std::uint32_t wanted_by(RecordMode mode) noexcept {
  constexpr std::uint32_t device_only = probe::kOperations | probe::kAnnotations;
  constexpr std::uint32_t standard = device_only | probe::kHostExitTimes | probe::kAllTicks | probe::kWaits | probe::kMemory;
  switch (mode) {
    case RecordMode::device_only: return device_only;
    case RecordMode::api: return standard | probe::kCalls;
    case RecordMode::standard: break;
  }
  return standard;
}

Result<> attach(const Attachment& attachment) {
  if (probe::subscriber() != nullptr) return Error{ErrorCode::failed_precondition, "this process is already recorded"};
  if (!prepare_process_once()) return Error{ErrorCode::unavailable, "no thread-specific key or fork handler is left"};
  if (!internal::set_kernel_expression(attachment.kernels.c_str())) {
    return Error{ErrorCode::invalid_argument, fmt::format("\"{}\" is not a POSIX extended regular expression", attachment.kernels)};
  }
  {
    const MutexLock lock(g_claim_mutex);
    delete std::exchange(g_attachment, new Attachment(attachment));
    g_recorder_started = false;
  }
  g_gave_up.store(false);
  g_lost_before_segment.store(0);
  internal::set_wanted(wanted_by(attachment.mode));
  // While subscribing, nothing may claim a segment: this runs in static initialisers, of programs that may never use a device.
  ++t_state.depth;
  const bool subscribed = probe::subscribe(&internal::table_in_use());
  --t_state.depth;
  if (!subscribed) return Error{ErrorCode::failed_precondition, "this process is already recorded"};
  pin_this_library();
  return {};
}

void close_segment() noexcept {
  Segment* segment = g_segment.load(std::memory_order_acquire);
  if (segment == nullptr) return;
  if (segment->definitions_missing.exchange(false)) {
    const Entry entry;
    if (entry.writer() != nullptr) internal::write_definitions(*entry.writer());
  }
  hand_over_early_losses(*segment);
  segment->close();
}

void detach() noexcept {
  close_segment();
  probe::unsubscribe();
  g_gave_up.store(true);  // who still holds the table claims nothing new
  forget_segment(true);
  definitions().clear();
  const MutexLock lock(g_claim_mutex);
  delete std::exchange(g_attachment, nullptr);
}

namespace {

Error somebody_else_listens() { return Error{ErrorCode::failed_precondition, "somebody else listens to what happens in this process"}; }

}  // namespace

Result<> can_capture() {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener != nullptr && !internal::is_own_table(listener)) return somebody_else_listens();
  return {};
}

std::uint32_t wanted_by_recording() noexcept {
  const MutexLock lock(g_claim_mutex);
  return g_attachment == nullptr ? 0 : wanted_by(g_attachment->mode);
}

Result<Segment*> segment_for_captures() {
  if (!prepare_process_once()) return Error{ErrorCode::unavailable, "no thread-specific key or fork handler is left"};
  {
    const MutexLock lock(g_claim_mutex);
    if (g_attachment == nullptr) {
      if (Segment* segment = g_segment.load(std::memory_order_acquire)) return segment;
      XPU_TRY_ASSIGN(Segment * segment, Segment::create_in_memory());
      g_gave_up.store(false);
      g_segment.store(segment, std::memory_order_release);
      pin_this_library();
      return segment;
    }
  }
  Segment* segment = segment_of_process();
  if (segment != nullptr && !segment->is_off()) return segment;
  return Error{ErrorCode::failed_precondition,
               "the recording to which this process is attached was switched off, and nothing else can begin"};
}

Result<> listen_for_captures(std::uint32_t wanted) noexcept {
  internal::set_wanted(wanted);
  // What is published meanwhile by this thread is for the list of definitions only.
  ++t_state.depth;
  bool listening = internal::is_own_table(probe::subscriber());
  if (listening) {
    probe::republish_all();
  } else {
    listening = probe::subscribe(&internal::table_in_use());
  }
  --t_state.depth;
  Segment* segment = g_segment.load(std::memory_order_acquire);
  if (segment != nullptr && segment->is_in_memory()) segment->definitions_missing.store(false, std::memory_order_release);
  if (!listening) return somebody_else_listens();
  return {};
}

void stop_listening() noexcept {
  if (wanted_by_recording() != 0) return;
  probe::unsubscribe();
  definitions().clear();
}

void switch_off(OffReason reason) noexcept {
  g_gave_up.store(true);
  probe::unsubscribe();
  if (Segment* segment = g_segment.load(std::memory_order_acquire)) segment->switch_off(reason);
}

}  // namespace xpu::trace
