#include "xpu/profiler/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xpu::profiler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum ScheduleState;

constexpr std::int64_t kUnixMs = 1'790'000'000'000;

Schedule planned(const Config& config, std::optional<std::uint64_t> iterations = std::nullopt, std::int64_t ms = 0) {
  return Schedule::plan(config, {ms, kUnixMs, iterations}).value();
}
/// The states after so many steps, all at the same time.
std::vector<ScheduleState> steps(Schedule& schedule, int count) {
  std::vector<ScheduleState> states;
  for (int i = 0; i < count; ++i) states.push_back(schedule.step(0));
  return states;
}

TEST(ScheduleTest, WarmsUpAndCollectsForSomeTime) {
  Schedule schedule = planned({.duration = milliseconds(500), .warmup_duration = seconds(5)}, std::nullopt, 100);
  EXPECT_EQ(schedule.state(), warmup);
  EXPECT_EQ(schedule.next_change_ms(), 5'100);
  EXPECT_EQ(schedule.advance(5'099), warmup);
  EXPECT_EQ(schedule.advance(5'100), collecting);
  EXPECT_EQ(schedule.next_change_ms(), 5'600);
  EXPECT_EQ(schedule.advance(5'599), collecting);
  EXPECT_EQ(schedule.advance(5'600), ended);
  EXPECT_EQ(schedule.next_change_ms(), std::nullopt);
  EXPECT_EQ(schedule.advance(99'999), ended);
  EXPECT_THAT(schedule.remarks(), IsEmpty());
}

TEST(ScheduleTest, WithoutWarmUpItCollectsAtOnce) {
  Schedule schedule = planned({.duration = milliseconds(10), .warmup_duration = seconds(0)});
  EXPECT_EQ(schedule.state(), collecting);
  EXPECT_EQ(schedule.next_change_ms(), 10);
}

TEST(ScheduleTest, AStartInTheFutureIsWaitedForAndWarmedUpBefore) {
  Schedule schedule = planned({.warmup_duration = seconds(2), .start_time_unix_ms = kUnixMs + 10'000}, std::nullopt, 1'000);
  EXPECT_EQ(schedule.state(), waiting);
  EXPECT_EQ(schedule.next_change_ms(), 9'000);
  EXPECT_EQ(schedule.advance(9'000), warmup);
  EXPECT_EQ(schedule.advance(11'000), collecting);
  EXPECT_THAT(schedule.remarks(), IsEmpty());
}

TEST(ScheduleTest, AStartThatIsNearShortensTheWarmUp) {
  Schedule schedule = planned({.warmup_duration = seconds(5), .start_time_unix_ms = kUnixMs + 1'500});
  EXPECT_EQ(schedule.state(), warmup);
  EXPECT_EQ(schedule.next_change_ms(), 1'500);
  EXPECT_THAT(schedule.remarks(), ElementsAre("there are 1500 ms until the start for a warm-up of 5000"));
}

TEST(ScheduleTest, ALateStartIsSaidAndALongPastOneIsRefused) {
  Schedule schedule = planned({.start_time_unix_ms = kUnixMs - 3'000});
  EXPECT_EQ(schedule.state(), collecting);
  EXPECT_THAT(schedule.remarks(), ElementsAre("the profile was to start 3000 ms ago: it starts at once and without warm-up"));
  const Result<Schedule> past = Schedule::plan({.start_time_unix_ms = kUnixMs - 10'001}, {0, kUnixMs, {}});
  ASSERT_FALSE(past.has_value());
  EXPECT_EQ(past.error().code, ErrorCode::invalid_argument);
}

TEST(ScheduleTest, IterationsAreWarmedUpAndCounted) {
  Schedule schedule = planned({.iterations = 2, .warmup_iterations = 1}, 5);
  EXPECT_EQ(schedule.state(), waiting);
  EXPECT_EQ(schedule.start_iteration(), 7u);
  EXPECT_EQ(schedule.next_change_ms(), std::nullopt);
  EXPECT_EQ(schedule.advance(1'000'000), waiting) << "time does not matter";
  EXPECT_THAT(steps(schedule, 5), ElementsAre(warmup, collecting, collecting, ended, ended));
  EXPECT_THAT(schedule.remarks(), IsEmpty());
}

TEST(ScheduleTest, StartsAtTheIterationThatWasAskedFor) {
  Schedule schedule = planned({.iterations = 1, .warmup_iterations = 2, .start_iteration = 4}, 0);
  EXPECT_THAT(steps(schedule, 6), ElementsAre(waiting, warmup, warmup, collecting, ended, ended));
}

TEST(ScheduleTest, AnIterationThatIsPastBecomesTheNextThatCanBe) {
  const Schedule schedule = planned({.iterations = 1, .warmup_iterations = 2, .start_iteration = 4}, 8);
  EXPECT_EQ(schedule.start_iteration(), 11u);
  EXPECT_THAT(schedule.remarks(), ElementsAre("iteration 4 is past, or too near for 2 of warm-up: the profile starts at iteration 11"));
}

TEST(ScheduleTest, IterationsAreRoundedUpSoThatRanksStartTogether) {
  EXPECT_EQ(planned({.iterations = 1, .warmup_iterations = 2, .iteration_multiple = 100}, 97).start_iteration(), 100u);
  EXPECT_EQ(planned({.iterations = 1, .warmup_iterations = 2, .iteration_multiple = 100}, 98).start_iteration(), 200u);
  EXPECT_EQ(planned({.iterations = 1, .start_iteration = 150, .iteration_multiple = 100}, 3).start_iteration(), 200u);
  EXPECT_EQ(planned({.iterations = 1, .start_iteration = 4'000'000, .iteration_multiple = 2'147'483'647}, 3).start_iteration(),
            2'147'483'647u);
}

TEST(ScheduleTest, AStartByIterationMayEndByTime) {
  Schedule schedule = planned({.duration = milliseconds(20), .start_iteration = 2}, 0);
  EXPECT_EQ(schedule.step(10), waiting);
  EXPECT_EQ(schedule.step(30), collecting);
  EXPECT_EQ(schedule.next_change_ms(), 50);
  EXPECT_EQ(schedule.step(40), collecting);
  EXPECT_EQ(schedule.advance(50), ended);
}

TEST(ScheduleTest, AStartByTimeMayEndByIterations) {
  Schedule schedule = planned({.warmup_duration = seconds(1), .iterations = 2, .start_time_unix_ms = kUnixMs + 1'000}, 7);
  EXPECT_EQ(schedule.step(500), warmup);
  EXPECT_EQ(schedule.advance(1'000), collecting);
  EXPECT_EQ(schedule.step(1'001), collecting);
  EXPECT_EQ(schedule.advance(90'000), collecting);
  EXPECT_EQ(schedule.step(90'001), ended);
}

TEST(ScheduleTest, WithoutIterationsALengthInTimeTakesTheirPlace) {
  Schedule schedule = planned({.duration = milliseconds(500), .warmup_duration = seconds(0), .iterations = 3});
  EXPECT_EQ(schedule.state(), collecting);
  EXPECT_EQ(schedule.next_change_ms(), 500);
  EXPECT_THAT(schedule.remarks(), ElementsAre(HasSubstr("500 ms are collected instead")));
  EXPECT_EQ(planned({.duration = milliseconds(0), .warmup_duration = seconds(0), .iterations = 3}).next_change_ms(), 500);
  for (const Config& config : {Config{.start_iteration = 3}, Config{.iteration_multiple = 10}}) {
    const Result<Schedule> refused = Schedule::plan(config, {0, kUnixMs, {}});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
    EXPECT_THAT(refused.error().message, HasSubstr("must call step()"));
  }
}

TEST(ScheduleTest, ALateCallStillCollectsForTheWholeLength) {
  Schedule schedule = planned({.duration = milliseconds(500), .warmup_duration = seconds(1)});
  EXPECT_EQ(schedule.advance(60'000), collecting);
  EXPECT_EQ(schedule.next_change_ms(), 60'500);
  Schedule by_iteration = planned({.duration = milliseconds(0), .iterations = 1}, 0);
  EXPECT_THAT(steps(by_iteration, 2), ElementsAre(collecting, ended));
}

TEST(ScheduleTest, CanBeCancelledUntilItHasEnded) {
  for (const std::int64_t ms : {0, 5'000}) {
    Schedule schedule = planned({.duration = milliseconds(500), .warmup_duration = seconds(5)});
    const std::string before(to_string(schedule.advance(ms)));
    schedule.cancel("another profile was asked for");
    EXPECT_EQ(schedule.state(), cancelled);
    EXPECT_EQ(schedule.next_change_ms(), std::nullopt);
    EXPECT_EQ(schedule.advance(100'000), cancelled);
    EXPECT_EQ(schedule.step(100'000), cancelled);
    schedule.cancel("again");
    EXPECT_THAT(schedule.remarks(), ElementsAre("cancelled while " + before + ": another profile was asked for"));
  }
  Schedule done = planned({.duration = milliseconds(1), .warmup_duration = seconds(0)});
  done.advance(1);
  done.cancel("too late");
  EXPECT_EQ(done.state(), ended);
}

TEST(ScheduleTest, WhatNoProfileCanBeIsRefused) { EXPECT_EQ(Schedule::plan({.kinds = {}}, {}).error().code, ErrorCode::invalid_argument); }

}  // namespace
}  // namespace xpu::profiler
