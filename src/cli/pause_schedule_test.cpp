#include "cli/pause_schedule.hpp"

#include <gtest/gtest.h>

namespace xpu::cli {
namespace {

constexpr std::uint64_t kStart = 1'000;

TEST(PauseSchedule, WithoutOptionsRecordsFromStartToEnd) {
  PauseSchedule schedule({}, kStart);
  EXPECT_FALSE(schedule.paused());
  EXPECT_FALSE(schedule.advance(kStart + 1'000'000'000'000));
  EXPECT_FALSE(schedule.paused());
}

TEST(PauseSchedule, ADelayEndsOnce) {
  const PauseSchedule::Options options{.delay_ns = 500, .duration_ns = {}, .start_paused = false};
  EXPECT_TRUE(PauseSchedule::starts_paused(options));
  PauseSchedule schedule(options, kStart);
  EXPECT_TRUE(schedule.paused());
  EXPECT_EQ(schedule.next_ns(), kStart + 500);
  EXPECT_FALSE(schedule.advance(kStart + 499));
  EXPECT_TRUE(schedule.advance(kStart + 500));
  EXPECT_FALSE(schedule.paused());
  EXPECT_FALSE(schedule.advance(kStart + 1'000'000));
}

TEST(PauseSchedule, TheDurationCountsFromTheEndOfTheDelay) {
  PauseSchedule schedule({.delay_ns = 500, .duration_ns = 100, .start_paused = false}, kStart);
  EXPECT_TRUE(schedule.advance(kStart + 510));
  EXPECT_EQ(schedule.next_ns(), kStart + 610);
  EXPECT_TRUE(schedule.advance(kStart + 610));
  EXPECT_TRUE(schedule.paused());
  EXPECT_FALSE(schedule.advance(kStart + 1'000'000));
}

TEST(PauseSchedule, ADurationWithoutDelayCountsFromTheStart) {
  PauseSchedule schedule({.delay_ns = 0, .duration_ns = 100, .start_paused = false}, kStart);
  EXPECT_FALSE(schedule.paused());
  EXPECT_TRUE(schedule.advance(kStart + 100));
  EXPECT_TRUE(schedule.paused());
}

TEST(PauseSchedule, APausedStartWaitsForTheSignalForEver) {
  PauseSchedule schedule({.delay_ns = 0, .duration_ns = 100, .start_paused = true}, kStart);
  EXPECT_TRUE(schedule.paused());
  EXPECT_FALSE(schedule.advance(kStart + 1'000'000));
  schedule.toggle(kStart + 2'000'000);
  EXPECT_FALSE(schedule.paused());
  EXPECT_TRUE(schedule.advance(kStart + 2'000'100));
  EXPECT_TRUE(schedule.paused());
}

TEST(PauseSchedule, PausingByHandForgetsTheRestOfTheDuration) {
  PauseSchedule schedule({.delay_ns = 0, .duration_ns = 100, .start_paused = false}, kStart);
  schedule.toggle(kStart + 10);
  EXPECT_TRUE(schedule.paused());
  EXPECT_FALSE(schedule.advance(kStart + 100));
}

}  // namespace
}  // namespace xpu::cli
