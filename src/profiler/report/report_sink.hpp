#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/report/annotated_ranges.hpp"
#include "profiler/report/memory_usage.hpp"
#include "profiler/report/range_usage.hpp"
#include "profiler/report/statistics.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/sink.hpp"

namespace xpu::profiler {

/// Gathers activities into a `Report`. Memory: 16 bytes per timed command for exact percentiles, 16 for the busy time and 24
/// for ranges, 48 per event of memory.
///
/// Everything is summed up under keys that do not depend on the order of arrival, and put into order at the end.
class ReportSink final : public Sink {
 public:
  explicit ReportSink(ReportOptions::By by) : by_(by) {}

  void begin(const SessionInfo& info) override;
  void handle_runtime_activity(const RuntimeActivity& activity) override;
  void handle_kernel_activity(const KernelActivity& activity) override;
  void handle_memcpy_activity(const MemcpyActivity& activity) override;
  void handle_memset_activity(const MemsetActivity& activity) override;
  void handle_command_activity(const CommandActivity& activity) override;
  void handle_synchronization_activity(const SynchronizationActivity& activity) override;
  void handle_overhead_activity(const OverheadActivity& activity) override;
  void handle_memory_activity(const MemoryActivity& activity) override { memory_.add(activity); }
  void handle_annotation_activity(const AnnotationActivity& activity) override { ranges_.add(activity); }

  /// After the session has run: everything but the books and the name of the recording.
  Report take_report();

 private:
  struct GroupKey {
    std::string name;
    std::uint32_t device = 0, process = 0, queue = 0, thread = 0;  // indices; 0 where the grouping does not ask
    auto operator<=>(const GroupKey&) const = default;
  };
  struct Group {
    std::string raw_name;
    std::optional<std::uint32_t> device;
    const QueueDefinition* queue = nullptr;
    const ThreadDefinition* thread = nullptr;
    const ProcessDefinition* process = nullptr;
    std::uint64_t calls = 0, failed = 0, total_ns = 0;
    std::vector<std::uint64_t> durations_ns;
    std::vector<std::int64_t> delays_ns;
    std::unordered_map<const GeometryDefinition*, std::uint64_t> geometries;
  };
  struct TransferSums {
    std::uint64_t calls = 0, failed = 0, bytes = 0, timed = 0, total_ns = 0, rated_bytes = 0, rated_ns = 0;
    bool bytes_known = false;
  };
  struct ApiSums {
    std::uint64_t calls = 0, failed = 0, timed = 0, total_ns = 0, max_ns = 0;
    bool waits = false;
  };
  struct DeviceSums {
    std::vector<Interval> busy;
    std::optional<std::int64_t> first_ns, last_ns;
    std::uint64_t commands = 0;
    std::uint64_t kernel_ns = 0;
    const ClockDefinition* own_clock = nullptr;  // of commands that could not be placed in host time
    bool incomparable = false;                   // times of more than one clock
  };
  Group& group_of(const KernelActivity& activity);
  void add_command(const DeviceActivity& activity);
  static void add_transfer(TransferSums& sums, const DeviceActivity& activity, std::optional<std::uint64_t> bytes, bool is_rated = true);
  void add_call(const NameDefinition& name, const ThreadDefinition& thread, const Activity& activity, bool duration_known, bool failed,
                std::int32_t result, bool waits);
  DeviceSums& device_sums(const DeviceActivity& activity);

  std::vector<Report::Device> take_devices();
  std::vector<Report::Kernel> take_kernels();
  std::vector<Report::Api> take_api() const;
  std::vector<Report::Clock> take_clocks() const;

  const ReportOptions::By by_;
  const Definitions* definitions_ = nullptr;
  const trace::Manifest* manifest_ = nullptr;
  std::map<GroupKey, Group> groups_;
  // The group of the last kernel seen under each definition: nearly every launch is found here, without comparing names.
  struct CachedGroup {
    const DeviceDefinition* device = nullptr;
    const QueueDefinition* queue = nullptr;
    const ThreadDefinition* thread = nullptr;
    Group* group = nullptr;
  };
  std::vector<CachedGroup> cached_;
  std::map<std::string, TransferSums> copies_, fills_;
  std::vector<DeviceSums> devices_;
  std::vector<ApiSums> api_;  // by name index
  std::vector<Report::Call> slowest_;
  std::map<std::pair<std::string, std::int32_t>, Report::Call> failed_;
  AnnotatedRanges ranges_;
  RangeUsage range_usage_;
  MemoryUsage memory_;
  struct OverheadSample {
    std::uint64_t duration_ns, count;
  };
  std::uint64_t overhead_ns() const;
  std::vector<OverheadSample> overhead_samples_;
};

}  // namespace xpu::profiler
