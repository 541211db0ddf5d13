#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "xpu/profiler/sink.hpp"

namespace xpu::profiler::test_support {

/// Keeps a line of text for each activity that says all of it but the correlation, which depends on the order of handing over; a command
/// says which call it belongs to. Two sinks that were told the same in different orders have the same sorted lines.
///
/// Lanes of queues that run out of order depend on the order as well, and times and errors of clocks that are mapped on what was known
/// when: they are not in the lines. That no two commands of a lane overlap, and that a command follows its call, is looked at for all of
/// them.
class DescribedSink final : public Sink {
 public:
  struct Place {
    std::int64_t start_ns = 0;
    std::uint64_t error_ns = 0;
  };

  void begin(const SessionInfo& info) override;
  void handle_runtime_activity(const RuntimeActivity& activity) override;
  void handle_external_correlation_activity(const ExternalCorrelationActivity& activity) override;
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
  Result<> flush(const LinkSummary& so_far) override;
  Result<> end(const LinkSummary& summary) override;

  std::vector<std::string> sorted();
  /// Of the device whose clock is mapped, by the line of the call.
  const std::map<std::string, Place>& mapped() const { return mapped_; }
  const std::vector<std::uint64_t>& clock_readings() const { return clock_readings_; }
  int begins = 0, ends = 0, flushes = 0;
  /// What no sink should be told.
  std::vector<std::string> problems();

 private:
  struct Shown {
    std::int64_t start_ns, end_ns;
    bool operator<(const Shown& other) const { return start_ns < other.start_ns; }
  };
  void add_command(std::string_view kind, const DeviceActivity& activity, const std::string& more);

  const Definitions* definitions_ = nullptr;
  std::vector<std::string> lines_, problems_;
  std::map<std::string, Place> mapped_;
  std::map<std::pair<std::string, std::uint32_t>, std::vector<Shown>> lanes_;  // by queue and lane
  std::uint32_t last_correlation_ = 0;
  std::vector<std::uint64_t> clock_readings_;
};

}  // namespace xpu::profiler::test_support
