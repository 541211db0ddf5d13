#include "profiler/session/filtering_sink.hpp"

#include <algorithm>

namespace xpu::profiler {

void FilteringSink::hand_on_numbers() {
  for (const ExternalCorrelationActivity& number : numbers_) next_.handle_external_correlation_activity(number);
  numbers_.clear();
}

void FilteringSink::handle_runtime_activity(const RuntimeActivity& activity) {
  if (activity.submits) {
    call_ = activity;
    return;
  }
  hand_on_numbers();
  next_.handle_runtime_activity(activity);
}

void FilteringSink::handle_driver_activity(const DriverActivity& activity) {
  if (activity.submits) {
    call_ = activity;
    return;
  }
  hand_on_numbers();
  next_.handle_driver_activity(activity);
}

bool FilteringSink::is_kernel_wanted(const KernelDefinition& kernel) {
  if (kernels_ == nullptr) return true;
  if (kernel.index >= kernels_wanted_.size()) kernels_wanted_.resize(kernel.index + 1);
  std::optional<bool>& wanted = kernels_wanted_[kernel.index];
  if (!wanted) wanted = kernels_->found_in(kernel.raw_name);
  return *wanted;
}

bool FilteringSink::let_through(const DeviceActivity& activity, bool is_name_wanted) {
  const bool is_queue_wanted =
      filter_.queues.empty() || std::find(filter_.queues.begin(), filter_.queues.end(), activity.queue->id) != filter_.queues.end();
  const bool is_short = activity.timed && activity.duration_ns < static_cast<std::uint64_t>(filter_.least_duration.count());
  const bool passes = is_name_wanted && is_queue_wanted && !is_short;
  if (passes) {
    hand_on_numbers();
    if (const auto* call = std::get_if<RuntimeActivity>(&call_)) next_.handle_runtime_activity(*call);
    if (const auto* call = std::get_if<DriverActivity>(&call_)) next_.handle_driver_activity(*call);
  } else {
    ++left_out_;
  }
  numbers_.clear();
  call_ = std::monostate();
  return passes;
}

void FilteringSink::handle_kernel_activity(const KernelActivity& activity) {
  if (let_through(activity, is_kernel_wanted(*activity.kernel))) next_.handle_kernel_activity(activity);
}
void FilteringSink::handle_memcpy_activity(const MemcpyActivity& activity) {
  if (let_through(activity, true)) next_.handle_memcpy_activity(activity);
}
void FilteringSink::handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) {
  if (let_through(activity, true)) next_.handle_peer_memcpy_activity(activity);
}
void FilteringSink::handle_memset_activity(const MemsetActivity& activity) {
  if (let_through(activity, true)) next_.handle_memset_activity(activity);
}
void FilteringSink::handle_command_activity(const CommandActivity& activity) {
  if (let_through(activity, true)) next_.handle_command_activity(activity);
}

}  // namespace xpu::profiler
