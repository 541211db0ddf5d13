#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/mutex.hpp"
#include "drivers/sim/timeline.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu::drivers::sim {

/// A queue that was created or adopted: a sink of its own in front of a state that both may share.
class SimQueue final : public hal::Queue {
 public:
  SimQueue(std::shared_ptr<Timeline> timeline, std::shared_ptr<QueueState> state, hal::CompletionSink* sink)
      : timeline_(std::move(timeline)), state_(std::move(state)), sink_(sink) {}

  Result<> launch(const hal::Launch& launch, const hal::Submission& submission) override;
  Result<> copy(void* destination, const void* source, std::size_t bytes, const hal::Submission& submission) override;
  Result<> fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, const hal::Submission& submission) override;
  Result<> host_function(const hal::HostFunction& function, const hal::Submission& submission) override;
  Result<> record(hal::Event& event) override;
  Result<> wait(const hal::Event& event) override;
  Result<bool> query() override;
  Result<> synchronize_blocking() override;
  bool would_wait_for_itself() const noexcept override { return timeline_->is_executing_on_this_thread(); }
  void* native_handle() const noexcept override { return state_.get(); }

 private:
  template <typename Work>
  Result<> submit(Work work, std::string_view name, std::size_t bytes, const hal::Submission& submission);

  const std::shared_ptr<Timeline> timeline_;
  const std::shared_ptr<QueueState> state_;
  hal::CompletionSink* const sink_;
};

/// A point of the virtual time, so nothing needs to be kept of the queue.
class SimEvent final : public hal::Event {
 public:
  SimEvent(std::shared_ptr<Timeline> timeline, std::shared_ptr<DeviceState> device)
      : timeline_(std::move(timeline)), device_(std::move(device)) {}

  void capture(Time point, std::shared_ptr<DeviceState> device) XPU_EXCLUDES(mutex_);
  /// 0 before the first recording: then it is complete.
  Time point() const XPU_EXCLUDES(mutex_);

  Result<bool> query() override;
  Result<> synchronize_blocking() override;
  Result<std::uint64_t> ticks() override;
  void* native_handle() const noexcept override { return const_cast<SimEvent*>(this); }

 private:
  const std::shared_ptr<Timeline> timeline_;
  mutable base::Mutex mutex_;
  Time point_ XPU_GUARDED_BY(mutex_){0};
  std::shared_ptr<DeviceState> device_ XPU_GUARDED_BY(mutex_);  // of the queue that recorded it last
};

}  // namespace xpu::drivers::sim
