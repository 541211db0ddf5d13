#include "drivers/sim/device_clock.hpp"

#include <gtest/gtest.h>

#include "drivers/sim/test_support/sim_fixture.hpp"

namespace xpu::drivers::sim {
namespace {

using namespace std::chrono_literals;

TEST(DeviceClockTest, TheDefaultCountsNanoseconds) {
  const DeviceClock clock{Clock{}};
  EXPECT_EQ(clock.ticks(0s), 0u);
  EXPECT_EQ(clock.ticks(Time(1'999)), 1u);
  EXPECT_EQ(clock.ticks(24h), 86'400'000'000'000u);
}

TEST(DeviceClockTest, ATickThatIsNoWholePicosecondIsExact) {
  // 19.2 MHz: 625/12 ns.
  const DeviceClock clock{Clock{.tick_numerator = 625, .tick_denominator = 12}};
  EXPECT_EQ(clock.ticks(1s), 19'200'000u);
  EXPECT_EQ(clock.ticks(1s - Time(1)), 19'199'999u);
  EXPECT_EQ(clock.ticks(24h), 19'200'000ull * 86'400);
  EXPECT_EQ(clock.info().tick_numerator, 625u);
  EXPECT_EQ(clock.info().tick_denominator, 12u);
}

TEST(DeviceClockTest, DriftMakesItFastOrSlow) {
  EXPECT_EQ(DeviceClock(Clock{.drift_ppb = 20'000}).ticks(1s), 1'000'020'000u);
  EXPECT_EQ(DeviceClock(Clock{.drift_ppb = -500}).ticks(1s), 999'999'500u);
  EXPECT_EQ(DeviceClock(Clock{.drift_ppb = 1}).ticks(1s), 1'000'000'001u);
  EXPECT_EQ(DeviceClock(Clock{.drift_ppb = 1}).ticks(1s - 1ns), 999'999'999u);
}

TEST(DeviceClockTest, ItWraps) {
  const DeviceClock clock{Clock{.valid_bits = 32, .start_ticks = 0xffff'fff0}};
  EXPECT_EQ(clock.ticks(15ns), 0xffff'ffffu);
  EXPECT_EQ(clock.ticks(16ns), 0u);
  EXPECT_EQ(clock.ticks(Time(std::int64_t{1'000} << 32)), 0xffff'fff0u) << "once round";
  EXPECT_EQ(clock.info().valid_bits, 32u);
}

TEST(DeviceClockTest, ItJumpsAtTheProgrammedTimes) {
  const DeviceClock clock{Clock{.tick_numerator = 10, .steps = {{.at = 2s, .jump = -5us}, {.at = 1s, .jump = 1ms + 9ns}}}};
  EXPECT_EQ(clock.ticks(1s - Time(1)), 99'999'999u);
  EXPECT_EQ(clock.ticks(1s), 100'100'000u) << "9 ns are less than a tick and are not rounded up";
  EXPECT_EQ(clock.ticks(2s), 200'099'500u);
}

TEST(DeviceClockTest, AJumpBackBeyondItsStartWraps) {
  const DeviceClock clock{Clock{.valid_bits = 16, .steps = {{.at = 0s, .jump = -1ns}}}};
  EXPECT_EQ(clock.ticks(0s), 0xffffu);
  EXPECT_EQ(clock.ticks(1ns), 0u);
}

TEST(DeviceClockTest, AtTheEndOfTimeItStillCounts) {
  EXPECT_EQ(DeviceClock(Clock{}).ticks(kEndOfTime), 100ull * 86'400'000'000'000);
  const DeviceClock finest{Clock{.tick_denominator = 0xffff'ffff, .drift_ppb = 100'000'000}};
  EXPECT_NE(finest.ticks(kEndOfTime), finest.ticks(kEndOfTime - Time(1)));
}

TEST(DeviceClockTest, SumsOfTimesStopAtTheEndOfTime) {
  EXPECT_EQ(later(kEndOfTime, Time::max()), kEndOfTime);
  EXPECT_EQ(later(kEndOfTime - 1s, 2s), kEndOfTime);
  EXPECT_EQ(later(1s, 2s), 3s);
}

TEST(DeviceClockTest, AReadingIsTakenInTheMiddleOfItsBracket) {
  SimDeviceUnderTest sim(program_of("origin 1000s\nclock bracket=300ns drift=10ppm"));
  advance_time(*sim.device, 1s).value();
  const hal::ClockReading reading = sim.device->read_clock().value();
  EXPECT_EQ(reading.host_before_ns, 1'000'999'999'850u);
  EXPECT_EQ(reading.host_after_ns, 1'001'000'000'150u);
  EXPECT_EQ(reading.ticks, 1'000'010'000u);
}

TEST(DeviceClockTest, HostTimesOfAReadingAreRoundedOutwards) {
  const hal::ClockReading reading = DeviceClock(Clock{.bracket = 2ns}).read(Time(2'500), 100);
  EXPECT_EQ(reading.host_before_ns, 101u);
  EXPECT_EQ(reading.host_after_ns, 104u);
  EXPECT_EQ(DeviceClock(Clock{.bracket = 2ns}).read(Time(0), 0).host_before_ns, 0u) << "and not before the origin";
}

TEST(DeviceClockTest, WithoutAProgrammedOriginHostTimesBeginWhenTheFirstDeviceIsOpened) {
  const std::uint64_t before_ns = now_ns();
  SimDeviceUnderTest sim(program_of("devices 2"));
  const std::uint64_t after_ns = now_ns();
  const auto other = sim.driver->open_device(1).value();
  const hal::ClockReading reading = sim.device->read_clock().value();
  EXPECT_GE(reading.host_before_ns, before_ns);
  EXPECT_LE(reading.host_before_ns, after_ns);
  EXPECT_EQ(other->read_clock().value().host_before_ns, reading.host_before_ns);
}

TEST(DeviceClockTest, AKernelOverAWrapHasTheRightDurationModuloTheWrap) {
  SimDeviceUnderTest sim(program_of("clock bits=16 start=65535\nkernel duration=30us"));
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 1);
  queue->synchronize_blocking().value();
  const hal::Ticks ticks = sim.sink.of(1).ticks;
  EXPECT_EQ(ticks.queued, 65'535u);
  EXPECT_EQ(ticks.submit, 1'999u);
  EXPECT_EQ(ticks.end, 34'999u);
}

}  // namespace
}  // namespace xpu::drivers::sim
