#include "profiler/report/statistics.hpp"

namespace xpu::profiler {

std::uint64_t union_length(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  std::uint64_t length = 0;
  std::int64_t covered_until = INT64_MIN;
  for (const Interval& interval : intervals) {
    const std::int64_t begin = std::max(interval.begin_ns, covered_until);
    if (interval.end_ns <= begin) continue;
    length += static_cast<std::uint64_t>(interval.end_ns - begin);
    covered_until = interval.end_ns;
  }
  return length;
}

}  // namespace xpu::profiler
