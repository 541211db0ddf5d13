#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "xpu/base/clock.hpp"

namespace xpu::interceptors::opencl {

/// The host clocks that a driver may take its time stamps from.
inline constexpr std::array kHostClocks = {ClockDomain::monotonic, ClockDomain::monotonic_raw, ClockDomain::realtime};

/// One moment, shown by every host clock: each was read some time between `before_ns` and `after_ns` of the monotonic one.
struct HostMoment {
  std::uint64_t before_ns = 0, after_ns = 0;
  std::array<std::uint64_t, kHostClocks.size()> shown_ns{};  ///< In the order of kHostClocks.

  /// The narrowest of `tries`.
  static HostMoment now(int tries = 1) noexcept;
};

/// What is surely true of one command: it was queued after `enter`, and had ended when it was `seen`.
struct CommandObservation {
  HostMoment enter, seen;
  std::uint64_t queued_ticks = 0, end_ticks = 0;
};

/// Finds the host clock that a device's time stamps are taken from, for drivers that have no timer to ask: the one for which every
/// observed command was queued after it entered and had ended when it was seen to. Arithmetic only.
class HostClockSearch {
 public:
  /// Stamps are multiples of `tick_ns` and may be that much early.
  explicit constexpr HostClockSearch(std::uint64_t tick_ns = 1) noexcept : tick_ns_(tick_ns) {}

  /// False when this observation ruled out the clock that was `found` before.
  bool observe(const CommandObservation& observation) noexcept;

  /// unknown: nothing was observed yet, or no host clock fits.
  ClockDomain found() const noexcept;
  /// No host clock fits: the device counts for itself.
  bool is_hopeless() const noexcept { return possible_ == 0; }
  /// How far apart the clocks are that all still fit: what a reading of the one that is `found` may be wrong by. Mostly 0, because one
  /// observation is enough when the clocks differ by more than a command takes.
  std::uint64_t ambiguity_ns(const HostMoment& moment) const noexcept;
  std::size_t index_found() const noexcept;

 private:
  static constexpr std::uint32_t kAll = (1u << kHostClocks.size()) - 1;

  bool is_possible(std::size_t index) const noexcept { return (possible_ >> index & 1u) != 0; }

  std::uint64_t tick_ns_;
  std::uint32_t possible_ = kAll;
  bool has_observed_ = false;
};

}  // namespace xpu::interceptors::opencl
