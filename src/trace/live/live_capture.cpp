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
#include "trace/live/captures.hpp"
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

std::vector<std::string> command_line() {
  std::vector<std::string> argv;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(file, argument, '\0');) argv.push_back(argument);
  return argv;
}

}  // namespace

void internal::lock_captures_for_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { g_captures_mutex.lock(); }
void internal::unlock_captures_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { g_captures_mutex.unlock(); }
void internal::forget_captures_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
  g_fork_generation.fetch_add(1, std::memory_order_relaxed);
  new (&g_transition_mutex) Mutex;                               // a thread that is not here may have held it
  if (g_captures != nullptr) g_inherited_captures = g_captures;  // what it refers to is the parent's
  g_captures = nullptr;
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
  XPU_TRY(can_capture());
  XPU_TRY_ASSIGN(Segment * segment, segment_for_captures());
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
    if (g_captures == nullptr) {
      g_captures = new Captures;
      g_captures->inherited = g_inherited_captures;
    }
    if (std::exchange(g_capture_segment, segment) != segment) g_captures->chunks.clear();
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
  const std::uint32_t wanted = update_wanted();
  impl_->paused_at_ns = now_ns(probe::clock_domain());
  // All that was written until now is its own. While nobody wants anything that stays so, and need not be looked at now, however much it
  // is: whoever comes next distributes first.
  impl_->is_owed_the_rest = true;
  if (wanted != 0) distribute();
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

void LiveCapture::change(const CaptureOptions& options) noexcept {
  if (!is_of_this_process()) return;
  const MutexLock lock(g_captures_mutex);
  if (impl_->is_finished) return;
  const std::uint64_t max_bytes = impl_->options.max_bytes;
  impl_->options = options;
  impl_->options.max_bytes = max_bytes;
  update_wanted();
}

void LiveCapture::describe_again() noexcept {
  if (!is_of_this_process()) return;
  const MutexLock transition(g_transition_mutex);
  if (is_finished()) return;
  // Without memory for it they stay described as they were before.
  static_cast<void>(hand_over_objects(internal::wanted_now()));
}

Result<> LiveCapture::hand_over_objects(std::uint32_t wanted) noexcept {
  XPU_TRY(listen_for_captures(wanted));
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
  stop_listening();
  if (impl_->segment->is_in_memory()) impl_->segment->give_back_free_chunks(kChunksToKeep);
}

std::vector<RecordBuffer> LiveCapture::take() {
  if (!is_of_this_process()) return {};
  const std::uint64_t begin_ns = now_ns(probe::clock_domain());
  std::vector<RecordBuffer> taken;
  std::uint64_t bytes = 0;
  {
    const MutexLock lock(g_captures_mutex);
    if (!impl_->is_finished) distribute();
    bytes = std::exchange(impl_->waiting_bytes, 0);
    taken = std::exchange(impl_->waiting, {});
  }
  internal::publish_flush(begin_ns, bytes);
  return taken;
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
  if (Result<> possible = can_capture(); !possible) return possible.error().message;
  return {};
}

}  // namespace xpu::trace
