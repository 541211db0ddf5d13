#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// What is delivered of timed operations.
class CompletionTest : public DeviceTest {
 protected:
  std::uint64_t now_ticks() const { return device().read_clock().value().ticks; }
  ::testing::AssertionResult in_order(std::uint64_t earlier, std::uint64_t later) const {
    if (not_before(device().clock(), later, earlier)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "tick " << later << " is before " << earlier;
  }
  ::testing::AssertionResult stamps_are_in_order(const hal::Ticks& ticks) const {
    const hal::ClockInfo& clock = device().clock();
    if (not_before(clock, ticks.submit, ticks.queued) && not_before(clock, ticks.start, ticks.submit) &&
        not_before(clock, ticks.end, ticks.start)) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "queued " << ticks.queued << ", submit " << ticks.submit << ", start " << ticks.start
                                         << ", end " << ticks.end;
  }
  /// One operation of each kind, with the tokens 1 to 4.
  void submit_one_of_each(hal::Queue& queue) {
    auto* const values = allocate_zeros<std::uint32_t>(2'000);
    const std::uint32_t pattern = 3;
    launch_with(queue, *suite_kernel("conformance_set"), items({1'000}), {.token = 1}, values, std::uint32_t{2}).value();
    queue.fill(values, std::as_bytes(std::span(&pattern, 1)), 1'000 * sizeof(pattern), {.token = 2}).value();
    queue.copy(values + 1'000, values, 1'000 * sizeof(pattern), {.token = 3}).value();
    submit_action(queue, [] {}, {.token = 4}).value();
  }
};
XPU_CONFORMANCE_SUITE(CompletionTest);

TEST_P(CompletionTest, EveryKindOfOperationIsDelivered) {
  XPU_NEEDS(registered_modules);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  submit_one_of_each(*queue);
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (std::uint64_t token = 1; token <= 4; ++token) EXPECT_EQ(sink.count_of(token), 1u) << token;
  EXPECT_EQ(sink.count(), 4u);
}

TEST_P(CompletionTest, AThousandTokensAreDeliveredOnceEach) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t token = 1; token <= 1'000; ++token) {
    submit_action(*queue, [] {}, {.token = token, .short_and_independent = token % 3 == 0}).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  std::vector<std::uint64_t> tokens;
  for (const hal::Completion& completion : sink.all()) tokens.push_back(completion.token);
  std::sort(tokens.begin(), tokens.end());
  ASSERT_EQ(tokens.size(), 1'000u);
  for (std::uint64_t token = 1; token <= 1'000; ++token) EXPECT_EQ(tokens[token - 1], token);
}

TEST_P(CompletionTest, NothingMoreIsDeliveredLater) {
  RecordingSink& sink = new_sink();
  std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t token = 1; token <= 10; ++token) submit_action(*queue, [] {}, {.token = token}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  queue.reset();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(sink.count(), 10u);
}

TEST_P(CompletionTest, OperationsWithoutATokenAreNotDelivered) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t index = 0; index < 10; ++index) submit_action(*queue, [] {}, {.token = index == 5 ? 99u : 0u}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  ASSERT_EQ(sink.count(), 1u);
  EXPECT_EQ(sink.all()[0].token, 99u);
}

TEST_P(CompletionTest, EventsAndWaitsAreNotDelivered) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  const std::unique_ptr<hal::Event> event = new_event();
  queue->record(*event).value();
  queue->wait(*event).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(sink.count(), 0u);
}

TEST_P(CompletionTest, EveryBitOfATokenComesBack) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (int bit = 0; bit < 64; ++bit) submit_action(*queue, [] {}, {.token = std::uint64_t{1} << bit}).value();
  submit_action(*queue, [] {}, {.token = ~std::uint64_t{0}}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (int bit = 0; bit < 64; ++bit) EXPECT_EQ(sink.count_of(std::uint64_t{1} << bit), 1u) << bit;
  EXPECT_EQ(sink.count_of(~std::uint64_t{0}), 1u);
}

TEST_P(CompletionTest, OneTokenMayBeUsedAgain) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (int round = 0; round < 5; ++round) submit_action(*queue, [] {}, {.token = 7}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(sink.count_of(7), 5u);
}

TEST_P(CompletionTest, EverythingIsDeliveredBeforeSynchronizeReturns) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t round = 1; round <= 200; ++round) {
    submit_action(*queue, [] {}, {.token = round}).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    ASSERT_EQ(sink.count(), round);
  }
}

TEST_P(CompletionTest, EverythingIsDeliveredBeforeTheDeviceIsSynchronized) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t round = 1; round <= 200; ++round) {
    submit_action(*queue, [] {}, {.token = round}).value();
    ASSERT_TRUE(is_ok(device().synchronize_blocking()));
    ASSERT_EQ(sink.count(), round);
  }
}

TEST_P(CompletionTest, ASinkGetsOnlyTheTokensOfItsQueues) {
  RecordingSink& first_sink = new_sink();
  RecordingSink& second_sink = new_sink();
  const std::unique_ptr<hal::Queue> first = new_queue(first_sink);
  const std::unique_ptr<hal::Queue> second = new_queue(second_sink);
  for (std::uint64_t token = 1; token <= 50; ++token) {
    submit_action(*first, [] {}, {.token = token}).value();
    submit_action(*second, [] {}, {.token = 1'000 + token}).value();
  }
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(first_sink.count(), 50u);
  EXPECT_EQ(second_sink.count(), 50u);
  for (const hal::Completion& completion : first_sink.all()) EXPECT_LE(completion.token, 50u);
  for (const hal::Completion& completion : second_sink.all()) EXPECT_GT(completion.token, 1'000u);
}

TEST_P(CompletionTest, FourQueuesShareASink) {
  RecordingSink& sink = new_sink();
  std::vector<std::unique_ptr<hal::Queue>> queues;
  for (int index = 0; index < 4; ++index) queues.push_back(new_queue(sink));
  on_threads(4, [&](int thread) {
    for (std::uint64_t index = 1; index <= 500; ++index) {
      submit_action(*queues[static_cast<std::size_t>(thread)], [] {}, {.token = static_cast<std::uint64_t>(thread) * 1'000 + index})
          .value();
    }
  });
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(sink.count(), 2'000u);
}

TEST_P(CompletionTest, AQueueWithoutASinkTakesTimedOperations) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<bool> has_run{false};
  submit_action(*queue, [&] { has_run = true; }, {.token = 1}).value();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(CompletionTest, TheWorkOfADestroyedQueueIsDelivered) {
  RecordingSink& sink = new_sink();
  std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t token = 1; token <= 100; ++token) submit_action(*queue, [] {}, {.token = token}).value();
  queue.reset();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(sink.count(), 100u);
}

TEST_P(CompletionTest, AFailedOperationIsDeliveredAsFailed) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  submit_action(*queue, [] {}, {.token = 1}).value();
  submit_function(*queue, []() -> Result<> { return Error{ErrorCode::internal, "this one fails"}; }, {.token = 2}).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_NE(sink.of(1).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sink.of(2).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sink.count(), 2u);
}

TEST_P(CompletionTest, OperationsAfterTheErrorWasReturnedAreNotFailed) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  submit_function(*queue, []() -> Result<> { return Error{ErrorCode::internal, "this one fails"}; }, {.token = 1}).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  submit_action(*queue, [] {}, {.token = 2}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_NE(sink.of(2).status, hal::CompletionStatus::failed);
}

TEST_P(CompletionTest, AFailedOperationHasTimesInOrder) {
  XPU_NEEDS(timed_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  submit_function(*queue, []() -> Result<> { return Error{ErrorCode::internal, "this one fails"}; }, {.token = 1}).value();
  EXPECT_FALSE(queue->synchronize_blocking());
  EXPECT_TRUE(stamps_are_in_order(sink.of(1).ticks));
}

TEST_P(CompletionTest, TheFourStampsOfEveryKindAreInOrder) {
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(registered_modules);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (int round = 0; round < 50; ++round) submit_one_of_each(*queue);
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(sink.count(), 200u);
  for (const hal::Completion& completion : sink.all()) {
    EXPECT_EQ(completion.status, hal::CompletionStatus::ok) << completion.token;
    EXPECT_TRUE(stamps_are_in_order(completion.ticks)) << completion.token;
  }
}

TEST_P(CompletionTest, StampsLieBetweenReadingsOfTheClock) {
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(registered_modules);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  const std::uint64_t before = now_ticks();
  submit_one_of_each(*queue);
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  const std::uint64_t after = now_ticks();
  for (std::uint64_t token = 1; token <= 4; ++token) {
    EXPECT_TRUE(in_order(before, sink.of(token).ticks.queued)) << token;
    EXPECT_TRUE(in_order(sink.of(token).ticks.end, after)) << token;
  }
}

TEST_P(CompletionTest, QueuedIsTheMomentOfTheSubmission) {
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(pending_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  Hold hold(*queue);
  const std::uint64_t before = now_ticks();
  submit_action(*queue, [] {}, {.token = 1}).value();
  const std::uint64_t after = now_ticks();
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(in_order(before, sink.of(1).ticks.queued));
  EXPECT_TRUE(in_order(sink.of(1).ticks.queued, after));
}

TEST_P(CompletionTest, AHeldOperationStartsAfterItWasReleased) {
  XPU_NEEDS(timed_operations);
  XPU_NEEDS(concurrent_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  Hold hold(*queue);
  submit_action(*queue, [] {}, {.token = 1}).value();
  ASSERT_TRUE(hold.eventually_holds());
  const std::uint64_t before_release = now_ticks();
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(in_order(before_release, sink.of(1).ticks.start));
}

TEST_P(CompletionTest, OperationsOfAQueueDoNotOverlapInTime) {
  XPU_NEEDS(timed_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t token = 1; token <= 200; ++token) {
    submit_action(*queue, [] {}, {.token = token, .short_and_independent = token % 2 == 0}).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (std::uint64_t token = 2; token <= 200; ++token) {
    EXPECT_TRUE(in_order(sink.of(token - 1).ticks.end, sink.of(token).ticks.start)) << token;
  }
}

TEST_P(CompletionTest, WorkBehindAWaitStartsAfterTheWorkBeforeTheEventEnded) {
  XPU_NEEDS(timed_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> first = new_queue(sink);
  const std::unique_ptr<hal::Queue> second = new_queue(sink);
  for (std::uint64_t round = 1; round <= 50; ++round) {
    const std::unique_ptr<hal::Event> event = new_event();
    submit_action(*first, [] {}, {.token = 2 * round}).value();
    first->record(*event).value();
    second->wait(*event).value();
    submit_action(*second, [] {}, {.token = 2 * round + 1}).value();
  }
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  for (std::uint64_t round = 1; round <= 50; ++round) {
    EXPECT_TRUE(in_order(sink.of(2 * round).ticks.end, sink.of(2 * round + 1).ticks.start)) << round;
  }
}

TEST_P(CompletionTest, StampsFitIntoTheValidBits) {
  XPU_NEEDS(timed_operations);
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  submit_action(*queue, [] {}, {.token = 1}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  const hal::Ticks ticks = sink.of(1).ticks;
  if (device().clock().valid_bits < 64) {
    EXPECT_EQ((ticks.queued | ticks.submit | ticks.start | ticks.end) >> device().clock().valid_bits, 0u);
  }
}

TEST_P(CompletionTest, CompletionsOfAQueueAreDeliveredInItsOrder) {
  RecordingSink& sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(sink);
  for (std::uint64_t token = 1; token <= 300; ++token) submit_action(*queue, [] {}, {.token = token}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  const std::vector<hal::Completion> delivered = sink.all();
  EXPECT_TRUE(std::is_sorted(delivered.begin(), delivered.end(),
                             [](const hal::Completion& a, const hal::Completion& b) { return a.token < b.token; }));
}

}  // namespace
}  // namespace xpu::conformance
