#include "interceptors/opencl/host_clock_search.hpp"

#include <gtest/gtest.h>

namespace xpu::interceptors::opencl {
namespace {

constexpr std::uint64_t kRawAhead = 304'000'000;
constexpr std::uint64_t kRealAhead = 1'700'000'000'000'000'000;

/// What the host clocks show at a monotonic time; reading them takes 100 ns.
HostMoment moment(std::uint64_t monotonic_ns, std::uint64_t raw_ahead = kRawAhead) {
  return {.before_ns = monotonic_ns,
          .after_ns = monotonic_ns + 100,
          .shown_ns = {monotonic_ns, monotonic_ns + raw_ahead, monotonic_ns + kRealAhead}};
}

/// A command that was queued 1 us after it entered, ended 5 us later and was seen to have 20 us later, stamped by a clock that is `ahead`.
CommandObservation command_at(std::uint64_t enter_ns, std::uint64_t ahead) {
  return {.enter = moment(enter_ns),
          .seen = moment(enter_ns + 26'000),
          .queued_ticks = enter_ns + 1'000 + ahead,
          .end_ticks = enter_ns + 6'000 + ahead};
}

TEST(HostClockSearchTest, KnowsNothingBeforeTheFirstCommand) {
  HostClockSearch search;
  EXPECT_EQ(search.found(), ClockDomain::unknown);
  EXPECT_FALSE(search.is_hopeless());
}

TEST(HostClockSearchTest, FindsTheClockThatFits) {
  HostClockSearch monotonic, raw, real;
  EXPECT_TRUE(monotonic.observe(command_at(1'000'000, 0)));
  EXPECT_TRUE(raw.observe(command_at(1'000'000, kRawAhead)));
  EXPECT_TRUE(real.observe(command_at(1'000'000, kRealAhead)));
  EXPECT_EQ(monotonic.found(), ClockDomain::monotonic);
  EXPECT_EQ(raw.found(), ClockDomain::monotonic_raw);
  EXPECT_EQ(real.found(), ClockDomain::realtime);
  EXPECT_EQ(raw.ambiguity_ns(moment(2'000'000)), 0u);
}

TEST(HostClockSearchTest, GivesUpWhenNoClockFits) {
  HostClockSearch search;
  search.observe(command_at(1'000'000, 5'000'000'000));
  EXPECT_EQ(search.found(), ClockDomain::unknown);
  EXPECT_TRUE(search.is_hopeless());
}

TEST(HostClockSearchTest, GivesUpAClockThatACommandContradictsLater) {
  HostClockSearch search;
  ASSERT_TRUE(search.observe(command_at(1'000'000, kRawAhead)));
  EXPECT_TRUE(search.observe(command_at(2'000'000, kRawAhead)));
  EXPECT_FALSE(search.observe(command_at(3'000'000, kRawAhead + 100'000)));
  EXPECT_TRUE(search.is_hopeless());
}

TEST(HostClockSearchTest, AllowsStampsToBeOneTickEarly) {
  CommandObservation observation = command_at(1'000'000, 0);
  observation.queued_ticks = 1'000'000 - 500;
  HostClockSearch exact(1), coarse(1'000);
  exact.observe(observation);
  coarse.observe(observation);
  EXPECT_NE(exact.found(), ClockDomain::monotonic);
  EXPECT_EQ(coarse.found(), ClockDomain::monotonic);
}

TEST(HostClockSearchTest, StatesTheDoubtWhenTwoClocksFit) {
  constexpr std::uint64_t kClose = 3'000;
  HostClockSearch search;
  search.observe(
      {.enter = moment(1'000'000, kClose), .seen = moment(1'026'000, kClose), .queued_ticks = 1'010'000, .end_ticks = 1'015'000});
  EXPECT_EQ(search.found(), ClockDomain::monotonic);
  EXPECT_EQ(search.ambiguity_ns(moment(2'000'000, kClose)), kClose);
}

TEST(HostClockSearchTest, LosesTheDoubtWithACommandThatOnlyOneClockFits) {
  constexpr std::uint64_t kClose = 3'000;
  HostClockSearch search;
  search.observe(
      {.enter = moment(1'000'000, kClose), .seen = moment(1'026'000, kClose), .queued_ticks = 1'010'000, .end_ticks = 1'015'000});
  // Queued 1 us after it entered: the raw clock already showed more when it did.
  search.observe(
      {.enter = moment(2'000'000, kClose), .seen = moment(2'026'000, kClose), .queued_ticks = 2'001'000, .end_ticks = 2'015'000});
  EXPECT_EQ(search.found(), ClockDomain::monotonic);
  EXPECT_EQ(search.ambiguity_ns(moment(3'000'000, kClose)), 0u);
}

TEST(HostMomentTest, ShowsEveryClockBetweenItsTwoReadings) {
  const HostMoment now = HostMoment::now(3);
  EXPECT_LE(now.before_ns, now.shown_ns[0]);
  EXPECT_LE(now.shown_ns[0], now.after_ns);
  for (const std::uint64_t shown : now.shown_ns) EXPECT_GT(shown, 0u);
}

}  // namespace
}  // namespace xpu::interceptors::opencl
