#pragma once

#include <algorithm>
#include <cstdint>

#include "xpu/drivers/sim.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::sim {

/// Where virtual time ends: sums stop there and do not overflow.
inline constexpr Time kEndOfTime = std::chrono::hours(24 * 100);

/// `length` after `begin`; both at least 0.
constexpr Time later(Time begin, Time length) { return length >= kEndOfTime - begin ? kEndOfTime : begin + length; }

/// What the clock of one device shows when. Immutable, thread-safe.
class DeviceClock {
 public:
  explicit DeviceClock(const Clock& clock) : clock_(clock) {}

  std::uint64_t ticks(Time at) const noexcept;
  /// The nominal values: drift and jumps are for others to find out.
  hal::ClockInfo info() const noexcept;
  /// A reading at `at`, which is the middle of its bracket; in host times from `origin_ns` on, none before it.
  hal::ClockReading read(Time at, std::uint64_t origin_ns) const noexcept;

 private:
  const Clock clock_;
};

}  // namespace xpu::drivers::sim
