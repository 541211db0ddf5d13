#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xpu/profiler/sink.hpp"

namespace xpu::profiler::test_support {

/// Keeps every activity for a test to look at. Calls are copied, so that a command's `call` stays valid.
class CollectingSink final : public Sink {
 public:
  void begin(const SessionInfo& session_info) override { info = session_info; }
  void handle_runtime_activity(const RuntimeActivity& activity) override { calls.push_back(activity); }
  void handle_driver_activity(const DriverActivity& activity) override { driver_calls.push_back(activity); }
  void handle_external_correlation_activity(const ExternalCorrelationActivity& activity) override { external.push_back(activity); }
  void handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) override {
    ++peer_copies;
    copies.push_back(with_exit(static_cast<const MemcpyActivity&>(activity)));
  }
  void handle_kernel_activity(const KernelActivity& activity) override { kernels.push_back(with_exit(activity)); }
  void handle_memcpy_activity(const MemcpyActivity& activity) override { copies.push_back(with_exit(activity)); }
  void handle_memset_activity(const MemsetActivity& activity) override { fills.push_back(with_exit(activity)); }
  void handle_command_activity(const CommandActivity& activity) override { commands.push_back(with_exit(activity)); }
  void handle_synchronization_activity(const SynchronizationActivity& activity) override { waits.push_back(activity); }
  void handle_overhead_activity(const OverheadActivity& activity) override { overheads.push_back(activity); }
  void handle_communication_activity(const CommunicationActivity& activity) override { communications.push_back(activity); }
  void handle_memory_activity(const MemoryActivity& activity) override { memory.push_back(activity); }
  void handle_annotation_activity(const AnnotationActivity& activity) override { annotations.push_back(activity); }
  void handle_loss_activity(const LossActivity& activity) override { losses.push_back(activity); }
  void handle_cpu_operation_activity(const CpuOperationActivity& activity) override { cpu_operations.push_back(activity); }
  void handle_device_annotation_activity(const DeviceAnnotationActivity& activity) override {
    device_annotations.push_back({activity, std::string(activity.name)});
  }
  Result<> end(const LinkSummary& link_summary) override {
    summary = link_summary;
    return {};
  }

  /// A command together with the entry of its call.
  template <typename Base>
  struct WithCall : Base {
    bool has_call = false;
    std::int64_t call_start_ns = 0;
    const ThreadDefinition* call_thread = nullptr;
  };

  /// Together with its name, which is gone once the session has run.
  struct NamedDeviceAnnotation : DeviceAnnotationActivity {
    NamedDeviceAnnotation(const DeviceAnnotationActivity& activity, std::string text)
        : DeviceAnnotationActivity(activity), own_name(std::move(text)) {}
    std::string own_name;
  };

  std::optional<SessionInfo> info;
  std::vector<RuntimeActivity> calls;
  std::vector<DriverActivity> driver_calls;
  std::vector<ExternalCorrelationActivity> external;
  std::size_t peer_copies = 0;
  std::vector<WithCall<KernelActivity>> kernels;
  std::vector<WithCall<MemcpyActivity>> copies;
  std::vector<WithCall<MemsetActivity>> fills;
  std::vector<WithCall<CommandActivity>> commands;
  std::vector<SynchronizationActivity> waits;
  std::vector<OverheadActivity> overheads;
  std::vector<CommunicationActivity> communications;
  std::vector<MemoryActivity> memory;
  std::vector<AnnotationActivity> annotations;
  std::vector<LossActivity> losses;
  std::vector<CpuOperationActivity> cpu_operations;
  std::vector<NamedDeviceAnnotation> device_annotations;
  std::optional<LinkSummary> summary;

 private:
  template <typename Base>
  static WithCall<Base> with_exit(const Base& activity) {
    WithCall<Base> copy{activity};
    if (activity.call != nullptr) {
      copy.has_call = true;
      copy.call_start_ns = activity.call->start_ns;
      copy.call_thread = activity.call->thread;
    }
    copy.call = nullptr;  // gone once the handler returns
    return copy;
  }
};

}  // namespace xpu::profiler::test_support
