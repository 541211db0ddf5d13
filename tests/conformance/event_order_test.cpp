#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Events that order queues against each other.
class EventOrderTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(EventOrderTest);

TEST_P(EventOrderTest, WorkBehindAWaitBeginsAfterTheWorkBeforeTheEvent) {
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  // Plain variables: only the order of the queues keeps the two functions apart.
  int value = 0;
  int seen = -1;
  submit_action(*first, [&] { value = 1; }).value();
  first->record(*event).value();
  second->wait(*event).value();
  submit_action(*second, [&] { seen = value; }).value();
  ASSERT_TRUE(is_ok(second->synchronize_blocking()));
  EXPECT_EQ(seen, 1);
}

TEST_P(EventOrderTest, WorkBehindAWaitIsHeldWithTheEvent) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> waiting = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::atomic<bool> has_run{false};
  Hold hold(*held);
  held->record(*event).value();
  waiting->wait(*event).value();
  submit_action(*waiting, [&] { has_run = true; }, {.token = 0, .short_and_independent = true}).value();
  for (int index = 0; index < 1'000; ++index) ASSERT_FALSE(waiting->query().value());
  EXPECT_FALSE(has_run);
  hold.release();
  ASSERT_TRUE(is_ok(waiting->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(EventOrderTest, AWaitAloneKeepsTheQueueFromBeingComplete) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> waiting = new_queue();
  const std::unique_ptr<hal::Event> gate = new_event();
  const std::unique_ptr<hal::Event> behind = new_event();
  Hold hold(*held);
  held->record(*gate).value();
  waiting->wait(*gate).value();
  waiting->record(*behind).value();
  EXPECT_FALSE(behind->query().value());
  hold.release();
  EXPECT_TRUE(is_ok(behind->synchronize_blocking()));
}

TEST_P(EventOrderTest, AnEventThatWasNeverRecordedHoldsNobody) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::atomic<bool> has_run{false};
  queue->wait(*event).value();
  submit_action(*queue, [&] { has_run = true; }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(EventOrderTest, AWaitCapturesTheEventAsItIsAtThatMoment) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> waiting = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  Hold hold(*held);
  waiting->wait(*event).value();  // never recorded: holds nobody
  held->record(*event).value();   // too late for the wait
  std::atomic<bool> has_run{false};
  submit_action(*waiting, [&] { has_run = true; }).value();
  EXPECT_TRUE(is_ok(waiting->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(EventOrderTest, AWaitKeepsItsCaptureWhenTheEventIsRecordedAgain) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> waiting = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  submit_action(*first, [&value] { value = 1; }).value();
  first->record(*event).value();
  waiting->wait(*event).value();
  Hold hold(*held);
  held->record(*event).value();
  int seen = -1;
  submit_action(*waiting, [&] { seen = value; }).value();
  EXPECT_TRUE(is_ok(waiting->synchronize_blocking()));
  EXPECT_EQ(seen, 1);
  EXPECT_FALSE(event->query().value());
}

TEST_P(EventOrderTest, AWaitOnAHeldCaptureStaysWhenTheEventIsRecordedElsewhere) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  const std::unique_ptr<hal::Queue> waiting = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  Hold hold(*held);
  held->record(*event).value();
  waiting->wait(*event).value();
  std::atomic<bool> has_run{false};
  submit_action(*waiting, [&] { has_run = true; }).value();
  other->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_FALSE(has_run);
  EXPECT_FALSE(waiting->query().value());
  hold.release();
  EXPECT_TRUE(is_ok(waiting->synchronize_blocking()));
}

TEST_P(EventOrderTest, AQueueMayWaitForItself) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  std::vector<int> order;
  submit_action(*queue, [&order] { order.push_back(1); }).value();
  queue->record(*event).value();
  queue->wait(*event).value();
  submit_action(*queue, [&order] { order.push_back(2); }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(order, (std::vector{1, 2}));
}

/// Each function waits for the other queue's last one.
void expect_turns(const std::unique_ptr<hal::Queue> (&queues)[2], const std::unique_ptr<hal::Event> (&events)[2]) {
  constexpr int kRounds = 200;
  std::vector<int> order;
  for (int round = 0; round < kRounds; ++round) {
    const int mine = round % 2;
    queues[mine]->wait(*events[1 - mine]).value();
    submit_action(*queues[mine], [&order, round] { order.push_back(round); }).value();
    queues[mine]->record(*events[mine]).value();
  }
  ASSERT_TRUE(is_ok(queues[0]->synchronize_blocking()));
  ASSERT_TRUE(is_ok(queues[1]->synchronize_blocking()));
  std::vector<int> expected(kRounds);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(EventOrderTest, TwoQueuesTakeTurns) {
  const std::unique_ptr<hal::Queue> queues[2] = {new_queue(), new_queue()};
  const std::unique_ptr<hal::Event> events[2] = {new_event(), new_event()};
  expect_turns(queues, events);
}

TEST_P(EventOrderTest, ARingOfQueuesPassesAValueRound) {
  std::vector<std::unique_ptr<hal::Queue>> queues;
  for (int index = 0; index < 8; ++index) queues.push_back(new_queue());
  std::uint64_t value = 1;
  std::uint64_t expected = 1;
  for (std::uint64_t step = 0; step < 160; ++step) {
    hal::Queue& from = *queues[step % 8];
    hal::Queue& to = *queues[(step + 1) % 8];
    submit_action(from, [&value, step] { value = value * 3 + step; }).value();
    const std::unique_ptr<hal::Event> event = new_event();
    from.record(*event).value();
    to.wait(*event).value();
    expected = expected * 3 + step;
  }
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(value, expected);
}

TEST_P(EventOrderTest, OneQueueWaitsForMany) {
  const std::unique_ptr<hal::Queue> last = new_queue();
  std::vector<std::unique_ptr<hal::Queue>> queues;
  std::vector<int> values(16);
  for (std::size_t index = 0; index < values.size(); ++index) {
    queues.push_back(new_queue());
    submit_action(*queues.back(), [&values, index] { values[index] = 1; }).value();
    const std::unique_ptr<hal::Event> event = new_event();
    queues.back()->record(*event).value();
    last->wait(*event).value();
  }
  int sum = 0;
  submit_action(*last, [&] { sum = std::accumulate(values.begin(), values.end(), 0); }).value();
  ASSERT_TRUE(is_ok(last->synchronize_blocking()));
  EXPECT_EQ(sum, 16);
}

TEST_P(EventOrderTest, ManyQueuesWaitForOne) {
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  std::vector<std::unique_ptr<hal::Queue>> queues;
  std::vector<int> seen(16);
  submit_action(*first, [&value] { value = 5; }).value();
  first->record(*event).value();
  for (int& place : seen) {
    queues.push_back(new_queue());
    queues.back()->wait(*event).value();
    submit_action(*queues.back(), [&] { place = value; }).value();
  }
  for (const std::unique_ptr<hal::Queue>& queue : queues) ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(seen, std::vector<int>(16, 5));
}

TEST_P(EventOrderTest, AnEventBehindAWaitCarriesTheOrderOn) {
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  const std::unique_ptr<hal::Queue> third = new_queue();
  const std::unique_ptr<hal::Event> of_first = new_event();
  const std::unique_ptr<hal::Event> of_second = new_event();
  int value = 0;
  int seen = -1;
  submit_action(*first, [&value] { value = 8; }).value();
  first->record(*of_first).value();
  second->wait(*of_first).value();
  second->record(*of_second).value();  // no operation between the two
  third->wait(*of_second).value();
  submit_action(*third, [&] { seen = value; }).value();
  ASSERT_TRUE(is_ok(third->synchronize_blocking()));
  EXPECT_EQ(seen, 8);
}

TEST_P(EventOrderTest, SynchronizingAQueueWaitsForWhatItWaitsFor) {
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  for (int index = 0; index < 50; ++index) submit_action(*first, [&value] { ++value; }).value();
  first->record(*event).value();
  second->wait(*event).value();
  ASSERT_TRUE(is_ok(second->synchronize_blocking()));
  EXPECT_EQ(value, 50);
}

TEST_P(EventOrderTest, AQueueOfAnotherDeviceWaits) {
  XPU_NEEDS(two_devices);
  const std::unique_ptr<hal::Queue> here = new_queue();
  const std::unique_ptr<hal::Queue> there = device(1).create_queue({}).value();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  int seen = -1;
  submit_action(*here, [&value] { value = 4; }).value();
  here->record(*event).value();
  there->wait(*event).value();
  submit_action(*there, [&] { seen = value; }).value();
  ASSERT_TRUE(is_ok(there->synchronize_blocking()));
  EXPECT_EQ(seen, 4);
}

TEST_P(EventOrderTest, TwoDevicesTakeTurns) {
  XPU_NEEDS(two_devices);
  const std::unique_ptr<hal::Queue> queues[2] = {new_queue(), device(1).create_queue({}).value()};
  const std::unique_ptr<hal::Event> events[2] = {new_event(), device(1).create_event({}).value()};
  expect_turns(queues, events);
}

TEST_P(EventOrderTest, ADestroyedQueueStillHoldsThoseThatWaitForIt) {
  XPU_NEEDS(pending_operations);
  std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  int seen = -1;
  Hold hold(*first);
  submit_action(*first, [&value] { value = 3; }).value();
  first->record(*event).value();
  second->wait(*event).value();
  first.reset();
  submit_action(*second, [&] { seen = value; }).value();
  hold.release();
  ASSERT_TRUE(is_ok(second->synchronize_blocking()));
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace xpu::conformance
