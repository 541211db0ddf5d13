#include "interceptors/opencl/command_ring.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "interceptors/opencl/test_support/fake_driver.hpp"
#include "interceptors/opencl/test_support/immortal.hpp"
#include "interceptors/opencl/thread_state.hpp"

namespace xpu::interceptors::opencl {
namespace {

class CommandRingTest : public testing::Test {
 protected:
  CommandRingTest() {
    prepare_thread_states();
    queue_.id = 7;
    queue_.is_timed = true;
    ring_ = CommandRing::make(&queue_);
  }
  ~CommandRingTest() override { delete ring_; }

  void push(cl_int status) {
    events_.push_back(driver_.make_event(status));
    ASSERT_TRUE(ring_->push({events_.size(), events_.back()}));
  }
  std::vector<probe::OperationId> completed() const {
    std::vector<probe::OperationId> ids;
    for (const auto& entry : subscriber_.completed) ids.push_back(entry.id);
    return ids;
  }

  FakeDriver driver_;
  ScriptedSubscriber subscriber_;
  Queue queue_;
  CommandRing* ring_;
  std::vector<cl_event> events_;
};

TEST_F(CommandRingTest, PublishesWhatHasEndedAndLetsGoOfItsEvents) {
  for (int index = 0; index < 3; ++index) push(CL_COMPLETE);
  push(CL_RUNNING);
  ring_->drain();
  EXPECT_EQ(completed(), (std::vector<probe::OperationId>{1, 2, 3}));
  EXPECT_EQ(driver_.releases, 3);
  EXPECT_FALSE(ring_->is_empty());
  const probe::Completion& first = subscriber_.completed[0].completion;
  EXPECT_EQ(first.queue, 7u);
  EXPECT_EQ(first.status, probe::CompletionStatus::ok);
  EXPECT_EQ(first.ticks.queued, 1'000u);
  EXPECT_EQ(first.ticks.submit, 1'100u);
  EXPECT_EQ(first.ticks.start, 1'200u);
  EXPECT_EQ(first.ticks.end, 1'300u);
}

TEST_F(CommandRingTest, AsksOneStatusForAWholeBatchOfAnInOrderQueue) {
  for (int index = 0; index < 60; ++index) push(CL_COMPLETE);
  ring_->drain();
  EXPECT_EQ(completed().size(), 60u);
  EXPECT_EQ(driver_.status_questions, 1);
}

TEST_F(CommandRingTest, ReadsItselfWhileTheProgramLaunches) {
  for (int index = 0; index < 10'000; ++index) push(CL_COMPLETE);
  EXPECT_GE(completed().size(), 10'000u - CommandRing::kPollFrom - CommandRing::kPollEvery);
  EXPECT_LE(completed().size(), 10'000u);
  EXPECT_LE(driver_.status_questions, 10'000 / 8);
}

TEST_F(CommandRingTest, AsksFewQuestionsWhileNothingEnds) {
  constexpr int kLaunches = 20'000;
  for (int index = 0; index < kLaunches; ++index) push(CL_SUBMITTED);
  EXPECT_TRUE(completed().empty());
  EXPECT_LE(driver_.status_questions, kLaunches / 64 * 7);
}

TEST_F(CommandRingTest, FindsWhatEndedInAnyOrderOnAnOutOfOrderQueue) {
  queue_.is_out_of_order = true;
  push(CL_RUNNING);
  push(CL_COMPLETE);
  push(CL_RUNNING);
  push(CL_COMPLETE);
  ring_->drain();
  EXPECT_EQ(completed(), (std::vector<probe::OperationId>{2, 4}));
  FakeDriver::at(events_[0]).status = CL_COMPLETE;
  FakeDriver::at(events_[2]).status = CL_COMPLETE;
  ring_->drain();
  EXPECT_EQ(completed().size(), 4u);
  EXPECT_TRUE(ring_->is_empty());
}

TEST_F(CommandRingTest, ReadsPastCommandsThatNeverEndOnAnOutOfOrderQueue) {
  queue_.is_out_of_order = true;
  for (int index = 0; index < 100; ++index) push(CL_SUBMITTED);
  for (int index = 0; index < 100; ++index) push(CL_COMPLETE);
  ring_->drain();
  EXPECT_EQ(completed().size(), 100u);
}

TEST_F(CommandRingTest, ReportsTheStatusOfACommandThatFailed) {
  push(-5);
  ring_->drain();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_EQ(subscriber_.completed[0].completion.status, probe::CompletionStatus::failed);
  EXPECT_EQ(subscriber_.completed[0].completion.native_status, -5);
  EXPECT_EQ(driver_.releases, 1);
}

TEST_F(CommandRingTest, WaitsALittleForTimesThatComeLate) {
  push(CL_COMPLETE);
  FakeDriver::at(events_[0]).has_times = false;
  ring_->drain();
  EXPECT_TRUE(completed().empty());
  EXPECT_FALSE(ring_->is_empty());
  FakeDriver::at(events_[0]).has_times = true;
  ring_->drain();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_EQ(subscriber_.completed[0].completion.status, probe::CompletionStatus::ok);
}

TEST_F(CommandRingTest, PublishesAnUntimedEndWhenTheTimesNeverCome) {
  push(CL_COMPLETE);
  FakeDriver::at(events_[0]).has_times = false;
  ring_->drain_finally();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_EQ(subscriber_.completed[0].completion.status, probe::CompletionStatus::untimed);
}

TEST_F(CommandRingTest, DoesNotWaitForTimesOfAQueueThatHasNone) {
  queue_.is_timed = false;
  push(CL_COMPLETE);
  FakeDriver::at(events_[0]).has_times = false;
  ring_->drain();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_EQ(subscriber_.completed[0].completion.status, probe::CompletionStatus::untimed);
}

TEST_F(CommandRingTest, TakesTimesOfZeroForNoTimes) {
  queue_.is_timed = false;
  push(CL_COMPLETE);
  FakeDriver::at(events_[0]).start = FakeDriver::at(events_[0]).end = 0;
  ring_->drain();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_EQ(subscriber_.completed[0].completion.status, probe::CompletionStatus::untimed);
}

TEST_F(CommandRingTest, ACommandThatEndedWithoutAStartTookNoTime) {
  push(CL_COMPLETE);
  FakeDriver::at(events_[0]).start = 0;
  FakeDriver::at(events_[0]).end = 5'000;
  ring_->drain();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_TRUE(subscriber_.completed[0].completion.clamped);
  EXPECT_EQ(subscriber_.completed[0].completion.ticks.start, 5'000u);
  EXPECT_EQ(subscriber_.completed[0].completion.ticks.end, 5'000u);
}

TEST_F(CommandRingTest, ACommandWithoutAQueuedTimeTeachesNothingAboutTheClock) {
  auto& device = immortal<Device>();
  device.clock.open(nullptr, 3, true, 1);
  device.clock.on_use();
  queue_.device = &device;
  for (int round = 0; round < 8; ++round) {
    ring_->prepare_watch();
    push(CL_COMPLETE);
    FakeDriver::at(events_.back()).queued = 0;
    ring_->watch(events_.size(), now_ns());
    ring_->drain();
  }
  device.clock.read();
  EXPECT_EQ(device.clock.domain(), ClockDomain::unknown);
  for (const auto& reading : subscriber_.readings) EXPECT_EQ(reading.method, probe::ClockMethod::device_timer);
}

TEST_F(CommandRingTest, ReadsTheClockOnTheWayOnlyWhenSomethingEnded) {
  auto& device = immortal<Device>();
  device.clock.open(nullptr, 3, true, 1);
  device.clock.on_use();
  queue_.device = &device;
  const std::uint64_t begin_ns = now_ns();
  while (now_ns() - begin_ns < 60'000'000) {  // until a reading is due
  }
  ring_->drain();
  EXPECT_EQ(subscriber_.readings.size(), 1u) << "an idle program's recording does not grow";
  push(CL_COMPLETE);
  ring_->drain();
  EXPECT_EQ(subscriber_.readings.size(), 2u);
}

TEST_F(CommandRingTest, CorrectsAnEndBeforeTheStartAndSaysSo) {
  push(CL_COMPLETE);
  FakeDriver::at(events_[0]).end = 200;
  ring_->drain();
  ASSERT_EQ(subscriber_.completed.size(), 1u);
  EXPECT_TRUE(subscriber_.completed[0].completion.clamped);
  EXPECT_EQ(subscriber_.completed[0].completion.ticks.end, subscriber_.completed[0].completion.ticks.start);
}

TEST_F(CommandRingTest, LeavesAloneWhatRunsAtTheEnd) {
  push(CL_COMPLETE);
  push(CL_RUNNING);
  ring_->drain_finally();
  EXPECT_EQ(completed(), (std::vector<probe::OperationId>{1}));
  EXPECT_EQ(FakeDriver::at(events_[1]).references, 1);
}

TEST_F(CommandRingTest, RefusesMoreThanItsMaximumAndTakesMoreAfterSomethingEnded) {
  const cl_event running = driver_.make_event(CL_RUNNING);
  std::size_t kept = 0;
  while (ring_->push({kept + 1, running})) ++kept;
  EXPECT_LE(kept, CommandRing::kMaxCapacity);
  EXPECT_GE(kept, CommandRing::kMaxCapacity - 256);
  FakeDriver::at(running).status = CL_COMPLETE;
  EXPECT_TRUE(ring_->push({kept + 1, running}));
  EXPECT_EQ(completed().size(), kept);
}

TEST_F(CommandRingTest, KnowsWhichEventsItHolds) {
  push(CL_RUNNING);
  push(CL_COMPLETE);
  FakeDriver::at(events_[1]).has_times = false;
  EXPECT_TRUE(ring_->holds(events_[0]));
  EXPECT_FALSE(ring_->holds(driver_.make_event()));
  FakeDriver::at(events_[0]).status = CL_COMPLETE;
  ring_->drain();
  EXPECT_FALSE(ring_->holds(events_[0]));
  EXPECT_TRUE(ring_->holds(events_[1])) << "its times are still expected";
}

TEST_F(CommandRingTest, IsTakenOverByAnotherThreadWhenItsOwnEnds) {
  CommandRing* first = nullptr;
  CommandRing* second = nullptr;
  std::thread([&] { first = ring_for_this_thread(queue_); }).join();
  // Threads find the rings of their end among those of all known queues.
  EXPECT_NE(first, nullptr);
  first->owner = nullptr;
  std::thread([&] { second = ring_for_this_thread(queue_); }).join();
  EXPECT_EQ(first, second);
  delete first;
}

}  // namespace
}  // namespace xpu::interceptors::opencl
