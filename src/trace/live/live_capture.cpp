#include "xpu/trace/live_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <new>
#include <utility>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "trace/attachment.hpp"
#include "trace/definitions.hpp"
#include "trace/entry.hpp"
#include "trace/operation_filter.hpp"
#include "trace/recording/recorder_options.hpp"
#include "trace/segment.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::trace {

namespace {

using base::Mutex;
using base::MutexLock;

constexpr std::uint64_t kLeastCaptureBytes = std::uint64_t{1} << 20;
/// Memory that the next capture finds warm; what there is beyond it goes back to the system when nobody captures.
constexpr std::uint32_t kChunksToKeep = 32;

}  // namespace

struct LiveCapture::Impl {
  CaptureOptions options;
  WantedOperations wanted_operations;
  Segment* segment = nullptr;
  std::uint32_t fork_generation = 0;
  ProcessInfo process;
  Manifest manifest;
  bool is_paused = false;
  std::uint64_t paused_at_ns = 0;
  bool is_finished = false;
  std::vector<RecordBuffer> waiting;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t filtered_before = 0, lost_before = 0;
};

namespace {

/// How far a chunk has been handed out. Its losses are counted in place, so what was told of them is kept, too.
struct ChunkProgress {
  std::uint64_t handed_bytes = 0;
  std::uint64_t handed_filtered = 0;
  std::uint32_t pins = 0;  ///< Buffers that lie in it.
  std::vector<std::uint64_t> handed_losses;
};

/// All that captures share. Made with the first one and never destroyed.
struct Captures {
  std::vector<LiveCapture::Impl*> all;
  std::vector<ChunkProgress> chunks;
  std::uint64_t filtered = 0;  ///< Of all chunks, ever.
  /// Chunks that were in use when the captures that are under way began: buffers that somebody keeps, and what threads have begun.
  std::uint64_t in_use_before = 0;
};

/// Held while a capture begins or ends, which calls publishers, so it is not taken by a fork: in a child it is made anew.
constinit Mutex g_transition_mutex;
constinit Mutex g_captures_mutex;
constinit Captures* g_captures XPU_GUARDED_BY(g_captures_mutex) = nullptr;
constinit Segment* g_capture_segment XPU_GUARDED_BY(g_captures_mutex) = nullptr;
/// Raised in a forked child, which has the parent's objects and none of its captures.
constinit std::atomic<std::uint32_t> g_fork_generation{0};

std::uint32_t wanted_by(const CaptureOptions& options) {
  std::uint32_t wanted = probe::kOperations;
  if (options.host_exit_times) wanted |= probe::kHostExitTimes;
  if (options.all_ticks) wanted |= probe::kAllTicks;
  if (options.waits) wanted |= probe::kWaits;
  if (options.calls) wanted |= probe::kCalls;
  if (options.memory) wanted |= probe::kMemory;
  if (options.annotations) wanted |= probe::kAnnotations;
  return wanted;
}

std::vector<std::string> command_line() {
  std::vector<std::string> argv;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(file, argument, '\0');) argv.push_back(argument);
  return argv;
}

const LossRecord* losses_of(const ChunkHeader& chunk) {
  return reinterpret_cast<const LossRecord*>(reinterpret_cast<const std::byte*>(&chunk) + kChunkRecordsEnd);
}

/// Also what was counted in a chunk whose records had been handed out long before: its thread counts there until it finds another one.
bool is_handed_out(const ChunkHeader& full, const ChunkProgress& progress) {
  if (full.committed.load(std::memory_order_relaxed) != progress.handed_bytes) return false;
  if (full.filtered.load(std::memory_order_relaxed) != progress.handed_filtered) return false;
  const std::uint32_t count = std::min<std::uint32_t>(full.loss_count.load(std::memory_order_relaxed), kMaxLossSlots);
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    const std::uint64_t handed = slot < progress.handed_losses.size() ? progress.handed_losses[slot] : 0;
    if (losses_of(full)[slot].count != handed) return false;
  }
  return true;
}

void recycle_if_done(std::uint32_t index, const ChunkProgress& progress) XPU_REQUIRES(g_captures_mutex) {
  const ChunkHeader& chunk = g_capture_segment->chunk(index);
  if (progress.pins != 0 || chunk.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(ChunkState::full)) return;
  if (!is_handed_out(chunk, progress)) return;
  ChunkProgress& mutable_progress = g_captures->chunks[index];
  mutable_progress = ChunkProgress{};
  g_capture_segment->free_chunk(index);
}

void unpin(std::uint32_t index, std::uint32_t fork_generation) noexcept {
  if (fork_generation != g_fork_generation.load(std::memory_order_relaxed)) return;
  const MutexLock lock(g_captures_mutex);
  ChunkProgress& progress = g_captures->chunks[index];
  --progress.pins;
  recycle_if_done(index, progress);
}

/// Keeps a chunk from being written again for as long as a buffer in it lives.
class Pin {
 public:
  explicit Pin(std::uint32_t index) XPU_REQUIRES(g_captures_mutex)
      : index_(index), fork_generation_(g_fork_generation.load(std::memory_order_relaxed)) {
    ++g_captures->chunks[index].pins;
  }
  ~Pin() { unpin(index_, fork_generation_); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  const std::uint32_t index_, fork_generation_;
};

/// What a capture that is paused since then needs all the same: what began before, its end, and descriptions.
bool is_needed_while_paused(const RecordHeader& header, std::uint64_t paused_at_ns) {
  if (describes(header)) return true;
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::operation_submitted: return reinterpret_cast<const OperationSubmittedRecord&>(header).enter_ns < paused_at_ns;
    case RecordKind::operation_completed:
    // Of whatever operation: without it nobody looks at them.
    case RecordKind::copy_detail:
    case RecordKind::external_correlation: return true;
    case RecordKind::loss: return (header.flags & kFlagCompletionLost) != 0;
    default: return false;
  }
}

std::vector<std::byte> copy_needed_while_paused(std::span<const std::byte> records, std::uint64_t paused_at_ns) {
  std::vector<std::byte> kept;
  for_each_record(records, [&](const RecordHeader& header) {
    if (!is_needed_while_paused(header, paused_at_ns)) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    kept.insert(kept.end(), bytes, bytes + header.size);
  });
  return kept;
}

/// Room for one more. Before a buffer exists: one that is destroyed for want of memory would take the lock that is held.
void make_room(LiveCapture::Impl& capture) {
  if (capture.waiting.size() == capture.waiting.capacity()) capture.waiting.reserve(2 * capture.waiting.size() + 16);
}

void hand_to(LiveCapture::Impl& capture, RecordBuffer buffer) {
  capture.waiting_bytes += buffer.records().size();
  capture.waiting.push_back(std::move(buffer));
}

/// To every capture; those that are not paused share the memory.
void hand_out(std::uint32_t chunk, std::span<const std::byte> records) XPU_REQUIRES(g_captures_mutex) {
  bool is_shared = false;
  for (LiveCapture::Impl* capture : g_captures->all) {
    make_room(*capture);
    is_shared = is_shared || !capture->is_paused;
    if (!capture->is_paused) continue;
    std::vector<std::byte> kept = copy_needed_while_paused(records, capture->paused_at_ns);
    if (!kept.empty()) hand_to(*capture, RecordBuffer(std::move(kept)));
  }
  if (!is_shared) return;
  const auto owner = std::make_shared<const Pin>(chunk);
  for (LiveCapture::Impl* capture : g_captures->all) {
    if (!capture->is_paused) hand_to(*capture, RecordBuffer(records, owner));
  }
}

/// All but the count, of a slot whose thread may count on meanwhile.
LossRecord read_while_counted(LossRecord& slot) {
  const auto get = [](auto& field) { return std::atomic_ref(field).load(std::memory_order_relaxed); };
  LossRecord record{};
  record.header = slot.header;
  record.first_operation = slot.first_operation;
  record.last_operation = get(slot.last_operation);
  record.time_ns = get(slot.time_ns);
  record.queue = slot.queue;
  record.last_sequence = get(slot.last_sequence);
  record.cause = slot.cause;
  return record;
}

/// Losses are counted up in place: what came since the last time is a record of its own.
void hand_out_losses(ChunkHeader& chunk, ChunkProgress& progress) XPU_REQUIRES(g_captures_mutex) {
  const std::uint32_t count = std::min<std::uint32_t>(chunk.loss_count.load(std::memory_order_acquire), kMaxLossSlots);
  progress.handed_losses.resize(std::max<std::size_t>(progress.handed_losses.size(), count));
  std::vector<std::byte> news;
  auto* slots = reinterpret_cast<LossRecord*>(reinterpret_cast<std::byte*>(&chunk) + kChunkRecordsEnd);
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    const std::uint64_t total = std::atomic_ref(slots[slot].count).load(std::memory_order_acquire);
    if (total == progress.handed_losses[slot]) continue;
    LossRecord record = read_while_counted(slots[slot]);
    record.count = total - progress.handed_losses[slot];
    progress.handed_losses[slot] = total;
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    news.insert(news.end(), bytes, bytes + sizeof record);
  }
  if (news.empty()) return;
  for (LiveCapture::Impl* capture : g_captures->all) {
    make_room(*capture);
    // Who is paused lost nothing but ends.
    std::vector<std::byte> own = capture->is_paused ? copy_needed_while_paused(news, capture->paused_at_ns) : news;
    if (!own.empty()) hand_to(*capture, RecordBuffer(std::move(own)));
  }
}

/// Hands out everything that was written since the last time.
void distribute() XPU_REQUIRES(g_captures_mutex) {
  if (g_capture_segment == nullptr) return;
  const std::uint32_t count = g_capture_segment->chunk_count();
  if (g_captures->chunks.size() < count) g_captures->chunks.resize(count);
  for (std::uint32_t index = 0; index < count; ++index) {
    ChunkHeader& chunk = g_capture_segment->chunk(index);
    ChunkProgress& progress = g_captures->chunks[index];
    // Before `committed`: what a full chunk says is final.
    const std::uint32_t state = chunk.state.load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(ChunkState::open) && state != static_cast<std::uint32_t>(ChunkState::full)) continue;
    const std::uint64_t committed = chunk.committed.load(std::memory_order_acquire);
    if (committed > progress.handed_bytes) {
      const std::byte* first = reinterpret_cast<const std::byte*>(&chunk) + kChunkHeaderBytes + progress.handed_bytes;
      hand_out(index, {first, committed - progress.handed_bytes});
      progress.handed_bytes = committed;
    }
    hand_out_losses(chunk, progress);
    const std::uint64_t filtered = chunk.filtered.load(std::memory_order_relaxed);
    g_captures->filtered += filtered - progress.handed_filtered;
    progress.handed_filtered = filtered;
    recycle_if_done(index, progress);
  }
}

std::uint64_t count_filtered() XPU_REQUIRES(g_captures_mutex) {
  return g_captures->filtered + g_capture_segment->header().filtered.load(std::memory_order_relaxed);
}

/// What was last said about operations; a forked child has it from its parent.
constinit bool g_has_filter XPU_GUARDED_BY(g_captures_mutex) = false;

/// Operations that no capture wants are not recorded. One that is paused wants none, but while all are, nothing is.
void update_filter() noexcept XPU_REQUIRES(g_captures_mutex) {
  const auto is_selective = [](const LiveCapture::Impl* capture) { return !capture->wanted_operations.wants_all(); };
  const bool has_filter = std::any_of(g_captures->all.begin(), g_captures->all.end(), is_selective);
  if (!has_filter && !g_has_filter) return;
  g_has_filter = has_filter;
  std::vector<WantedOperations> readers;
  try {
    for (const LiveCapture::Impl* capture : g_captures->all) {
      if (!capture->is_paused) readers.push_back(capture->wanted_operations);
    }
  } catch (const std::bad_alloc&) {
    readers.clear();  // everything is recorded, and left out by whoever reads
  }
  internal::set_readers(std::move(readers));
}

/// What publishers are asked for, and how much memory there is for it: the sum over the captures.
std::uint32_t update_wanted() XPU_REQUIRES(g_captures_mutex) {
  std::uint32_t wanted = 0;
  std::uint64_t bytes = 0;
  for (const LiveCapture::Impl* capture : g_captures->all) {
    if (!capture->is_paused) wanted |= wanted_by(capture->options);
    bytes += capture->options.max_bytes;
  }
  update_filter();
  g_capture_segment->set_chunk_limit(g_captures->in_use_before + bytes / kChunkBytes);
  internal::subscriber_table().wanted.store(wanted, std::memory_order_relaxed);
  g_capture_segment->header().paused.exchange(wanted == 0 ? 1 : 0, std::memory_order_seq_cst);
  return wanted;
}

}  // namespace

void internal::lock_captures_for_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { g_captures_mutex.lock(); }
void internal::unlock_captures_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { g_captures_mutex.unlock(); }
void internal::forget_captures_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
  g_fork_generation.fetch_add(1, std::memory_order_relaxed);
  new (&g_transition_mutex) Mutex;  // a thread that is not here may have held it
  g_captures = nullptr;             // what it refers to is the parent's
  g_capture_segment = nullptr;
}

RecordBuffer::RecordBuffer(std::vector<std::byte> records) {
  auto owned = std::make_shared<const std::vector<std::byte>>(std::move(records));
  records_ = *owned;
  owner_ = std::move(owned);
}

Result<std::unique_ptr<LiveCapture>> LiveCapture::begin(const CaptureOptions& options) {
  if (options.max_bytes < kLeastCaptureBytes) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} bytes are too few for a capture; at least {} are needed", options.max_bytes, kLeastCaptureBytes)};
  }
  WantedOperations wanted_operations;
  if (!options.kernels.empty()) {
    wanted_operations.kernels = compile_expression(options.kernels.c_str());
    if (wanted_operations.kernels == nullptr) {
      return Error{ErrorCode::invalid_argument, fmt::format("\"{}\" is no expression for names of kernels", options.kernels)};
    }
  }
  wanted_operations.queues = options.queues;
  const MutexLock transition(g_transition_mutex);
  XPU_TRY_ASSIGN(Segment * segment, segment_in_memory());
  auto impl = std::make_unique<Impl>();
  impl->wanted_operations = std::move(wanted_operations);
  impl->options = options;
  impl->segment = segment;
  impl->fork_generation = g_fork_generation.load(std::memory_order_relaxed);
  const SegmentHeader& header = segment->header();
  impl->process.pid = header.pid;
  impl->process.start_ns = header.start_ns;
  impl->process.domain = static_cast<ClockDomain>(header.domain);
  impl->process.state = SegmentState::attached;
  RecorderOptions described;
  described.argv = command_line();
  impl->manifest = describe_recording(described);
  std::uint32_t wanted = 0;
  {
    const MutexLock lock(g_captures_mutex);
    if (g_captures == nullptr) g_captures = new Captures;
    g_capture_segment = segment;
    distribute();  // what was written before is not this capture's
    impl->filtered_before = count_filtered();
    impl->lost_before = header.lost_before_any_chunk.load(std::memory_order_relaxed);
    if (g_captures->all.empty()) g_captures->in_use_before = segment->chunks_in_use();
    g_captures->all.push_back(impl.get());
    segment->header().epoch.fetch_add(1, std::memory_order_release);
    wanted = update_wanted();
  }
  std::unique_ptr<LiveCapture> capture(new LiveCapture(std::move(impl)));
  if (Result<> listening = capture->hand_over_objects(wanted); !listening) {
    capture->leave();  // so that its destructor does not, which would wait for the lock of this transition
    return listening.error();
  }
  return capture;
}

LiveCapture::LiveCapture(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LiveCapture::~LiveCapture() { finish(); }

bool LiveCapture::is_of_this_process() const noexcept {
  return impl_->fork_generation == g_fork_generation.load(std::memory_order_relaxed);
}

void LiveCapture::pause() noexcept {
  if (!is_of_this_process()) return;
  const MutexLock lock(g_captures_mutex);
  if (impl_->is_finished || impl_->is_paused) return;
  impl_->is_paused = true;
  // Seen by all when it returns: whoever is let in has looked at the clock before it is looked at here.
  update_wanted();
  impl_->paused_at_ns = now_ns(probe::clock_domain());
  impl_->is_paused = false;
  distribute();  // all that was written until now is its own
  impl_->is_paused = true;
}

void LiveCapture::resume() noexcept {
  // Where others went on, queues have counted on: their count begins again here, or there would be a gap that nobody explains.
  describe_again();
  if (!is_of_this_process()) return;
  const MutexLock lock(g_captures_mutex);
  if (impl_->is_finished || !impl_->is_paused) return;
  distribute();
  impl_->is_paused = false;
  update_wanted();
}

void LiveCapture::describe_again() noexcept {
  if (!is_of_this_process()) return;
  const MutexLock transition(g_transition_mutex);
  if (is_finished()) return;
  // Without memory for it they stay described as they were before.
  static_cast<void>(hand_over_objects(internal::subscriber_table().wanted.load(std::memory_order_relaxed)));
}

Result<> LiveCapture::hand_over_objects(std::uint32_t wanted) noexcept {
  XPU_TRY(listen_in_memory(wanted));
  std::vector<std::byte> objects = definitions().snapshot();
  definitions().forget_ended();
  try {
    RecordBuffer buffer(std::move(objects));
    const MutexLock lock(g_captures_mutex);
    make_room(*impl_);
    // In front, so that whatever comes can be looked up.
    impl_->waiting_bytes += buffer.records().size();
    impl_->waiting.insert(impl_->waiting.begin(), std::move(buffer));
    return {};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_host_memory, "no memory for the objects that records refer to"};
  }
}

/// Takes the capture out of the list; false when it is not there any more. True, and nobody is left: nobody needs to listen.
bool LiveCapture::leave() noexcept {
  const MutexLock lock(g_captures_mutex);
  if (impl_->is_finished) return false;
  distribute();
  impl_->is_finished = true;
  impl_->process.filtered = count_filtered() - impl_->filtered_before;
  impl_->process.lost_before_any_chunk =
      impl_->segment->header().lost_before_any_chunk.load(std::memory_order_relaxed) - impl_->lost_before;
  impl_->process.writer_count = impl_->segment->header().writer_count.load(std::memory_order_relaxed);
  std::erase(g_captures->all, impl_.get());
  // What it was handed may be kept for long, and is not to be missed by those that go on; more than is in use it cannot be.
  g_captures->in_use_before =
      std::min<std::uint64_t>(g_captures->in_use_before + impl_->options.max_bytes / kChunkBytes, impl_->segment->chunks_in_use());
  update_wanted();
  return g_captures->all.empty();
}

bool LiveCapture::is_finished() const noexcept {
  const MutexLock lock(g_captures_mutex);
  return impl_->is_finished;
}

void LiveCapture::finish() noexcept {
  if (!is_of_this_process() || is_finished()) return;
  const MutexLock transition(g_transition_mutex);
  if (!leave()) return;
  stop_listening_in_memory();
  impl_->segment->give_back_free_chunks(kChunksToKeep);
}

std::vector<RecordBuffer> LiveCapture::take() {
  if (!is_of_this_process()) return {};
  const MutexLock lock(g_captures_mutex);
  if (!impl_->is_finished) distribute();
  impl_->waiting_bytes = 0;
  return std::exchange(impl_->waiting, {});
}

void LiveCapture::harvest() noexcept { probe::harvest_all(); }

RecordBuffer LiveCapture::texts() const {
  std::vector<std::byte> records = encode_process(impl_->process.pid, impl_->process.start_ns);
  probe::for_each_text(
      [](probe::Id id, std::string_view text, void* all) { append_string_records(*static_cast<std::vector<std::byte>*>(all), id, text); },
      &records);
  return RecordBuffer(std::move(records));
}

ProcessInfo LiveCapture::process() const {
  const MutexLock lock(g_captures_mutex);
  return impl_->process;
}

const Manifest& LiveCapture::manifest() const noexcept { return impl_->manifest; }

std::uint64_t LiveCapture::waiting_bytes() const noexcept {
  const MutexLock lock(g_captures_mutex);
  return impl_->waiting_bytes;
}

std::string why_no_capture() {
  if (Result<> possible = can_record_in_memory(); !possible) return possible.error().message;
  return {};
}

}  // namespace xpu::trace
