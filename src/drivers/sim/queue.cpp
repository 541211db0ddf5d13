#include "drivers/sim/queue.hpp"

#include <algorithm>
#include <string>

namespace xpu::drivers::sim {

template <typename Work>
Result<> SimQueue::submit(Work work, std::string_view name, std::size_t bytes, const hal::Submission& submission) {
  auto operation = std::make_unique<Operation>();
  operation->work = std::move(work);
  operation->token = submission.token;
  operation->sink = sink_;
  operation->plan = state_->device->rules->plan(operation->kind(), name, bytes);
  return timeline_->submit(*state_, std::move(operation));
}

Result<> SimQueue::launch(const hal::Launch& launch, const hal::Submission& submission) {
  // Every module of this driver is made by create_function_module.
  const auto& kernel = static_cast<const hal::FunctionKernel&>(*launch.kernel);
  KernelCall call{
      kernel.shared_from_this(), *launch.geometry, {launch.arguments.begin(), launch.arguments.end()}, launch.local_memory_bytes};
  return submit(std::move(call), kernel.info().name, 0, submission);
}

Result<> SimQueue::copy(void* destination, const void* source, std::size_t bytes, const hal::Submission& submission) {
  return submit(CopyCall{destination, source, bytes}, {}, bytes, submission);
}

Result<> SimQueue::fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, const hal::Submission& submission) {
  FillCall call{destination, {}, pattern.size(), bytes};
  std::copy(pattern.begin(), pattern.end(), call.pattern.begin());
  return submit(call, {}, bytes, submission);
}

Result<> SimQueue::host_function(const hal::HostFunction& function, const hal::Submission& submission) {
  return submit(function, {}, 0, submission);
}

Result<> SimQueue::record(hal::Event& event) {
  XPU_TRY_ASSIGN(const Time point, timeline_->record(*state_, state_->device->rules->event_time()));
  static_cast<SimEvent&>(event).capture(point, state_->device);
  return {};
}

Result<> SimQueue::wait(const hal::Event& event) {
  return timeline_->wait(*state_, static_cast<const SimEvent&>(event).point(), state_->device->rules->event_time());
}

Result<bool> SimQueue::query() { return timeline_->query(timeline_->tail_of(*state_)); }

Result<> SimQueue::synchronize_blocking() {
  XPU_TRY(timeline_->synchronize(timeline_->tail_of(*state_)));
  if (std::optional<Error> error = timeline_->take_error(*state_)) return *std::move(error);
  if (state_->device->is_lost.load(std::memory_order_acquire)) return device_lost_error(*state_->device);
  return {};
}

void SimEvent::capture(Time point, std::shared_ptr<DeviceState> device) {
  const base::MutexLock lock(mutex_);
  point_ = point;
  device_.swap(device);
}

Time SimEvent::point() const {
  const base::MutexLock lock(mutex_);
  return point_;
}

Result<bool> SimEvent::query() { return timeline_->query(point()); }

Result<> SimEvent::synchronize_blocking() {
  XPU_TRY(timeline_->synchronize(point()));
  const base::MutexLock lock(mutex_);
  if (device_->is_lost.load(std::memory_order_acquire)) return device_lost_error(*device_);
  return {};
}

Result<std::uint64_t> SimEvent::ticks() {
  const base::MutexLock lock(mutex_);
  return device_->clock.ticks(point_);
}

}  // namespace xpu::drivers::sim
