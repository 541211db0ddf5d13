#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/conformance/support.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::conformance {
namespace {

/// The device's clock and its readings.
class ClockTest : public DeviceTest {
 protected:
  const hal::ClockInfo& clock() const { return device().clock(); }
  hal::ClockReading read() const { return device().read_clock().value(); }
  double ns(std::uint64_t ticks) const {
    return static_cast<double>(ticks) * static_cast<double>(clock().tick_numerator) / static_cast<double>(clock().tick_denominator);
  }
};
XPU_CONFORMANCE_SUITE(ClockTest);

TEST_P(ClockTest, TheFactsAreSane) {
  EXPECT_GT(clock().tick_numerator, 0u);
  EXPECT_GT(clock().tick_denominator, 0u);
  EXPECT_GE(clock().valid_bits, 8u);
  EXPECT_LE(clock().valid_bits, 64u);
  EXPECT_NE(clock().host_domain, ClockDomain::unknown);
}

TEST_P(ClockTest, TheFactsAreTheSameObjectAtEveryRead) { EXPECT_EQ(&device().clock(), &device().clock()); }

TEST_P(ClockTest, ATickIsNoFinerThanTheResolution) { EXPECT_LE(ns(1), static_cast<double>(device().properties().timer_resolution_ns) + 1); }

TEST_P(ClockTest, TheHostTimesOfAReadingAreInOrder) {
  for (int round = 0; round < 100; ++round) {
    const hal::ClockReading reading = read();
    EXPECT_LE(reading.host_before_ns, reading.host_after_ns);
    EXPECT_GT(reading.host_before_ns, 0u);
  }
}

TEST_P(ClockTest, TicksFitIntoTheValidBits) {
  if (clock().valid_bits < 64) {
    EXPECT_EQ(read().ticks >> clock().valid_bits, 0u);
  }
}

TEST_P(ClockTest, TicksAscendFromReadingToReading) {
  std::uint64_t last = read().ticks;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t next = read().ticks;
    EXPECT_TRUE(not_before(clock(), next, last)) << last << " then " << next;
    last = next;
  }
}

TEST_P(ClockTest, HostTimesAscendFromReadingToReading) {
  hal::ClockReading last = read();
  for (int round = 0; round < 200; ++round) {
    const hal::ClockReading next = read();
    EXPECT_GE(next.host_before_ns, last.host_before_ns);
    EXPECT_GE(next.host_after_ns, last.host_after_ns);
    last = next;
  }
}

TEST_P(ClockTest, TheHostTimesOfAReadingAreTimesOfTheHost) {
  const std::uint64_t before_ns = now_ns(clock().host_domain);
  const hal::ClockReading reading = read();
  const std::uint64_t after_ns = now_ns(clock().host_domain);
  EXPECT_LE(before_ns, reading.host_before_ns);
  EXPECT_LE(reading.host_after_ns, after_ns);
}

TEST_P(ClockTest, AClockThatIsAHostClockShowsItsTime) {
  XPU_NEEDS(host_clock);
  for (int round = 0; round < 100; ++round) {
    const hal::ClockReading reading = read();
    EXPECT_LE(static_cast<double>(reading.host_before_ns), ns(reading.ticks) + ns(1));
    EXPECT_LE(ns(reading.ticks), static_cast<double>(reading.host_after_ns) + ns(1));
  }
}

TEST_P(ClockTest, TheClockRunsAtTheRateThatItClaims) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const hal::ClockReading first = read();
  hal::ClockReading last = first;
  // Works until the host's side of the readings has gone on for a while, in whatever time the device lives.
  ASSERT_TRUE(eventually([&] {
    for (int index = 0; index < 100; ++index) submit_action(*queue, [] {}).value();
    queue->synchronize_blocking().value();
    last = read();
    return last.host_before_ns >= first.host_after_ns + 20'000'000;
  }));
  const double elapsed_ns = ns(ticks_between(clock(), first.ticks, last.ticks));
  const double shortest_ns = static_cast<double>(last.host_before_ns - first.host_after_ns);
  const double longest_ns = static_cast<double>(last.host_after_ns - first.host_before_ns);
  EXPECT_GE(elapsed_ns, shortest_ns * 0.999 - ns(2));
  EXPECT_LE(elapsed_ns, longest_ns * 1.001 + ns(2));
}

TEST_P(ClockTest, FourThreadsReadAtOnce) {
  on_threads(4, [&](int) {
    std::uint64_t last = read().ticks;
    for (int round = 0; round < 200; ++round) {
      const hal::ClockReading reading = read();
      EXPECT_LE(reading.host_before_ns, reading.host_after_ns);
      EXPECT_TRUE(not_before(clock(), reading.ticks, last));
      last = reading.ticks;
    }
  });
}

TEST_P(ClockTest, ReadingTheClockDoesNotWaitForAQueue) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<bool> has_run{false};
  Hold hold(*queue);
  submit_action(*queue, [&] { has_run = true; }).value();
  EXPECT_TRUE(is_ok(device().read_clock()));
  EXPECT_FALSE(has_run);
  hold.release();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(ClockTest, EveryDeviceHasAClock) {
  for (std::uint32_t ordinal = 0; ordinal < shared().device_count(); ++ordinal) {
    EXPECT_TRUE(is_ok(device(ordinal).read_clock())) << ordinal;
  }
}

}  // namespace
}  // namespace xpu::conformance
