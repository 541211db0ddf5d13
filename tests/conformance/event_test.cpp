#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// The life of an event: when it is complete, and what may be destroyed when.
class EventTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(EventTest);

TEST_P(EventTest, AnEventThatWasNeverRecordedIsComplete) {
  const std::unique_ptr<hal::Event> event = new_event();
  EXPECT_TRUE(event->query().value());
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
}

TEST_P(EventTest, AnEventOnAnEmptyQueueCompletes) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  queue->record(*event).value();
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(event->query().value());
}

TEST_P(EventTest, AnEventIsCompleteWhenItsQueueIs) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  submit_action(*queue, [] {}).value();
  queue->record(*event).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(event->query().value());
}

TEST_P(EventTest, ProgramsThatOnlyAskAnEventComeToAnEnd) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  for (int index = 0; index < 50; ++index) submit_action(*queue, [&value] { ++value; }).value();
  queue->record(*event).value();
  ASSERT_TRUE(eventually([&] { return event->query().value(); }));
  EXPECT_EQ(value, 50) << "what was done before the event is visible";
}

TEST_P(EventTest, WaitingForAnEventWaitsForTheOperationsBeforeIt) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  for (int round = 1; round <= 100; ++round) {
    submit_action(*queue, [&value] { ++value; }).value();
    queue->record(*event).value();
    ASSERT_TRUE(is_ok(event->synchronize_blocking()));
    ASSERT_EQ(value, round);
  }
}

TEST_P(EventTest, WaitingForAnEventDoesNotWaitForTheOperationsBehindIt) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::atomic<bool> has_run{false};
  submit_action(*queue, [&] { has_run = true; }).value();
  queue->record(*event).value();
  Hold hold(*queue);
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(has_run);
  EXPECT_FALSE(queue->query().value());
}

TEST_P(EventTest, AnEventIsNotCompleteWhileAnOperationBeforeItRuns) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  Hold hold(*queue);
  queue->record(*event).value();
  for (int index = 0; index < 1'000; ++index) ASSERT_FALSE(event->query().value());
  hold.release();
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
}

TEST_P(EventTest, ABlockingEventWaitsLikeAnyOther) {
  XPU_NEEDS(blocking_events);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  hal::EventOptions options;
  options.blocking = true;
  const std::unique_ptr<hal::Event> event = device().create_event(options).value();
  int value = 0;
  for (int round = 1; round <= 20; ++round) {
    submit_action(*queue, [&value] { ++value; }).value();
    queue->record(*event).value();
    ASSERT_TRUE(is_ok(event->synchronize_blocking()));
    ASSERT_EQ(value, round);
  }
}

TEST_P(EventTest, RecordingAgainReplacesWhatWasCaptured) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  queue->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  Hold hold(*queue);
  queue->record(*event).value();
  EXPECT_FALSE(event->query().value());
  hold.release();
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
}

TEST_P(EventTest, AnEventMovesFromAHeldQueueToAnother) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  Hold hold(*held);
  held->record(*event).value();
  EXPECT_FALSE(event->query().value());
  other->record(*event).value();
  EXPECT_TRUE(is_ok(event->synchronize_blocking())) << "it has nothing to do with the held queue any more";
}

TEST_P(EventTest, AnEventIsRecordedAThousandTimes) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  for (int index = 0; index < 1'000; ++index) {
    submit_action(*queue, [&value] { ++value; }).value();
    queue->record(*event).value();
  }
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_EQ(value, 1'000);
}

TEST_P(EventTest, ThousandsOfEventsPendAtOnce) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<std::unique_ptr<hal::Event>> events;
  for (int index = 0; index < 5'000; ++index) {
    events.push_back(new_event());
    queue->record(*events.back()).value();
  }
  ASSERT_TRUE(is_ok(events.back()->synchronize_blocking()));
  for (const std::unique_ptr<hal::Event>& event : events) EXPECT_TRUE(event->query().value());
}

TEST_P(EventTest, AnEventThatIsPendingMayBeDestroyed) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::unique_ptr<hal::Event> event = new_event();
  std::atomic<bool> has_run{false};
  Hold hold(*queue);
  queue->record(*event).value();
  submit_action(*queue, [&] { has_run = true; }).value();
  event.reset();
  hold.release();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(EventTest, AnEventThatAQueueWaitsForMayBeDestroyed) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  std::unique_ptr<hal::Event> event = new_event();
  std::vector<int> order;
  Hold hold(*first);
  submit_action(*first, [&order] { order.push_back(1); }).value();
  first->record(*event).value();
  second->wait(*event).value();
  submit_action(*second, [&order] { order.push_back(2); }).value();
  event.reset();
  hold.release();
  ASSERT_TRUE(is_ok(second->synchronize_blocking()));
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_P(EventTest, TheQueueOfAnEventMayBeDestroyedBeforeItIsComplete) {
  XPU_NEEDS(pending_operations);
  std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::atomic<bool> has_run{false};
  Hold hold(*queue);
  submit_action(*queue, [&] { has_run = true; }).value();
  queue->record(*event).value();
  queue.reset();
  hold.release();
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(EventTest, AnEventIsRecordedAgainAfterItsQueueIsGone) {
  const std::unique_ptr<hal::Event> event = new_event();
  for (int round = 0; round < 100; ++round) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    submit_action(*queue, [] {}).value();
    queue->record(*event).value();
  }
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(event->query().value());
}

TEST_P(EventTest, FourThreadsWaitForOneEvent) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::atomic<int> value{0};
  for (int index = 0; index < 100; ++index) submit_action(*queue, [&] { ++value; }).value();
  queue->record(*event).value();
  on_threads(4, [&](int) {
    EXPECT_TRUE(is_ok(event->synchronize_blocking()));
    EXPECT_EQ(value, 100);
  });
}

TEST_P(EventTest, AnotherThreadAsksWhileTheEventIsRecordedAgain) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::atomic<bool> is_over{false};
  on_threads(2, [&](int thread) {
    if (thread == 0) {
      const AtEnd end([&] { is_over = true; });
      for (int index = 0; index < 1'000; ++index) queue->record(*event).value();
    } else {
      while (!is_over) {
        EXPECT_TRUE(is_ok(event->query()));
        EXPECT_TRUE(is_ok(event->synchronize_blocking()));
      }
    }
  });
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
}

TEST_P(EventTest, TheNativeHandleStays) {
  const std::unique_ptr<hal::Event> event = new_event();
  EXPECT_EQ(event->native_handle(), event->native_handle());
}

}  // namespace
}  // namespace xpu::conformance
