#include "drivers/host/queue.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/host/event.hpp"
#include "drivers/host/execution.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::drivers::host {
namespace {

/// An operation that runs where it is submitted: begun by the constructor, delivered and over with `end`.
class OperationHere {
 public:
  OperationHere(QueueState& queue, hal::CompletionSink* sink, const hal::Submission& submission) noexcept
      : queue_(queue), sink_(sink), token_(submission.token), begin_ticks_(token_ != 0 ? now_ns() : 0) {}

  Result<> end(Result<> outcome) noexcept {
    // It starts in the call that submits it: one reading of the clock stands for the three moments.
    std::uint64_t end_ticks = 0;
    if (token_ != 0) {
      end_ticks = now_ns();
      deliver(sink_, token_, outcome.has_value(), {begin_ticks_, begin_ticks_, begin_ticks_, end_ticks});
    }
    if (!outcome) [[unlikely]] {
      queue_.set_error(std::move(outcome).error());
    }
    queue_.end(end_ticks);
    return {};
  }

 private:
  QueueState& queue_;
  hal::CompletionSink* const sink_;
  const std::uint64_t token_;
  const std::uint64_t begin_ticks_;
};

}  // namespace

inline bool HostQueue::begins_here(bool is_promised) noexcept {
  if (!state_->runs_where_submitted(is_promised)) return false;
  if (state_->try_begin()) [[likely]] {
    return true;
  }
  return state_->driver().options.executor == Executor::caller && state_->begin_in_turn();
}

template <typename T, typename FillIn>
Result<> HostQueue::append(const hal::Submission& submission, std::size_t extra_bytes, FillIn&& fill_in) {
  const std::uint64_t queued_ticks = submission.token != 0 ? now_ns() : 0;
  return state_->submit<T>(extra_bytes, [&](T& operation) {
    operation.token = submission.token;
    operation.sink = sink_;
    operation.queued_ticks = queued_ticks;
    fill_in(operation);
  });
}

Result<> HostQueue::launch(const hal::Launch& launch, const hal::Submission& submission) {
  const auto& kernel = static_cast<const hal::FunctionKernel&>(*launch.kernel);
  if (begins_here(submission.short_and_independent || kernel.info().facts.short_and_independent)) {
    OperationHere here(*state_, sink_, submission);
    return here.end(run_kernel(*state_, {kernel, *launch.geometry, launch.arguments.data(), launch.local_memory_bytes},
                               state_->driver().options.processors, nullptr));
  }
  return append<LaunchOperation>(submission, launch.arguments.size(), [&](LaunchOperation& operation) {
    operation.kernel = kernel.shared_from_this();
    operation.geometry = *launch.geometry;
    operation.local_memory_bytes = launch.local_memory_bytes;
    std::copy(launch.arguments.begin(), launch.arguments.end(), operation.arguments());
  });
}

Result<> HostQueue::copy(void* destination, const void* source, std::size_t bytes, const hal::Submission& submission) {
  if (begins_here(submission.short_and_independent)) {
    OperationHere here(*state_, sink_, submission);
    run_copy(destination, source, bytes, nullptr);
    return here.end({});
  }
  return append<CopyOperation>(submission, 0, [&](CopyOperation& operation) {
    operation.destination = destination;
    operation.source = source;
    operation.bytes = bytes;
  });
}

Result<> HostQueue::fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, const hal::Submission& submission) {
  if (begins_here(submission.short_and_independent)) {
    OperationHere here(*state_, sink_, submission);
    run_fill(destination, pattern, bytes, nullptr);
    return here.end({});
  }
  return append<FillOperation>(submission, 0, [&](FillOperation& operation) {
    operation.destination = destination;
    operation.bytes = bytes;
    operation.pattern_bytes = static_cast<std::uint32_t>(pattern.size());
    std::copy(pattern.begin(), pattern.end(), operation.pattern);
  });
}

Result<> HostQueue::host_function(const hal::HostFunction& function, const hal::Submission& submission) {
  if (begins_here(submission.short_and_independent)) {
    const std::shared_ptr<QueueState> kept = state_;  // the function may destroy this object
    OperationHere here(*kept, sink_, submission);
    return here.end(run_host_function(*kept, function));
  }
  return append<HostFunctionOperation>(submission, 0, [&](HostFunctionOperation& operation) { operation.function = function; });
}

Result<> HostQueue::record(hal::Event& event) {
  auto& recorded = static_cast<HostEvent&>(event);
  if (state_->is_idle()) {  // whatever ran has ended before this reading of the clock
    recorded.capture_complete(recorded.is_timed() ? now_ns() : 0);
    return {};
  }
  const std::uint64_t now = recorded.is_timed() ? now_ns() : 0;
  PointRef point = state_->driver().points.take();
  XPU_TRY(state_->submit<RecordOperation>(0, [&](RecordOperation& operation) {
    operation.queued_ticks = now;
    operation.point = point;
  }));
  recorded.capture(std::move(point));
  return {};
}

Result<> HostQueue::wait(const hal::Event& event) {
  PointRef point = static_cast<const HostEvent&>(event).pending();
  if (!point) return {};
  if (state_->driver().options.executor == Executor::caller && !UserCode::is_running()) {
    point->wait(state_->driver().spin_ns);
    return {};
  }
  return state_->submit<GateOperation>(0, [&](GateOperation& operation) { operation.point = std::move(point); });
}

Result<> HostQueue::synchronize_blocking() {
  state_->wait_for_all();
  return state_->take_error();
}

bool HostQueue::would_wait_for_itself() const noexcept {
  // Without workers, what this thread submits in the middle of an operation begins after it.
  return state_->driver().options.executor == Executor::caller ? UserCode::is_running() : UserCode::is_running(*state_);
}

}  // namespace xpu::drivers::host
