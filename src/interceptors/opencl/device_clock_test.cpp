#include "interceptors/opencl/device_clock.hpp"

#include <gtest/gtest.h>

#include "interceptors/opencl/test_support/fake_driver.hpp"

namespace xpu::interceptors::opencl {
namespace {

class DeviceClockTest : public testing::Test {
 protected:
  /// A command that just ended, stamped by a clock that is `ahead` of the given host clock.
  void run_command(ClockDomain clock, std::uint64_t ahead_ns = 0) {
    WatchedCommand command;
    command.enter = HostMoment::now();
    const std::uint64_t queued = now_ns(clock) + ahead_ns;
    command.exit_ns = now_ns();
    const std::uint64_t end = now_ns(clock) + ahead_ns;
    clock_.observe(command, queued, end);
  }
  /// Half the width of a reading around the true host time, at most what the reading claims; false when the truth lies outside.
  static bool is_true_reading(const probe::ClockReading& reading, std::uint64_t device_ahead_ns) {
    const std::uint64_t true_host_ns = reading.device_ticks - device_ahead_ns;
    return reading.host_before_ns <= true_host_ns && true_host_ns <= reading.host_after_ns;
  }

  FakeDriver driver_;
  ScriptedSubscriber subscriber_;
  DeviceClock clock_;
};

TEST_F(DeviceClockTest, ReadsTheTimerOfADriverThatHasOne) {
  constexpr std::uint64_t kAhead = 123'456'789;
  driver_.timer_ahead_ns = kAhead;
  clock_.open(nullptr, 3, true, 1);
  clock_.on_use();
  clock_.read();
  ASSERT_EQ(subscriber_.readings.size(), 2u);
  for (const auto& reading : subscriber_.readings) {
    EXPECT_EQ(reading.method, probe::ClockMethod::device_timer);
    EXPECT_EQ(reading.device, 3u);
    EXPECT_TRUE(is_true_reading(reading, kAhead));
  }
  EXPECT_EQ(driver_.timer_questions, 10) << "the narrowest of five, twice";
}

TEST_F(DeviceClockTest, ReadsOnceAtFirstUse) {
  clock_.open(nullptr, 3, true, 1);
  clock_.on_use();
  clock_.on_use();
  EXPECT_EQ(subscriber_.readings.size(), 1u);
}

TEST_F(DeviceClockTest, ReadsOnTheWayWhenTheLastReadingIsOld) {
  clock_.open(nullptr, 3, true, 1);
  clock_.read_if_due();
  EXPECT_TRUE(subscriber_.readings.empty()) << "nobody uses the device";
  clock_.on_use();
  clock_.read_if_due();
  EXPECT_EQ(subscriber_.readings.size(), 1u);
  const std::uint64_t begin_ns = now_ns();
  while (subscriber_.readings.size() == 1 && now_ns() - begin_ns < 10'000'000'000) clock_.read_if_due();
  ASSERT_EQ(subscriber_.readings.size(), 2u);
  EXPECT_GE(subscriber_.readings[1].host_before_ns - subscriber_.readings[0].host_before_ns, 45'000'000u);
}

TEST_F(DeviceClockTest, BelievesATimerThatCommandsAgreeWith) {
  driver_.timer_ahead_ns = 5'000'000'000;
  clock_.open(nullptr, 3, true, 1);
  clock_.on_use();
  for (int index = 0; index < 10; ++index) run_command(ClockDomain::monotonic, 5'000'000'000);
  for (const auto& reading : subscriber_.readings) EXPECT_EQ(reading.method, probe::ClockMethod::device_timer);
}

TEST_F(DeviceClockTest, DoesNotBelieveATimerOfAnotherClockThanTheStamps) {
  driver_.timer_ahead_ns = 5'000'000'000;
  clock_.open(nullptr, 3, true, 1);
  clock_.on_use();
  for (int index = 0; index < 3; ++index) run_command(ClockDomain::monotonic, 0);
  clock_.read();
  EXPECT_EQ(clock_.domain(), ClockDomain::monotonic);
  EXPECT_EQ(subscriber_.readings.back().method, probe::ClockMethod::host_clock);
  EXPECT_TRUE(is_true_reading(subscriber_.readings.back(), 0));
}

TEST_F(DeviceClockTest, FindsTheHostClockOfADriverWithoutATimer) {
  driver_.timer_result = CL_INVALID_OPERATION;
  clock_.open(nullptr, 3, true, 1);
  clock_.on_use();
  EXPECT_TRUE(subscriber_.readings.empty()) << "nothing is known before a command ended";
  run_command(ClockDomain::realtime);
  EXPECT_EQ(clock_.domain(), ClockDomain::realtime);
  ASSERT_EQ(subscriber_.readings.size(), 2u) << "the reading at first use, and one now";
  for (const auto& reading : subscriber_.readings) {
    EXPECT_EQ(reading.method, probe::ClockMethod::host_clock);
    EXPECT_LT(reading.host_after_ns - reading.host_before_ns, 1'000'000u);
  }
}

TEST_F(DeviceClockTest, DoesNotAskADriverThatIsTooOldForTheTimer) {
  clock_.open(nullptr, 3, false, 1);
  clock_.on_use();
  run_command(ClockDomain::monotonic);
  EXPECT_EQ(driver_.timer_questions, 0);
  EXPECT_EQ(clock_.domain(), ClockDomain::monotonic);
}

TEST_F(DeviceClockTest, TakesCommandsThemselvesWhenNoHostClockFits) {
  constexpr std::uint64_t kAhead = 77'000'000'000;
  clock_.open(nullptr, 3, false, 1);
  clock_.on_use();
  run_command(ClockDomain::monotonic, kAhead);
  run_command(ClockDomain::monotonic, kAhead);
  EXPECT_EQ(clock_.domain(), ClockDomain::unknown);
  ASSERT_EQ(subscriber_.readings.size(), 2u);
  for (const auto& reading : subscriber_.readings) {
    EXPECT_EQ(reading.method, probe::ClockMethod::command_bracket);
    EXPECT_TRUE(is_true_reading(reading, kAhead));
  }
}

TEST_F(DeviceClockTest, PublishesWhatItKeptWhenAHostClockNoLongerFits) {
  clock_.open(nullptr, 3, false, 1);
  clock_.on_use();
  for (int index = 0; index < 5; ++index) run_command(ClockDomain::monotonic);
  const std::size_t before = subscriber_.readings.size();
  run_command(ClockDomain::monotonic, 9'000'000'000);
  EXPECT_EQ(clock_.domain(), ClockDomain::unknown);
  ASSERT_GE(subscriber_.readings.size(), before + 5);
  EXPECT_EQ(subscriber_.readings.back().method, probe::ClockMethod::command_bracket);
  EXPECT_TRUE(is_true_reading(subscriber_.readings.back(), 9'000'000'000));
}

TEST_F(DeviceClockTest, KeepsABoundedNumberOfReadingsWhileItDoesNotKnow) {
  clock_.open(nullptr, 3, false, 1);
  for (int index = 0; index < 1'000; ++index) clock_.read();
  run_command(ClockDomain::monotonic);
  EXPECT_GE(subscriber_.readings.size(), 64u);
  EXPECT_LE(subscriber_.readings.size(), 200u);
}

}  // namespace
}  // namespace xpu::interceptors::opencl
