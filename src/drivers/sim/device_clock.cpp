#include "drivers/sim/device_clock.hpp"

namespace xpu::drivers::sim {
namespace {

// 2^63 ps x 1.1 x 10^9 x 2^32 is below 2^126, so that the only rounding is the last division.
__extension__ using WideTicks = __int128;

constexpr std::int64_t kBillionParts = 1'000'000'000;
constexpr std::int64_t kPicosecondsPerNanosecond = 1000;

}  // namespace

std::uint64_t DeviceClock::ticks(Time at) const noexcept {
  const WideTicks tick_ps_times_denominator = WideTicks{clock_.tick_numerator} * kPicosecondsPerNanosecond;
  WideTicks ticks =
      WideTicks{at.count()} * (kBillionParts + clock_.drift_ppb) * clock_.tick_denominator / (tick_ps_times_denominator * kBillionParts);
  for (const ClockStep& step : clock_.steps) {
    if (step.at <= at) ticks += WideTicks{step.jump.count()} * clock_.tick_denominator / tick_ps_times_denominator;
  }
  const std::uint64_t mask = clock_.valid_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << clock_.valid_bits) - 1;
  return (clock_.start_ticks + static_cast<std::uint64_t>(ticks)) & mask;
}

hal::ClockInfo DeviceClock::info() const noexcept {
  return {.tick_numerator = clock_.tick_numerator, .tick_denominator = clock_.tick_denominator, .valid_bits = clock_.valid_bits};
}

hal::ClockReading DeviceClock::read(Time at, std::uint64_t origin_ns) const noexcept {
  // Rounded outwards: what is claimed of the two host times stays true.
  const std::int64_t begin_ps = std::max(Time(0), at - clock_.bracket / 2).count();
  const std::int64_t end_ps = later(at, clock_.bracket / 2).count() + kPicosecondsPerNanosecond - 1;
  return {.host_before_ns = origin_ns + static_cast<std::uint64_t>(begin_ps / kPicosecondsPerNanosecond),
          .host_after_ns = origin_ns + static_cast<std::uint64_t>(end_ps / kPicosecondsPerNanosecond),
          .ticks = ticks(at)};
}

}  // namespace xpu::drivers::sim
