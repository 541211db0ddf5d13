#include "null_driver/null_clock.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace xpu::null_driver {
namespace {

ClockParameters clock_with(std::int64_t skew_ns, double drift_ppm, std::uint64_t tick_ns) {
  ClockParameters clock;
  clock.skew_ns = skew_ns;
  clock.drift_ppm = drift_ppm;
  clock.tick_ns = tick_ns;
  return clock;
}

const ClockParameters kClocks[] = {
    clock_with(0, 0, 1),        clock_with(123'456'789, 0, 1), clock_with(-1'000'000'000, 0, 1),
    clock_with(0, 40, 1),       clock_with(0, -40, 1),         clock_with(0, 0, 52),
    clock_with(777, 100, 1000), clock_with(-777, -100, 83),    clock_with(-3'600'000'000'000, 50'000, 1'000'000),
    clock_with(5, -50'000, 7),  clock_with(1, 0.001, 16),
};

TEST(NullClockTest, WithoutParametersTheDeviceClockIsTheHostClock) {
  EXPECT_EQ(device_from_host(ClockParameters{}, 0), 0u);
  EXPECT_EQ(device_from_host(ClockParameters{}, 987'654'321'012), 987'654'321'012u);
}

TEST(NullClockTest, SkewDriftAndTickAreAppliedInThisOrder) {
  EXPECT_EQ(device_from_host(clock_with(-500, 0, 1), 10'000), 9'500u);
  EXPECT_EQ(device_from_host(clock_with(0, 100, 1), 10'000'500), 10'001'500u);
  EXPECT_EQ(device_from_host(clock_with(0, -100, 1), 10'000'500), 9'999'500u);
  EXPECT_EQ(device_from_host(clock_with(30, 100, 1000), 9'999'500), 10'000'000u);
}

TEST(NullClockTest, EveryDeviceTimeLeadsBackToTheHostTimesThatShowIt) {
  std::mt19937_64 random(1);
  for (const ClockParameters& clock : kClocks) {
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t host_ns = 4'000'000'000'000 + random() % 1'000'000'000'000'000;
      const std::uint64_t device = device_from_host(clock, host_ns);
      const HostRange range = host_from_device(clock, device);
      ASSERT_TRUE(range.contains(host_ns)) << host_ns << " with drift " << clock.drift_ppm << " tick " << clock.tick_ns;
      ASSERT_EQ(device_from_host(clock, range.first_ns), device);
      ASSERT_EQ(device_from_host(clock, range.last_ns), device);
      ASSERT_NE(device_from_host(clock, range.first_ns - 1), device);
      ASSERT_NE(device_from_host(clock, range.last_ns + 1), device);
    }
  }
}

TEST(NullClockTest, ADeviceTimeThatWasNeverShownHasNoHostTime) {
  EXPECT_TRUE(host_from_device(clock_with(0, 0, 1000), 5'000'500).empty());
  EXPECT_FALSE(host_from_device(clock_with(0, 0, 1000), 5'000'000).empty());
}

TEST(NullClockTest, DeviceTimeNeverRunsBackwardWithoutAStep) {
  for (const ClockParameters& clock : kClocks) {
    std::uint64_t last = device_from_host(clock, 9'000'000'000'000);
    for (std::uint64_t host_ns = 9'000'000'000'001; host_ns < 9'000'000'003'000; ++host_ns) {
      const std::uint64_t device = device_from_host(clock, host_ns);
      ASSERT_GE(static_cast<std::int64_t>(device - last), 0);
      last = device;
    }
  }
}

TEST(NullClockTest, AStepMovesTheClockFromItsHostTimeOn) {
  ClockParameters clock;
  clock.step_ns = -1000;
  clock.step_at_host_ns = 50'000;
  EXPECT_EQ(device_from_host(clock, 49'999), 49'999u);
  EXPECT_EQ(device_from_host(clock, 50'000), 49'000u);
  // 49 500 was shown twice: before the step and after it.
  EXPECT_TRUE(host_from_device(clock, 49'500, false).contains(49'500));
  EXPECT_TRUE(host_from_device(clock, 49'500, true).contains(50'500));
  EXPECT_TRUE(host_from_device(clock, 50'500, false).empty());
}

TEST(NullClockTest, ParametersComeFromTheEnvironment) {
  setenv("XPU_NULL_SKEW_NS", "-12", 1);
  setenv("XPU_NULL_DRIFT_PPM", "-2.5", 1);
  setenv("XPU_NULL_TICK_NS", "0", 1);
  const ClockParameters clock = clock_parameters_from_environment();
  EXPECT_EQ(clock.skew_ns, -12);
  EXPECT_EQ(clock.drift_ppm, -2.5);
  EXPECT_EQ(clock.tick_ns, 1u) << "a tick of 0 would divide by 0";
}

}  // namespace
}  // namespace xpu::null_driver
