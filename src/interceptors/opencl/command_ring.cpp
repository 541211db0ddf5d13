#include "interceptors/opencl/command_ring.hpp"

#include <sched.h>

#include <algorithm>
#include <new>

#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/publish.hpp"
#include "interceptors/opencl/thread_state.hpp"

namespace xpu::interceptors::opencl {
namespace {

/// The status of a command; an answer that the driver refuses counts as ended, so that nothing waits for it for ever.
cl_int status_of(cl_event event) noexcept {
  cl_int status = CL_QUEUED;
  const cl_int result = target().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return result == CL_SUCCESS ? status : CL_COMPLETE;
}

bool has_ended(cl_event event) noexcept { return status_of(event) <= CL_COMPLETE; }

bool read_time(cl_event event, cl_profiling_info which, std::uint64_t& ticks) noexcept {
  cl_ulong value = 0;
  if (target().clGetEventProfilingInfo(event, which, sizeof value, &value, nullptr) != CL_SUCCESS) return false;
  ticks = value;
  return true;
}

}  // namespace

CommandRing* CommandRing::make(Queue* queue) noexcept {
  try {
    return new CommandRing(queue);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool CommandRing::push_when_full(PendingCommand command) noexcept {
  drain();
  ring_lock_.lock();
  const bool is_kept = ring_.size() + kPortion < kMaxCapacity && ring_.push(PendingCommand{command});
  ring_lock_.unlock();
  if (!is_kept && watched_id_.load(std::memory_order_relaxed) == command.id) watched_id_.store(0, std::memory_order_relaxed);
  return is_kept;
}

// In steady state as many commands leave as come, a few at a time. A device that is behind is asked less often, and a backlog that ended
// while it was is read in larger portions.
void CommandRing::poll(std::size_t pending) noexcept {
  std::size_t left_ring = 0;
  if (pending >= kPollFrom && reader_.try_lock()) {
    left_ring = drain_portion(pending < 4 * kPollFrom ? kSmallPortion : kPortion);
    reader_.unlock();
  }
  const bool is_steady = left_ring != 0;
  const auto until_full = static_cast<std::uint32_t>(pending < kPollFrom ? kPollFrom - pending : kPollRarely);
  next_poll_ = launches() + (is_steady ? kPollEvery : until_full);
}

// The first commands teach whether a driver's clock is what it seems; after that the drift is followed.
bool CommandRing::can_watch() noexcept {
  constexpr std::uint32_t kEagerWatches = 16;
  next_watch_ = launches() + (++watches_ < kEagerWatches ? watches_ : kWatchEvery);
  return watched_id_.load(std::memory_order_acquire) == 0;
}

void CommandRing::watch(probe::OperationId id, std::uint64_t exit_ns) noexcept {
  watched_.exit_ns = exit_ns;
  watched_id_.store(id, std::memory_order_release);
}

std::size_t CommandRing::take_finished(PendingCommand* batch, std::size_t limit) noexcept {
  std::size_t count = 0;
  const auto take = [&](PendingCommand&& command) { batch[count++] = command; };
  if (!queue->is_out_of_order.load(std::memory_order_relaxed)) {
    ring_lock_.lock();
    // Questions are asked without the lock: only readers take entries out, and there is one. (The analysis takes a lambda for a function
    // that knows nothing of its caller's locks.)
    ring_.drain_in_order(
        [&](const PendingCommand& command) XPU_NO_THREAD_SAFETY_ANALYSIS {
          const cl_event event = command.event;
          ring_lock_.unlock();
          const bool ended = has_ended(event);
          ring_lock_.lock();
          return ended;
        },
        take, limit);
    ring_lock_.unlock();
    return count;
  }

  ring_lock_.lock();
  ring_.drain_any_order([](const PendingCommand&) { return true; }, take, limit);
  ring_lock_.unlock();
  const auto running = std::stable_partition(batch, batch + count, [](const PendingCommand& command) { return has_ended(command.event); });
  ring_lock_.lock();
  for (PendingCommand* command = running; command != batch + count; ++command) {
    const bool is_kept = ring_.push(PendingCommand{*command});  // `push` left room for it
    static_cast<void>(is_kept);
  }
  ring_lock_.unlock();
  return static_cast<std::size_t>(running - batch);
}

std::size_t CommandRing::drain_portion(std::size_t limit) noexcept {
  const bool is_sampled = portions_++ % kSamplePortionsEvery == 0;
  const std::uint64_t begin_ns = is_sampled ? now_ns() : 0;
  if (late_count_ != 0) drain_late(false);
  PendingCommand batch[kPortion];
  const std::size_t count = take_finished(batch, limit);
  const Batch same(*this);
  for (std::size_t index = 0; index < count; ++index) {
    if (publish_times(same, batch[index])) [[likely]] {
      never_timed_ = 0;
    } else {
      finish_without_times(batch[index]);
    }
  }
  if (Device* device = queue->device.load(std::memory_order_acquire); count != 0 && device != nullptr) device->clock.read_if_due();
  if (is_sampled && count != 0 && same.listener != nullptr)
    same.listener->overhead(probe::OverheadType::driver, begin_ns, now_ns(), kSamplePortionsEvery);
  return count;
}

void CommandRing::drain() noexcept {
  if (!reader_.try_lock()) return;
  ring_lock_.lock();
  std::size_t rounds = ring_.size() / kPortion + 1;
  ring_lock_.unlock();
  const bool is_out_of_order = queue->is_out_of_order.load(std::memory_order_relaxed);
  // Out of order, one round for each portion, whatever it finds; in order, until one finds something that still runs.
  while (rounds-- != 0) {
    if (drain_portion(kPortion) < kPortion && !is_out_of_order) break;
  }
  reader_.unlock();
}

void CommandRing::drain_finally() noexcept {
  drain();
  if (!reader_.try_lock()) return;
  drain_late(true);
  reader_.unlock();
}

void CommandRing::finish_without_times(PendingCommand command) noexcept {
  const cl_int status = status_of(command.event);
  const bool may_come = status >= CL_COMPLETE && queue->is_timed.load(std::memory_order_relaxed) && never_timed_ < kMaxLate;
  if (may_come && late_count_ < kMaxLate) {
    late_[late_count_++] = {command, now_ns()};
    return;
  }
  publish_without_times(command, status);
}

// Some drivers make the times known a little after the end. A ring whose driver never does stops hoping.
void CommandRing::drain_late(bool is_final) noexcept {
  const Batch same(*this);
  const std::uint64_t now = now_ns();
  std::size_t kept = 0;
  for (std::size_t index = 0; index < late_count_; ++index) {
    const LateCommand late = late_[index];
    if (publish_times(same, late.command)) {
      never_timed_ = 0;
      continue;
    }
    const cl_int status = status_of(late.command.event);
    if (status > CL_COMPLETE || (!is_final && status == CL_COMPLETE && now - late.since_ns < kPatienceNs)) {
      late_[kept++] = late;
      continue;
    }
    if (status == CL_COMPLETE) ++never_timed_;
    publish_without_times(late.command, status);
  }
  late_count_ = kept;
}

CommandRing::Batch::Batch(const CommandRing& ring) noexcept
    : listener(probe::subscriber()), queue(ring.queue->id), wants_all_ticks(listener != nullptr && wants(*listener, probe::kAllTicks)) {}

bool CommandRing::publish_times(const Batch& batch, PendingCommand command) noexcept {
  probe::Completion completion;
  completion.queue = batch.queue;
  probe::Ticks& ticks = completion.ticks;
  if (!read_time(command.event, CL_PROFILING_COMMAND_START, ticks.start) || !read_time(command.event, CL_PROFILING_COMMAND_END, ticks.end))
    return false;
  if (ticks.end <= ticks.start || ticks.start == 0) [[unlikely]] {
    if (ticks.end == 0 && ticks.start == 0) return false;
    completion.clamped = ticks.end != ticks.start;
    // A command that never started has an end and no start on Intel's CPU runtime: one whose dependency failed.
    if (ticks.start == 0) ticks.start = ticks.end;
    ticks.end = ticks.start;
  }
  if (batch.wants_all_ticks) {
    if (!read_time(command.event, CL_PROFILING_COMMAND_QUEUED, ticks.queued) ||
        !read_time(command.event, CL_PROFILING_COMMAND_SUBMIT, ticks.submit))
      return false;
  }
  if (command.id == watched_id_.load(std::memory_order_acquire)) [[unlikely]]
    learn_from(command.event, ticks.end);
  target().clReleaseEvent(command.event);
  if (batch.listener != nullptr) batch.listener->complete(command.id, completion);
  return true;
}

void CommandRing::publish_without_times(PendingCommand command, cl_int status) noexcept {
  if (command.id == watched_id_.load(std::memory_order_acquire)) watched_id_.store(0, std::memory_order_release);
  target().clReleaseEvent(command.event);
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return;
  const bool is_failed = status < CL_COMPLETE;
  listener->complete(command.id, {.queue = queue->id,
                                  .status = is_failed ? probe::CompletionStatus::failed : probe::CompletionStatus::untimed,
                                  .native_status = is_failed ? status : 0,
                                  .ticks = {}});
}

void CommandRing::learn_from(cl_event event, std::uint64_t end_ticks) noexcept {
  const WatchedCommand command = watched_;
  watched_id_.store(0, std::memory_order_release);
  std::uint64_t queued_ticks = 0;
  Device* device = queue->device.load(std::memory_order_acquire);
  if (device == nullptr || !read_time(event, CL_PROFILING_COMMAND_QUEUED, queued_ticks)) return;
  if (queued_ticks == 0) return;  // Intel's CPU runtime says nothing else of markers and barriers
  const ClockDomain before = device->clock.domain();
  device->clock.observe(command, queued_ticks, end_ticks);
  if (device->clock.domain() != before) publish(*device);
}

bool CommandRing::holds(cl_event event) noexcept {
  constexpr int kTries = 100;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (!reader_.try_lock()) {
      sched_yield();
      continue;
    }
    bool found = false;
    for (std::size_t index = 0; index < late_count_; ++index) found = found || late_[index].command.event == event;
    ring_lock_.lock();
    ring_.for_each([&](const PendingCommand& command) { found = found || command.event == event; });
    ring_lock_.unlock();
    reader_.unlock();
    return found;
  }
  return false;
}

bool CommandRing::is_empty() noexcept {
  if (!reader_.try_lock()) return false;
  ring_lock_.lock();
  const bool result = ring_.empty() && late_count_ == 0;
  ring_lock_.unlock();
  reader_.unlock();
  return result;
}

CommandRing* ring_for_this_thread(Queue& queue) noexcept {
  const void* me = this_thread();
  if (me == nullptr) return nullptr;
  for (CommandRing* ring = queue.rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    if (ring->owner.load(std::memory_order_relaxed) == me) return ring;
  }
  for (CommandRing* ring = queue.rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    const void* nobody = nullptr;
    if (ring->owner.compare_exchange_strong(nobody, me, std::memory_order_acq_rel)) return ring;
  }
  CommandRing* ring = CommandRing::make(&queue);
  if (ring == nullptr) return nullptr;
  ring->owner.store(me, std::memory_order_relaxed);
  ring->next = queue.rings.load(std::memory_order_relaxed);
  while (!queue.rings.compare_exchange_weak(ring->next, ring, std::memory_order_acq_rel)) {
  }
  return ring;
}

void drain_queue(Queue& queue) noexcept {
  for (CommandRing* ring = queue.rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) ring->drain();
}

// The rings hold events of the parent's driver, and another thread may have been in the middle of one: they are left where they are.
void forget_rings_after_fork(Queue& queue) noexcept { queue.rings.store(nullptr, std::memory_order_release); }

}  // namespace xpu::interceptors::opencl
