#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Writes activities as Chrome trace JSON in Kineto's shape, as a stream: memory does not grow with their number. One owner at a time.
///
/// Every call, command, wait and range is one slice; the wait inside a blocking call is that call. Rows: one per thread of the program (pid
/// and tid of the system), and one per queue in a process per device, with rows of its own ("queue 1 (overlap 1)") for commands that ran
/// while another one of the queue did: no two slices of a device row overlap. Streams are numbered from 1 over the whole recording. An
/// arrow leads from each call to its command where both are written, and from each operation of a framework to its backward ones. What a
/// queue did for annotations has rows beside the queue's.
class XPU_EXPORT ChromeSink final : public Sink {
 public:
  struct Options {
    std::string name;          ///< Written as `traceName`.
    bool device_only = false;  ///< Only what ran on devices: no calls, no flows.
    std::function<void(std::uint64_t done, std::uint64_t total)> progress = nullptr;
    Compatibility compatibility = Compatibility::none;
    std::vector<std::pair<std::string, std::string>> metadata = {};  ///< Of the head; the keys are none of ours.
  };
  /// Takes the document piece by piece; after an error it is not called again and `end` returns the error.
  using Write = std::function<Result<>(std::string_view piece)>;

  ChromeSink(Write write, Options options);
  ~ChromeSink() override;

  void begin(const SessionInfo& info) override;
  void handle_runtime_activity(const RuntimeActivity& activity) override;
  void handle_kernel_activity(const KernelActivity& activity) override;
  void handle_memcpy_activity(const MemcpyActivity& activity) override;
  void handle_memset_activity(const MemsetActivity& activity) override;
  void handle_command_activity(const CommandActivity& activity) override;
  void handle_synchronization_activity(const SynchronizationActivity& activity) override;
  void handle_overhead_activity(const OverheadActivity& activity) override;
  void handle_communication_activity(const CommunicationActivity& activity) override;
  void handle_memory_activity(const MemoryActivity& activity) override;
  void handle_annotation_activity(const AnnotationActivity& activity) override;
  void handle_loss_activity(const LossActivity& activity) override;
  void handle_cpu_operation_activity(const CpuOperationActivity& activity) override;
  void handle_device_annotation_activity(const DeviceAnnotationActivity& activity) override;
  Result<> flush(const LinkSummary& so_far) override;
  Result<> end(const LinkSummary& summary) override;

  /// Complete after `end`; `path` and `bytes` are for the owner of `write` to fill in.
  const ExportSummary& summary() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::profiler
