#include "trace/view/view_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "xpu/base/clock.hpp"

namespace xpu::trace::view {
namespace {

TEST(ViewClockTest, FollowsAClockThatRunsAtAnotherRateAndNeverGoesBack) {
  const std::uint64_t host_at_zero = now_ns(ClockDomain::monotonic);
  bool has_restarted = false;
  ViewClock clock([&] { return has_restarted ? 1'000 : 1'001 + 2 * (now_ns(ClockDomain::monotonic) - host_at_zero); });
  ASSERT_EQ(clock.read(), ResultCode::success);
  const std::uint64_t from = now_ns(ClockDomain::monotonic);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t to = now_ns(ClockDomain::monotonic);
  ASSERT_EQ(clock.read(), ResultCode::success);
  const auto covered = static_cast<double>(clock.to_view_time(to) - clock.to_view_time(from));
  EXPECT_NEAR(covered / static_cast<double>(to - from), 2.0, 0.05);
  std::uint64_t last = 0;
  for (std::uint64_t host = from - 1'000'000; host < to + 1'000'000; host += 1'000) {
    const std::uint64_t view = clock.to_view_time(host);
    ASSERT_GE(view, last);
    last = view;
  }
  EXPECT_EQ(clock.to_view_time(0), 0u) << "unknown stays unknown";
  has_restarted = true;  // it goes back
  EXPECT_EQ(clock.read(), ResultCode::bad_timestamp);
}

}  // namespace
}  // namespace xpu::trace::view
