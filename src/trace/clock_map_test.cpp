#include "xpu/trace/clock_map.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace xpu::trace {
namespace {

constexpr TickUnit kNanoseconds{1, 1, 64};

ClockPoint reading(std::uint64_t middle_ns, std::uint64_t half_ns, std::uint64_t ticks) {
  return {middle_ns - half_ns, middle_ns + half_ns, ticks, 0};
}

bool covers(const MappedTime& time, std::int64_t truth_ns) {
  return std::llabs(time.host_ns - truth_ns) <= static_cast<std::int64_t>(time.error_ns);
}

TEST(ClockMapTest, IsNotUsableWithoutReadings) {
  const ClockMap map({}, kNanoseconds);
  EXPECT_FALSE(map.usable());
  EXPECT_EQ(map.to_host(5).error_ns, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(map.narrowest_bracket_ns(), 0u);
  EXPECT_EQ(map.largest_gap_ns(), 0u);
}

TEST(ClockMapTest, IgnoresReadingsThatEndBeforeTheyStart) {
  const ClockMap map({{200, 100, 7, 0}}, kNanoseconds);
  EXPECT_FALSE(map.usable());
  EXPECT_EQ(map.readings(), 0u);
  EXPECT_EQ(map.narrowest_bracket_ns(), 0u);
}

TEST(ClockMapTest, IsNotUsableWithAUnitOfNothing) {
  EXPECT_FALSE(ClockMap({reading(1000, 10, 5)}, {0, 1, 64}).usable());
  EXPECT_FALSE(ClockMap({reading(1000, 10, 5)}, {1, 0, 64}).usable());
}

TEST(ClockMapTest, OneReadingGoesOnAtTheNominalRateWithAGrowingBound) {
  const ClockMap map({reading(1'000'000, 50, 500)}, kNanoseconds);
  EXPECT_EQ(map.to_host(500).host_ns, 1'000'000);
  EXPECT_EQ(map.to_host(500).error_ns, 52u);  // half the bracket and one tick of at most 1.001 ns
  const MappedTime later = map.to_host(1'000'500);
  EXPECT_EQ(later.host_ns, 2'000'000);
  EXPECT_EQ(later.error_ns, 52u + 600u + 2u);  // 600 ppm of a millisecond
  EXPECT_EQ(map.to_host(0).host_ns, 999'500);
}

TEST(ClockMapTest, LiesOnTheLineBetweenTheTwoNeighbours) {
  // 200 ppm slow.
  const ClockMap map({reading(1'000'000'000, 100, 0), reading(2'000'200'000, 300, 1'000'000'000)}, kNanoseconds);
  EXPECT_EQ(map.steps(), 0u);
  EXPECT_EQ(map.to_host(0).host_ns, 1'000'000'000);
  EXPECT_EQ(map.to_host(1'000'000'000).host_ns, 2'000'200'000);
  const MappedTime quarter = map.to_host(250'000'000);
  EXPECT_EQ(quarter.host_ns, 1'250'050'000);
  EXPECT_EQ(quarter.error_ns, (3 * 102u + 302u) / 4 + 25'000u + 2u);  // weighted, and 100 ppm of a quarter of a second
}

TEST(ClockMapTest, ScalesTicksThatAreNotNanoseconds) {
  const TickUnit unit{1'000, 12, 64};  // 12 MHz
  const ClockMap map({reading(5'000'000, 20, 1'000)}, unit);
  EXPECT_EQ(map.to_host(13'000).host_ns, 6'000'000);
  EXPECT_EQ(map.ticks_to_ns(12), 1'000u);
  EXPECT_EQ(map.ticks_to_ns(1), 83u);
}

TEST(ClockMapTest, SaturatesDurationsThatDoNotFit) {
  const ClockMap map({reading(1'000, 1, 0)}, {4'000'000'000u, 1, 64});
  EXPECT_EQ(map.ticks_to_ns(std::numeric_limits<std::uint64_t>::max()), std::numeric_limits<std::uint64_t>::max());
}

TEST(ClockMapTest, AddsTheDriversOwnError) {
  const ClockMap map({{1'000, 1'100, 5, 2'500}}, kNanoseconds);
  EXPECT_EQ(map.to_host(5).error_ns, 50u + 2u + 3u);
}

TEST(ClockMapTest, IsExactToTheNanosecondForTicksNearTheTopOfTheCounter) {
  const std::uint64_t base = (std::uint64_t{1} << 63) - 500'000'000;  // half of the span beyond 2^63
  const std::uint64_t host = 1'700'000'000'000'000'123u;              // nanoseconds since 1970: a double would round to 256
  const ClockMap map({reading(host, 10, base), reading(host + 1'000'000'000, 10, base + 1'000'000'000)}, kNanoseconds);
  for (std::uint64_t step : {0u, 1u, 333'333'333u, 500'000'000u, 500'000'001u, 999'999'999u, 1'000'000'000u}) {
    EXPECT_EQ(map.to_host(base + step).host_ns, static_cast<std::int64_t>(host + step)) << step;
  }
}

TEST(ClockMapTest, CountsOnAcrossTheEndOf64Bits) {
  const std::uint64_t base = std::numeric_limits<std::uint64_t>::max() - 99;
  const ClockMap map({reading(1'000'000, 10, base), reading(1'000'200, 10, base + 200)}, kNanoseconds);
  EXPECT_EQ(map.steps(), 0u);
  EXPECT_EQ(map.to_host(base + 150).host_ns, 1'000'150);
}

TEST(ClockMapTest, ResolvesTheWrapByAHostTimeNearby) {
  const TickUnit unit{1, 1, 32};  // wraps after 4.29 s
  const std::uint64_t wrap = std::uint64_t{1} << 32, start = 10'000'000'000;
  std::vector<ClockPoint> points;
  for (std::uint64_t second = 0; second <= 20; ++second) {
    points.push_back(reading(start + second * 1'000'000'000, 40, (4'000'000'000 + second * 1'000'000'000) % wrap));
  }
  const ClockMap map(points, unit);
  EXPECT_EQ(map.steps(), 0u);
  for (std::uint64_t at = 0; at <= 20'000'000'000; at += 777'777'777) {
    const std::uint64_t ticks = (4'000'000'000 + at) % wrap;
    for (std::int64_t away : {-2'000'000'000ll, 0ll, 2'000'000'000ll}) {
      const auto near_ns = static_cast<std::uint64_t>(static_cast<std::int64_t>(start + at) + away);
      EXPECT_EQ(map.to_host(ticks, near_ns).host_ns, static_cast<std::int64_t>(start + at)) << at << " " << away;
    }
  }
}

TEST(ClockMapTest, UnwrapsReadingsThatAreManyWrapsApart) {
  const TickUnit unit{1, 1, 24};  // wraps after 16.8 ms
  const std::uint64_t wrap = std::uint64_t{1} << 24;
  const ClockMap map({reading(1'000'000'000, 40, 5), reading(2'000'000'000, 40, (5 + 1'000'000'000) % wrap)}, unit);
  EXPECT_EQ(map.steps(), 0u);
  EXPECT_EQ(map.to_host((5 + 600'000'000) % wrap, 1'600'000'000).host_ns, 1'600'000'000);
}

TEST(ClockMapTest, TakesReadingsInAnyOrder) {
  const ClockMap map({reading(3'000'000, 5, 2'000'000), reading(1'000'000, 5, 0), reading(2'000'000, 5, 1'000'000)}, kNanoseconds);
  EXPECT_EQ(map.readings(), 3u);
  EXPECT_EQ(map.largest_gap_ns(), 1'000'000u);
  EXPECT_EQ(map.narrowest_bracket_ns(), 10u);
  EXPECT_EQ(map.to_host(1'500'000).host_ns, 2'500'000);
}

TEST(ClockMapTest, IsNotWidenedByAWideBracketAmongNarrowOnes) {
  std::vector<ClockPoint> points;
  for (std::uint64_t index = 0; index <= 10; ++index) {
    // The wide one's middle is far off the line, as that of a reading during which the thread was suspended.
    points.push_back(index == 5 ? ClockPoint{1'004'999'950, 1'005'049'950, 5'000'000, 0}
                                : reading(1'000'000'000 + index * 1'000'000, 50, index * 1'000'000));
  }
  const ClockMap map(points, kNanoseconds);
  EXPECT_EQ(map.steps(), 0u);
  const MappedTime there = map.to_host(5'000'000);
  EXPECT_EQ(there.host_ns, 1'005'000'000);
  EXPECT_EQ(there.error_ns, 52u + 100u + 2u);  // 100 ppm of a millisecond to either neighbour
}

TEST(ClockMapTest, IsNotWidenedByAWideBracketAtTheEnd) {
  std::vector<ClockPoint> points;
  for (std::uint64_t index = 0; index < 10; ++index) points.push_back(reading(1'000'000'000 + index * 10'000'000, 50, index * 10'000'000));
  points.push_back({1'099'999'950, 1'100'049'950, 100'000'000, 0});
  const ClockMap map(points, kNanoseconds);
  const MappedTime there = map.to_host(100'000'000);
  EXPECT_TRUE(covers(there, 1'100'000'000));
  EXPECT_LE(there.error_ns, 1'200u);  // 100 ppm of 10 ms and little more, not 25,000
}

TEST(ClockMapTest, OverlappingBracketsNeverTurnTimeBackwards) {
  // Two threads read the clock at once: wide brackets whose middles are in the wrong order.
  const ClockMap map({reading(1'000'100, 400, 0), reading(1'000'000, 400, 50), reading(2'000'000, 20, 1'000'000)}, kNanoseconds);
  EXPECT_EQ(map.steps(), 0u);
  std::int64_t previous = std::numeric_limits<std::int64_t>::min();
  for (std::uint64_t ticks = 0; ticks < 200; ++ticks) {
    const MappedTime time = map.to_host(ticks);
    EXPECT_GE(time.host_ns, previous);
    EXPECT_TRUE(covers(time, static_cast<std::int64_t>(1'000'000 + ticks)));
    previous = time.host_ns;
  }
}

TEST(ClockMapTest, GoesOnAtTheRateOfTheReadingsWhenTheyDetermineIt) {
  std::vector<ClockPoint> points;  // 400 ppm slow
  for (std::uint64_t index = 0; index <= 4; ++index)
    points.push_back(reading(1'000'000'000 + index * 100'040'000, 50, index * 100'000'000));
  const ClockMap map(points, kNanoseconds);
  const MappedTime after = map.to_host(500'000'000), before = map.to_host(0 - std::uint64_t{100'000'000});
  EXPECT_NEAR(static_cast<double>(after.host_ns), 1'500'200'000.0, 2.0);
  EXPECT_NEAR(static_cast<double>(before.host_ns), 899'960'000.0, 2.0);
  EXPECT_LE(after.error_ns, 10'300u);  // 100 ppm of 100 ms, the bracket, and what the bracket leaves open of the rate
}

TEST(ClockMapTest, AStepSplitsTheMapAndBothSidesStayRight) {
  std::vector<ClockPoint> points;
  for (std::uint64_t index = 0; index < 10; ++index) points.push_back(reading(1'000'000'000 + index * 1'000'000, 50, index * 1'000'000));
  for (std::uint64_t index = 10; index < 20; ++index)
    points.push_back(reading(1'000'000'000 + index * 1'000'000, 50, index * 1'000'000 + 300'000));
  const ClockMap map(points, kNanoseconds);
  EXPECT_EQ(map.steps(), 1u);
  EXPECT_EQ(map.to_host(5'500'000).host_ns, 1'005'500'000);
  EXPECT_LE(map.to_host(5'500'000).error_ns, 200u);
  EXPECT_EQ(map.to_host(15'800'000).host_ns, 1'015'500'000);
  EXPECT_LE(map.to_host(15'800'000).error_ns, 200u);
  // Between: before the step 9.4 means 9.4 ms; after it, 9.1 ms.
  const MappedTime between = map.to_host(9'400'000);
  EXPECT_TRUE(covers(between, 1'009'400'000));
  EXPECT_TRUE(covers(between, 1'009'100'000));
  EXPECT_LE(between.error_ns, 160'000u);
}

TEST(ClockMapTest, TicksThatWereJumpedOverLieBetweenTheTwoReadings) {
  const ClockMap map({reading(1'000'000'000, 50, 0), reading(1'001'000'000, 50, 1'000'000), reading(1'002'000'000, 50, 1'002'000'000),
                      reading(1'003'000'000, 50, 1'003'000'000)},
                     kNanoseconds);
  EXPECT_EQ(map.steps(), 1u);
  const MappedTime time = map.to_host(500'000'000);
  EXPECT_TRUE(covers(time, 1'001'000'000));
  EXPECT_TRUE(covers(time, 1'002'000'000));
  EXPECT_LE(time.error_ns, 500'100u);
}

TEST(ClockMapTest, AClockThatWasSetBackIsTakenAtTheFirstTimeNotBeforeTheCall) {
  const ClockMap map({reading(1'000'000'000, 50, 0), reading(2'000'000'000, 50, 1'000'000'000), reading(5'000'000'000, 50, 0),
                      reading(6'000'000'000, 50, 1'000'000'000)},
                     kNanoseconds);
  EXPECT_EQ(map.steps(), 1u);
  EXPECT_EQ(map.to_host(500'000'000, 1'200'000'000).host_ns, 1'500'000'000);
  EXPECT_EQ(map.to_host(500'000'000, 5'200'000'000).host_ns, 5'500'000'000);
  EXPECT_EQ(map.to_host(500'000'000, 5'200'000'000).error_ns, map.to_host(500'000'000, 1'200'000'000).error_ns);
}

TEST(ClockMapTest, OneReadingThatContradictsEveryOtherIsDropped) {
  std::vector<ClockPoint> points;
  for (std::uint64_t index = 0; index < 12; ++index) {
    points.push_back(reading(1'000'000'000 + index * 1'000'000, 50, index * 1'000'000 + (index == 6 ? 250'000 : 0)));
  }
  const ClockMap map(points, kNanoseconds);
  EXPECT_EQ(map.steps(), 0u);
  EXPECT_EQ(map.to_host(6'000'000).host_ns, 1'006'000'000);
  EXPECT_LE(map.to_host(6'000'000).error_ns, 154u);
}

TEST(ClockMapTest, AClockThatContradictsItselfAllTheTimeIsNotUsed) {
  std::vector<ClockPoint> points;
  for (std::uint64_t index = 0; index < 200; ++index)
    points.push_back(reading(1'000'000'000 + index * 1'000'000, 50, (index * 7'919 % 200) * 1'000'000));
  EXPECT_FALSE(ClockMap(points, kNanoseconds).usable());
}

TEST(ClockMapTest, TheHostsOwnClockIsExactToATickWithoutReadings) {
  const ClockMap map = ClockMap::of_host_clock(2);
  ASSERT_TRUE(map.usable());
  EXPECT_EQ(map.readings(), 2u);
  EXPECT_EQ(map.steps(), 0u);
  for (std::uint64_t ticks : {std::uint64_t{0}, std::uint64_t{5'000'000'000}, std::uint64_t{1} << 60}) {
    EXPECT_EQ(map.to_host(ticks, 77).host_ns, static_cast<std::int64_t>(ticks));
    EXPECT_EQ(map.to_host(ticks).error_ns, 1u);
    EXPECT_EQ(map.ticks_to_ns(ticks), ticks);
  }
}

TEST(ClockMapTest, SurvivesReadingsOfAnySize) {
  const std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t edges[] = {
      0, 1, std::uint64_t{1} << 31, std::uint64_t{1} << 61, (std::uint64_t{1} << 62) - 1, std::uint64_t{1} << 63, top - 1, top};
  for (std::uint32_t bits : {1u, 8u, 32u, 63u, 64u, 0u, 77u}) {
    for (const auto& [numerator, denominator] : {std::pair{1u, 1u}, {0xffffffffu, 1u}, {1u, 0xffffffffu}}) {
      std::vector<ClockPoint> points;
      for (std::uint64_t before : edges) {
        for (std::uint64_t ticks : edges) points.push_back({before, before | 0xfff, ticks, 0xffffffffu});
      }
      const ClockMap map(points, {numerator, denominator, bits});
      for (std::uint64_t ticks : edges) {
        for (std::uint64_t near_ns : edges) map.to_host(ticks, near_ns);
        map.ticks_to_ns(ticks);
      }
      for (const ClockPoint& point : points) {
        const ClockMap alone({point}, {numerator, denominator, bits});
        for (std::uint64_t ticks : edges) alone.to_host(ticks, ticks);
      }
    }
  }
}

}  // namespace
}  // namespace xpu::trace
