#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Writes activities as a trace in Perfetto's own format (Protocol Buffers), as a stream: memory does not grow with their number. One owner
/// at a time.
///
/// Calls, waits and ranges are slices on a track per thread. Commands are GPU render stages on a hardware queue per queue in a process,
/// with hardware queues of their own ("queue 1 (overlap 1)") for commands that ran while another one of the queue did: none covers another.
/// What a queue did for annotations is on hardware queues beside it. The call names the command that it submitted; Perfetto draws the arrow
/// from version 55 on. Memory and the program's counters are counters of the process, losses are instants of it. Times are those of the
/// recording's clock, to the nanosecond.
class XPU_EXPORT PerfettoSink final : public Sink {
 public:
  struct Options {
    bool device_only = false;  ///< Only what ran on devices: no calls, no flows.
    std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  };
  /// Takes the trace piece by piece; after an error it is not called again and `end` returns the error.
  using Write = std::function<Result<>(std::string_view piece)>;

  PerfettoSink(Write write, Options options);
  ~PerfettoSink() override;

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
