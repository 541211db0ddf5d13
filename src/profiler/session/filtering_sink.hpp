#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "profiler/expression.hpp"
#include "xpu/profiler/activity_filter.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Hands on what an `ActivityFilter` lets through. A call that submits waits for its command, which comes right behind it and decides for
/// both.
class FilteringSink final : public Sink {
 public:
  /// `kernels` null: any name. All three outlive it.
  FilteringSink(Sink& next, const ActivityFilter& filter, const Expression* kernels) : next_(next), filter_(filter), kernels_(kernels) {}
  /// Commands that did not pass.
  std::uint64_t left_out() const noexcept { return left_out_; }

  void begin(const SessionInfo& info) override { next_.begin(info); }
  void handle_runtime_activity(const RuntimeActivity& activity) override;
  void handle_driver_activity(const DriverActivity& activity) override;
  void handle_external_correlation_activity(const ExternalCorrelationActivity& activity) override { numbers_.push_back(activity); }
  void handle_kernel_activity(const KernelActivity& activity) override;
  void handle_memcpy_activity(const MemcpyActivity& activity) override;
  void handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) override;
  void handle_memset_activity(const MemsetActivity& activity) override;
  void handle_command_activity(const CommandActivity& activity) override;
  void handle_synchronization_activity(const SynchronizationActivity& activity) override {
    next_.handle_synchronization_activity(activity);
  }
  void handle_overhead_activity(const OverheadActivity& activity) override { next_.handle_overhead_activity(activity); }
  void handle_communication_activity(const CommunicationActivity& activity) override { next_.handle_communication_activity(activity); }
  void handle_memory_activity(const MemoryActivity& activity) override { next_.handle_memory_activity(activity); }
  void handle_annotation_activity(const AnnotationActivity& activity) override { next_.handle_annotation_activity(activity); }
  void handle_loss_activity(const LossActivity& activity) override { next_.handle_loss_activity(activity); }
  void handle_cpu_operation_activity(const CpuOperationActivity& activity) override { next_.handle_cpu_operation_activity(activity); }
  Result<> flush(const LinkSummary& so_far) override { return next_.flush(with_filter(so_far)); }
  Result<> end(const LinkSummary& summary) override { return next_.end(with_filter(summary)); }

 private:
  LinkSummary with_filter(LinkSummary summary) const {
    summary.left_out = left_out_;
    return summary;
  }
  bool is_kernel_wanted(const KernelDefinition& kernel);
  /// Whether the command goes on; then its call and its numbers went before.
  bool let_through(const DeviceActivity& activity, bool is_name_wanted);
  void hand_on_numbers();

  Sink& next_;
  const ActivityFilter& filter_;
  const Expression* const kernels_;
  std::vector<std::optional<bool>> kernels_wanted_;   // by index: each name is matched once
  std::vector<ExternalCorrelationActivity> numbers_;  // of the call that comes
  std::variant<std::monostate, RuntimeActivity, DriverActivity> call_;
  std::uint64_t left_out_ = 0;
};

}  // namespace xpu::profiler
