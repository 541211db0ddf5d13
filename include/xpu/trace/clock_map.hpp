#pragma once

#include <cstddef>
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

/// Maps device ticks to host time from clock readings: pure arithmetic on integers, no clock is read. Immutable once built, thread-safe.
///
/// What is believed, and what the bound therefore rests on: a reading is right within half its bracket, one tick and its `error_ps`; the
/// device's rate differs from the nominal one by at most 600 ppm where nothing better is known, and changes by at most 100 ppm within
/// the span that is bridged. Between two readings the time lies on the line through them and the bound is theirs, weighted by
/// distance, plus 100 ppm x the distance to the nearer one. Outside, the line goes on at the rate of the nearest pair that determines
/// it, or at the nominal rate when none does better. A reading that others, further away, determine better than it does itself is
/// passed over, so that a wide bracket never widens the result.
///
/// Readings that no such clock can have made split the map: a step. Between the two sides of a step the bound covers both. A single
/// reading that contradicts both of its neighbours, which agree with each other, is dropped.
class XPU_EXPORT ClockMap {
 public:
  ClockMap() = default;
  /// Readings in any order. Impossible ones (end before start) are ignored. With a unit of 0, or readings that contradict each other more
  /// than 64 times, the map is not usable.
  ClockMap(std::vector<ClockPoint> points, TickUnit unit);
  /// Of a device whose ticks are nanoseconds of the host clock itself: the bound is a tick, wherever readings are. They are counted only.
  static ClockMap of_host_clock(std::size_t readings) noexcept;

  bool usable() const noexcept { return is_host_clock_ || !segments_.empty(); }
  /// Readings that took part.
  std::size_t readings() const noexcept { return readings_; }
  /// Times that the clock was seen to jump.
  std::size_t steps() const noexcept { return segments_.empty() ? 0 : segments_.size() - 1; }

  /// `near_host_ns` (any host time within half a wrap of the true one, e.g. the submitting call's; 0 = unknown, then one near the readings
  /// is assumed) resolves the wrap of the counter. Where a clock was set back, so that it showed the same ticks more than once,
  /// the first time that is not before `near_host_ns` is meant. Not usable: {0, the largest number}.
  MappedTime to_host(std::uint64_t ticks, std::uint64_t near_host_ns = 0) const noexcept;
  /// ticks -> nanoseconds of the device clock, for durations: exact to the rounding (down). Saturates.
  std::uint64_t ticks_to_ns(std::uint64_t ticks) const noexcept;

  /// Narrowest bracket (host_after - host_before) and largest gap between neighbouring readings, ns; 0 when there are none.
  std::uint64_t narrowest_bracket_ns() const noexcept { return narrowest_bracket_ns_; }
  std::uint64_t largest_gap_ns() const noexcept { return largest_gap_ns_; }

 private:
  friend class ClockMapBuilder;

  // A ratio as multiplier / 2^shift, to 62 bits: a multiplication in place of a division of 128 bits for every stamp of a recording.
  struct Scale {
    std::uint64_t multiplier = 0;
    std::int32_t shift = 0;
    bool negative = false;
  };
  // A point of the polyline: at offsets_[i] ticks after the first reading the host showed `host_ns`, give or take `error_ns`. From here to
  // the next point the host's time grows by `slope` and the error by `widening` per tick.
  struct Anchor {
    std::int64_t host_ns = 0, error_ns = 0;
    Scale slope, widening;
  };
  // How a segment goes on beyond its end, per tick: the host's time, and the bound.
  struct Rate {
    Scale slope, growth;
  };
  // A stretch without a step: anchors_[first] to anchors_[last].
  struct Segment {
    std::size_t first = 0, last = 0;
    Rate before, after;
  };

  std::int64_t unwrap(std::uint64_t ticks, std::uint64_t near_host_ns) const noexcept;
  MappedTime at(const Segment& segment, std::int64_t offset) const noexcept;
  MappedTime across_steps(std::int64_t offset, std::int64_t near_host_ns) const noexcept;

  std::vector<std::int64_t> offsets_;  // apart from the rest of the anchors, because they are searched
  std::vector<Anchor> anchors_;
  std::vector<Segment> segments_;
  TickUnit unit_;
  Scale drift_, ticks_per_ns_;     // 100 ppm per tick; nominal
  std::uint64_t first_ticks_ = 0;  // offset 0
  std::size_t readings_ = 0;
  std::uint64_t narrowest_bracket_ns_ = 0, largest_gap_ns_ = 0;
  bool is_host_clock_ = false;
};

}  // namespace xpu::trace
