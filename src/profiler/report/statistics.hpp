#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xpu::profiler {

/// The nearest-rank percentile: the smallest value such that at least `percent` of all values are not above it. Reorders `values`, which
/// must not be empty; 0 < percent <= 100.
template <typename Value>
Value nearest_rank(std::vector<Value>& values, std::size_t percent) {
  const std::size_t rank = (values.size() * percent + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// sum / count to the nearest integer, halves up.
inline std::uint64_t rounded_average(std::uint64_t sum, std::uint64_t count) { return sum / count + (sum % count >= count - count / 2); }

struct Interval {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// How long at least one of the intervals lasted: the length of their union. Sorts them.
std::uint64_t union_length(std::vector<Interval>& intervals);

}  // namespace xpu::profiler
