#pragma once

#include <cstdint>
#include <vector>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"

namespace xpu::trace {

/// "Between `host_before_ns` and `host_after_ns` the device clock showed `device_ticks`, give or take `error_ps`."
struct ClockPoint {
  std::uint64_t host_before_ns = 0, host_after_ns = 0, device_ticks = 0;
  std::uint32_t error_ps = 0;
};

/// How a device counts.
struct TickUnit {
  std::uint32_t numerator = 1, denominator = 1;  ///< Nanoseconds per tick.
  std::uint32_t valid_bits = 64;                 ///< The counter wraps at 2^valid_bits.
};

/// A host time with the half-width of the interval that surely contains the true one.
struct MappedTime {
  std::int64_t host_ns = 0;
  std::uint64_t error_ns = 0;
};

/// Maps device ticks to host time from clock readings: pure arithmetic, no clock is read. Immutable once built, thread-safe.
///
/// Between two readings the device's rate is the line through them; a reading's own uncertainty is half its bracket plus one tick; the bound grows by
/// 100 ppm x the distance to the nearer reading, which covers drift that changes between readings. One reading: nominal rate. None: not usable.
/// Readings that contradict the others (a bracket that no line within 100 ppm x distance of its neighbours crosses) split the map: a step of the clock.
class XPU_EXPORT ClockMap {
 public:
  ClockMap() = default;
  /// Readings in any order.
  ClockMap(std::vector<ClockPoint> points, TickUnit unit);

  bool usable() const noexcept { return !points_.empty(); }
  std::size_t readings() const noexcept { return points_.size(); }

  /// `near_host_ns` (any host time within half a wrap of the true one, e.g. the submitting call's) resolves wrap when valid_bits < 64.
  MappedTime to_host(std::uint64_t ticks, std::uint64_t near_host_ns = 0) const;
  /// ticks -> nanoseconds of the device clock, for durations: exact to the rounding.
  std::uint64_t ticks_to_ns(std::uint64_t ticks) const noexcept;

  /// Narrowest bracket (host_after - host_before) and largest gap between neighbouring readings, ns; 0 when there are none.
  std::uint64_t narrowest_bracket_ns() const noexcept;
  std::uint64_t largest_gap_ns() const noexcept;

 private:
  std::vector<ClockPoint> points_;  // sorted by host time, device ticks unwrapped
  TickUnit unit_;
};

}  // namespace xpu::trace
