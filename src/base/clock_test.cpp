#include "xpu/base/clock.hpp"

#include <gtest/gtest.h>

namespace xpu {
namespace {

TEST(ClockTest, ReadsTheClockOfTheDomain) {
  timespec before{}, after{};
  clock_gettime(CLOCK_REALTIME, &before);
  const std::uint64_t now = now_ns(ClockDomain::realtime);
  clock_gettime(CLOCK_REALTIME, &after);
  const auto ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
  };
  EXPECT_GE(now, ns(before));
  EXPECT_LE(now, ns(after));
}

TEST(ClockTest, TheDefaultIsMonotonic) {
  const std::uint64_t first = now_ns(ClockDomain::monotonic);
  const std::uint64_t second = now_ns();
  const std::uint64_t third = now_ns(ClockDomain::monotonic);
  EXPECT_LE(first, second);
  EXPECT_LE(second, third);
}

TEST(ClockTest, ADomainThatNoHostClockHasReadsZero) {
  EXPECT_EQ(now_ns(ClockDomain::device), 0u);
  EXPECT_EQ(now_ns(ClockDomain::unknown), 0u);
}

TEST(ClockTest, DomainsHaveNames) {
  EXPECT_STREQ(to_string(ClockDomain::monotonic), "monotonic");
  EXPECT_STREQ(to_string(ClockDomain::monotonic_raw), "monotonic_raw");
  EXPECT_STREQ(to_string(ClockDomain::realtime), "realtime");
  EXPECT_STREQ(to_string(ClockDomain::device), "device");
  EXPECT_STREQ(to_string(static_cast<ClockDomain>(77)), "unknown");
}

}  // namespace
}  // namespace xpu
