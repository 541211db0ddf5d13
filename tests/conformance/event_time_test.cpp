#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Ticks of timed events.
class EventTimeTest : public DeviceTest {
 protected:
  std::uint64_t now_ticks() const { return device().read_clock().value().ticks; }
  ::testing::AssertionResult in_order(std::uint64_t earlier, std::uint64_t later) const {
    if (not_before(device().clock(), later, earlier)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "tick " << later << " is before " << earlier;
  }
};
XPU_CONFORMANCE_SUITE(EventTimeTest);

TEST_P(EventTimeTest, TicksAscendAlongAQueue) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<std::unique_ptr<hal::Event>> events;
  for (int index = 0; index < 200; ++index) {
    events.push_back(new_event(true));
    if (index % 2 == 0) submit_action(*queue, [] {}).value();
    queue->record(*events.back()).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (std::size_t index = 1; index < events.size(); ++index) {
    EXPECT_TRUE(in_order(events[index - 1]->ticks().value(), events[index]->ticks().value())) << index;
  }
}

TEST_P(EventTimeTest, TicksAreTheSameAtEveryRead) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event(true);
  queue->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  const std::uint64_t ticks = event->ticks().value();
  submit_action(*queue, [] {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(event->ticks().value(), ticks);
}

TEST_P(EventTimeTest, TheTickOfAnEventLiesBetweenTwoReadingsOfTheClock) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event(true);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t before = now_ticks();
    submit_action(*queue, [] {}).value();
    queue->record(*event).value();
    ASSERT_TRUE(is_ok(event->synchronize_blocking()));
    const std::uint64_t after = now_ticks();
    EXPECT_TRUE(in_order(before, event->ticks().value()));
    EXPECT_TRUE(in_order(event->ticks().value(), after));
  }
}

TEST_P(EventTimeTest, AnEventOnAnIdleQueueTakesTheMomentOfTheCall) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event(true);
  submit_action(*queue, [] {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  const std::uint64_t before = now_ticks();
  queue->record(*event).value();
  const std::uint64_t after = now_ticks();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(in_order(before, event->ticks().value()));
  EXPECT_TRUE(in_order(event->ticks().value(), after));
}

TEST_P(EventTimeTest, AnEventBehindAPendingOperationTakesItsEndExactly) {
  XPU_NEEDS(timed_events);
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(pending_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  const std::unique_ptr<hal::Event> event = new_event(true);
  Hold hold(*queue);
  submit_action(*queue, [] {}, {.token = 1}).value();
  queue->record(*event).value();
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(event->ticks().value(), sink.of(1).ticks.end);
}

TEST_P(EventTimeTest, AnEventIsNotBeforeTheEndOfTheOperationBeforeIt) {
  XPU_NEEDS(timed_events);
  XPU_NEEDS(timed_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  std::vector<std::unique_ptr<hal::Event>> events;
  for (std::uint64_t token = 1; token <= 50; ++token) {
    submit_action(*queue, [] {}, {.token = token, .short_and_independent = token % 2 == 0}).value();
    events.push_back(new_event(true));
    queue->record(*events.back()).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (std::uint64_t token = 1; token <= 50; ++token) {
    EXPECT_TRUE(in_order(sink.of(token).ticks.end, events[token - 1]->ticks().value())) << token;
  }
}

TEST_P(EventTimeTest, TwoEventsEnclosePendingWorkToTheTick) {
  XPU_NEEDS(timed_events);
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(pending_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  const std::unique_ptr<hal::Event> before = new_event(true);
  const std::unique_ptr<hal::Event> after = new_event(true);
  Hold hold(*queue);
  submit_action(*queue, [] {}, {.token = 1}).value();
  queue->record(*before).value();
  submit_action(*queue, [] {}, {.token = 2}).value();
  submit_action(*queue, [] {}, {.token = 3}).value();
  queue->record(*after).value();
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  const std::uint64_t elapsed = ticks_between(device().clock(), before->ticks().value(), after->ticks().value());
  EXPECT_EQ(elapsed, ticks_between(device().clock(), sink.of(1).ticks.end, sink.of(3).ticks.end));
}

TEST_P(EventTimeTest, TheTimeBetweenEventsCoversTheKernelBetweenThem) {
  XPU_NEEDS(timed_events);
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(registered_modules);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  const std::unique_ptr<hal::Event> before = new_event(true);
  const std::unique_ptr<hal::Event> after = new_event(true);
  auto* const values = allocate_zeros<std::uint32_t>(10'000);
  queue->record(*before).value();
  launch_with(*queue, *suite_kernel("conformance_set"), items({10'000}), {.token = 1}, values, std::uint32_t{1}).value();
  queue->record(*after).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  const hal::Ticks ticks = sink.of(1).ticks;
  EXPECT_TRUE(in_order(before->ticks().value(), ticks.start));
  EXPECT_TRUE(in_order(ticks.end, after->ticks().value()));
  EXPECT_GE(ticks_between(device().clock(), before->ticks().value(), after->ticks().value()),
            ticks_between(device().clock(), ticks.start, ticks.end));
}

TEST_P(EventTimeTest, WorkBehindAWaitStartsAfterTheEventOfTheOtherQueue) {
  XPU_NEEDS(timed_events);
  XPU_NEEDS(timed_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue(sink);
  for (std::uint64_t token = 1; token <= 20; ++token) {
    const std::unique_ptr<hal::Event> event = new_event(true);
    submit_action(*first, [] {}).value();
    first->record(*event).value();
    second->wait(*event).value();
    submit_action(*second, [] {}, {.token = token}).value();
    ASSERT_TRUE(is_ok(second->synchronize_blocking()));
    EXPECT_TRUE(in_order(event->ticks().value(), sink.of(token).ticks.start)) << token;
  }
}

TEST_P(EventTimeTest, RecordingAgainGivesALaterTick) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event(true);
  queue->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  const std::uint64_t first = event->ticks().value();
  submit_action(*queue, [] {}).value();
  queue->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(in_order(first, event->ticks().value()));
}

TEST_P(EventTimeTest, TicksFitIntoTheValidBits) {
  XPU_NEEDS(timed_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event(true);
  queue->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  if (device().clock().valid_bits < 64) {
    EXPECT_EQ(event->ticks().value() >> device().clock().valid_bits, 0u);
  }
}

}  // namespace
}  // namespace xpu::conformance
