#pragma once

#include <libkineto.h>
#include <output_base.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "xpu/base/clock.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu_torch {

/// Turns activities into Kineto's: calls of the runtime on the threads' rows, commands on rows of their device, an arrow between the two,
/// each linked to the operator whose number it carries. Times become nanoseconds of the time of day.
class KinetoSink final : public xpu::profiler::Sink {
 public:
  /// `linked` gives Kineto's operator of a number; `begin_ns` and `end_ns` are what Kineto asked for.
  KinetoSink(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, std::int64_t begin_ns, std::int64_t end_ns,
             xpu::ClockDomain domain);

  void handle_runtime_activity(const xpu::profiler::RuntimeActivity& activity) override;
  void handle_kernel_activity(const xpu::profiler::KernelActivity& activity) override;
  void handle_memcpy_activity(const xpu::profiler::MemcpyActivity& activity) override;
  void handle_memset_activity(const xpu::profiler::MemsetActivity& activity) override;
  void handle_overhead_activity(const xpu::profiler::OverheadActivity& activity) override;

  /// What was made, once.
  std::unique_ptr<libkineto::CpuTraceBuffer> take_buffer() { return std::move(buffer_); }
  std::vector<libkineto::ResourceInfo> rows() const;
  /// A sentence for what is not in the trace; none where all is.
  std::vector<std::string> warnings() const;

 private:
  libkineto::GenericTraceActivity& add(libkineto::ActivityType type, const std::string& name, const xpu::profiler::Activity& activity,
                                       std::span<const xpu::profiler::ExternalId> ids);
  libkineto::GenericTraceActivity* add_command(libkineto::ActivityType type, const std::string& name,
                                               const xpu::profiler::DeviceActivity& activity);
  void hand_over(const libkineto::GenericTraceActivity& activity);

  libkineto::ActivityLogger& logger_;
  const libkineto::getLinkedActivityCallback linked_;
  const std::int64_t begin_ns_, end_ns_;
  const std::int64_t to_realtime_ns_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> rows_;  // device and row
  std::uint64_t outside_ = 0, unplaced_ = 0;
};

}  // namespace xpu_torch
