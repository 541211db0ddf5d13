#pragma once

#include <cstdint>
#include <ctime>

#include "xpu/base/export.hpp"

namespace xpu {

/// Which clock a host time was read from. The numbers are written to recordings.
enum class ClockDomain : std::uint32_t { unknown = 0, monotonic = 1, monotonic_raw = 2, realtime = 3, device = 4 };

/// "monotonic", "monotonic_raw", "realtime", "device" or "unknown".
XPU_EXPORT const char* to_string(ClockDomain domain) noexcept;

/// Nanoseconds of a host clock; 0 for `unknown` and `device`. Any thread; about 30 ns.
inline std::uint64_t now_ns(ClockDomain domain = ClockDomain::monotonic) noexcept {
  clockid_t id = CLOCK_MONOTONIC;
  switch (domain) {
    case ClockDomain::monotonic: id = CLOCK_MONOTONIC; break;
    case ClockDomain::monotonic_raw: id = CLOCK_MONOTONIC_RAW; break;
    case ClockDomain::realtime: id = CLOCK_REALTIME; break;
    case ClockDomain::unknown:
    case ClockDomain::device: return 0;
  }
  timespec time;  // none of the three clocks can fail
  clock_gettime(id, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace xpu
