#pragma once

#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

/// The device clock of the null driver as arithmetic. The driver and the tests include this one file, so a test that knows the environment
/// of a run knows the true host time of every device time stamp in it.
///
///     device(host) = floor_tick(host + trunc(host * drift_ppm / 1e6) + skew_ns + (host >= step_at_host_ns ? step_ns : 0))
///
/// `host` is CLOCK_MONOTONIC in nanoseconds, device time is in nanoseconds too (OpenCL has no other unit) and wraps at 2^64. The product is
/// taken in double precision: the same result in every process, and monotone in `host` for any drift above -100 000 ppm.
namespace xpu::null_driver {

struct ClockParameters {
  static constexpr std::uint64_t kNoStep = std::numeric_limits<std::uint64_t>::max();

  std::int64_t skew_ns = 0;   // XPU_NULL_SKEW_NS
  double drift_ppm = 0;       // XPU_NULL_DRIFT_PPM: the device clock runs this much faster than the host's
  std::uint64_t tick_ns = 1;  // XPU_NULL_TICK_NS: device times are multiples of it
  std::int64_t step_ns = 0;   // the jump of the fault step=NS@COUNT
  std::uint64_t step_at_host_ns =
      kNoStep;  // when it happened: only the driver knows (clNullStepHostTimeXPU, and the file of XPU_NULL_CALLS)
};

/// Nanoseconds of CLOCK_MONOTONIC: the host clock of everything in this driver.
inline std::uint64_t host_now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

/// The device's time stamp for what happened at `host_ns`.
inline std::uint64_t device_from_host(const ClockParameters& clock, std::uint64_t host_ns) noexcept {
  const auto drift = static_cast<std::int64_t>(static_cast<double>(host_ns) * (clock.drift_ppm * 1e-6));
  std::uint64_t device = host_ns + static_cast<std::uint64_t>(drift) + static_cast<std::uint64_t>(clock.skew_ns);
  if (host_ns >= clock.step_at_host_ns) device += static_cast<std::uint64_t>(clock.step_ns);
  if (clock.tick_ns > 1) device -= device % clock.tick_ns;
  return device;
}

/// Every host time of [first_ns, last_ns] has the same device time. Empty (first > last) where the device clock never showed that value.
struct HostRange {
  std::uint64_t first_ns = 1;
  std::uint64_t last_ns = 0;

  bool empty() const noexcept { return first_ns > last_ns; }
  bool contains(std::uint64_t host_ns) const noexcept { return first_ns <= host_ns && host_ns <= last_ns; }
};

/// The host times at which the device clock showed `device`: the exact inverse of device_from_host, drift and tick included. It looks at
/// one side of the step only (`after_step`), because a clock that is set back shows some values twice. Device times are compared modulo
/// 2^64 as signed differences, so skews that make the clock wrap are no special case.
inline HostRange host_from_device(const ClockParameters& clock, std::uint64_t device, bool after_step = false) noexcept {
  ClockParameters side = clock;
  side.step_at_host_ns = after_step ? 0 : ClockParameters::kNoStep;
  const auto difference = [&](std::uint64_t host_ns) { return static_cast<std::int64_t>(device_from_host(side, host_ns) - device); };

  const std::int64_t step = after_step ? clock.step_ns : 0;
  const std::uint64_t undrifted = device - static_cast<std::uint64_t>(clock.skew_ns) - static_cast<std::uint64_t>(step);
  const double guess = static_cast<double>(undrifted) / (1.0 + clock.drift_ppm * 1e-6);
  // Wide enough for the rounding of `guess` (2^-52 of it), one tick, and one nanosecond of truncation, all stretched by the drift.
  const std::uint64_t margin = 4 * clock.tick_ns + (undrifted >> 50) + 64;
  const auto middle = static_cast<std::uint64_t>(guess);
  const std::uint64_t low = middle > margin ? middle - margin : 0;
  const std::uint64_t high = middle + margin;

  // First host time in [low, high] whose difference is at least `least`; the function is monotone there.
  const auto first_with = [&](std::int64_t least) {
    std::uint64_t begin = low, end = high + 1;
    while (begin < end) {
      const std::uint64_t probe = begin + (end - begin) / 2;
      if (difference(probe) >= least) {
        end = probe;
      } else {
        begin = probe + 1;
      }
    }
    return begin;
  };
  HostRange range{first_with(0), first_with(1) - 1};
  if (after_step && range.first_ns < clock.step_at_host_ns) range.first_ns = clock.step_at_host_ns;
  if (!after_step && range.last_ns >= clock.step_at_host_ns) range.last_ns = clock.step_at_host_ns - 1;
  if (range.empty() || difference(range.first_ns) != 0) return {};
  return range;
}

/// Parameters from the environment of the calling process; the step of XPU_NULL_FAULTS is left out, its moment is not in the environment.
inline ClockParameters clock_parameters_from_environment() noexcept {
  ClockParameters clock;
  if (const char* text = std::getenv("XPU_NULL_SKEW_NS")) clock.skew_ns = std::strtoll(text, nullptr, 0);
  if (const char* text = std::getenv("XPU_NULL_DRIFT_PPM")) clock.drift_ppm = std::strtod(text, nullptr);
  if (const char* text = std::getenv("XPU_NULL_TICK_NS")) {
    const std::uint64_t tick = std::strtoull(text, nullptr, 0);
    clock.tick_ns = tick == 0 ? 1 : tick;
  }
  return clock;
}

}  // namespace xpu::null_driver
