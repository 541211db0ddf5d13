#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/report/annotated_ranges.hpp"
#include "xpu/profiler/report.hpp"

namespace xpu::profiler {

/// What was submitted inside of annotated ranges, in any order. 24 bytes for each command.
class RangeUsage {
 public:
  /// Markers, barriers, and what the driver refused or nobody submitted are passed over.
  void add(const DeviceActivity& activity);
  /// A row for each name, and one for what belongs to no range; nothing when there are no ranges.
  std::vector<Report::Range> take(AnnotatedRanges& ranges);

 private:
  struct Submitted {
    std::int64_t submitted_ns;
    std::uint64_t duration_ns;
    bool is_timed;
  };
  using Rows = std::map<std::string, Report::Range>;

  static void add_host_times(const std::vector<AnnotatedRange>& ranges, Rows& rows);
  static void add_device_times(const std::vector<AnnotatedRange>& ranges, std::vector<Submitted>& commands, Rows& rows);

  std::unordered_map<const ThreadDefinition*, std::vector<Submitted>> commands_;
};

}  // namespace xpu::profiler
