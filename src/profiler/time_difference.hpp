#pragma once

#include <cstdint>

namespace xpu::profiler {

/// a - b. Times out of a damaged recording may be anything; they wrap instead of overflowing.
inline std::int64_t difference_ns(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
/// start + duration, likewise.
inline std::int64_t end_ns(std::int64_t start_ns, std::uint64_t duration_ns) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_ns) + duration_ns);
}

}  // namespace xpu::profiler
