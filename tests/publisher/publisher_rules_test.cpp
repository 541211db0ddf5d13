#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "publisher/publisher.hpp"
#include "publisher/subscriber_test.hpp"

/// What holds for every publisher, whatever its work is made of.
namespace xpu::publisher_tests {
namespace {

class PublisherRulesTest : public SubscriberTest {
 protected:
  static std::vector<std::uint32_t> numbers_of(const std::vector<SeenOperation>& operations) {
    std::vector<std::uint32_t> numbers;
    for (const SeenOperation& operation : operations) numbers.push_back(operation.submission->queue_sequence);
    return numbers;
  }

  const std::unique_ptr<Publisher> publisher_ = make_publisher();
};

TEST_F(PublisherRulesTest, AKernelHasItsNameItsQueueAndTheirDevice) {
  const auto queue = publisher_->new_queue();
  queue->launch();
  queue->finish();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].api, publisher_->launch_api());
  EXPECT_EQ(operations[0].command, probe::Command::ndrange_kernel);
  const auto kernels = subscriber_.objects(probe::ObjectKind::kernel);
  const auto queues = subscriber_.objects(probe::ObjectKind::queue);
  const auto devices = subscriber_.objects(probe::ObjectKind::device);
  ASSERT_TRUE(kernels.contains(operations[0].kernel));
  ASSERT_TRUE(queues.contains(operations[0].queue));
  EXPECT_EQ(kernels.at(operations[0].kernel).name, "tiny");
  const probe::Id device = queues.at(operations[0].queue).device;
  EXPECT_EQ(kernels.at(operations[0].kernel).device, device);
  ASSERT_TRUE(devices.contains(device));
  EXPECT_FALSE(devices.at(device).name.empty());
}

TEST_F(PublisherRulesTest, CommandsOfAQueueAreNumberedFromOne) {
  const auto queue = publisher_->new_queue();
  for (int index = 0; index < 5; ++index) queue->launch();
  queue->finish();
  EXPECT_THAT(numbers_of(finished()), testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(PublisherRulesTest, QueuesAreNumberedEachForItself) {
  const auto first = publisher_->new_queue(), second = publisher_->new_queue();
  for (int index = 0; index < 2; ++index) {
    first->launch();
    second->launch();
  }
  first->finish();
  second->finish();
  EXPECT_THAT(numbers_of(finished()), testing::ElementsAre(1, 1, 2, 2));
}

TEST_F(PublisherRulesTest, WhatTheSubscriberDoesNotWantTakesNoNumberAndHasNoEnd) {
  const auto queue = publisher_->new_queue();
  queue->launch();
  subscriber_.refuse_operations(true);
  for (int index = 0; index < 100; ++index) queue->launch();
  subscriber_.refuse_operations(false);
  queue->launch();
  queue->finish();
  EXPECT_THAT(numbers_of(finished()), testing::ElementsAre(1, 2));  // the destructor looks for completions of the others
}

TEST_F(PublisherRulesTest, WhatTheSubscriberCouldNotKeepIsNotCompleted) {
  const auto queue = publisher_->new_queue();
  subscriber_.drop_submissions(true);
  for (int index = 0; index < 100; ++index) queue->launch();
  queue->finish();
  subscriber_.drop_submissions(false);
  EXPECT_TRUE(finished().empty());  // the destructor looks for completions of what was dropped
}

TEST_F(PublisherRulesTest, WhatTheSubscriberCouldNotKeepTakesANumber) {
  const auto queue = publisher_->new_queue();
  queue->launch();
  subscriber_.drop_submissions(true);
  for (int index = 0; index < 3; ++index) queue->launch();
  subscriber_.drop_submissions(false);
  queue->launch();
  queue->finish();
  EXPECT_THAT(numbers_of(finished()), testing::ElementsAre(1, 5));
}

TEST_F(PublisherRulesTest, InsideAScopeNoOperationIsPublished) {
  const auto queue = publisher_->new_queue();
  queue->launch();
  queue->finish();
  finished();
  subscriber_.forget_events();
  {
    const probe::Scope scope;
    queue->launch();
    queue->finish();
  }
  EXPECT_TRUE(finished().empty());
  EXPECT_TRUE(subscriber_.waits().empty());
  const auto calls = subscriber_.calls();
  const bool has_call = std::any_of(calls.begin(), calls.end(), [&](const SeenCall& call) { return call.api == publisher_->launch_api(); });
  EXPECT_EQ(has_call, publisher_->publishes_calls_inside_scopes());
  queue->launch();
  queue->finish();
  EXPECT_THAT(numbers_of(finished()), testing::ElementsAre(2));
}

TEST_F(PublisherRulesTest, ASuspendedScopeIsNone) {
  const auto queue = publisher_->new_queue();
  {
    const probe::Scope scope;
    const probe::ScopeSuspended suspended;
    queue->launch();
    queue->finish();
  }
  EXPECT_EQ(finished().size(), 1u);
}

TEST_F(PublisherRulesTest, AProgramThatGoesQuietIsStillRead) {
  const auto queue = publisher_->new_queue();
  queue->launch();
  queue->flush();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_TRUE(operations[0].completion) << "without any call after the flush";
}

TEST_F(PublisherRulesTest, ThreadsOnOneQueueLoseNothing) {
  constexpr int kThreads = 4, kLaunches = 2'000;
  const auto queue = publisher_->new_queue();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int index = 0; index < kLaunches; ++index) {
        queue->launch();
        if (index % 500 == 499) queue->finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  queue->finish();
  const auto operations = finished();
  EXPECT_EQ(operations.size(), static_cast<std::size_t>(kThreads * kLaunches));
  for (const SeenOperation& operation : operations) {
    ASSERT_TRUE(operation.completion);
    ASSERT_EQ(operation.completion->status, probe::CompletionStatus::ok);
  }
}

TEST_F(PublisherRulesTest, ASubscriberThatComesAndGoesWhileThreadsWorkSeesNoRuleBroken) {
  constexpr int kThreads = 4, kLaunches = 2'000;
  std::vector<std::unique_ptr<PublishedQueue>> queues;
  for (int thread = 0; thread < kThreads; ++thread) queues.push_back(publisher_->new_queue());
  std::vector<std::thread> threads;
  for (const auto& queue : queues) {
    threads.emplace_back([&] {
      for (int index = 0; index < kLaunches; ++index) queue->launch();
      queue->finish();
    });
  }
  for (int round = 0; round < 50; ++round) {
    subscriber_.refuse_operations(round % 2 == 0);
    subscriber_.drop_submissions(round % 3 == 0);
    std::this_thread::yield();
  }
  subscriber_.refuse_operations(false);
  subscriber_.drop_submissions(false);
  for (std::thread& thread : threads) thread.join();
  for (const auto& queue : queues) {
    queue->launch();
    queue->finish();
  }
  EXPECT_GE(finished().size(), static_cast<std::size_t>(kThreads));
}

TEST_F(PublisherRulesTest, LivingObjectsArePublishedAgainWithTheNumbersAlreadyUsed) {
  const auto queue = publisher_->new_queue();
  for (int index = 0; index < 3; ++index) queue->launch();
  queue->finish();
  const probe::Id id = finished()[0].queue;
  EXPECT_EQ(subscriber_.objects(probe::ObjectKind::queue).at(id).published_before, 0u);
  probe::republish_all();
  EXPECT_EQ(subscriber_.objects(probe::ObjectKind::queue).at(id).published_before, 3u);
}

TEST_F(PublisherRulesTest, ALateSubscriberKnowsTheObjectsThatItsFirstCommandNames) {
  const auto queue = publisher_->new_queue();
  queue->launch();
  queue->finish();
  finished();
  subscriber_.leave();
  queue->launch();  // nobody's
  queue->finish();
  subscriber_.come_back();
  subscriber_.forget_events();
  queue->launch();
  queue->finish();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].submission->queue_sequence, 2u) << "what nobody listened to takes no number";
  const auto queues = subscriber_.objects(probe::ObjectKind::queue);
  ASSERT_TRUE(queues.contains(operations[0].queue));
  EXPECT_EQ(queues.at(operations[0].queue).published_before, 1u);
  const auto kernels = subscriber_.objects(probe::ObjectKind::kernel);
  ASSERT_TRUE(kernels.contains(operations[0].kernel));
  EXPECT_EQ(kernels.at(operations[0].kernel).name, "tiny");
  EXPECT_TRUE(subscriber_.objects(probe::ObjectKind::device).contains(queues.at(operations[0].queue).device));
}

}  // namespace
}  // namespace xpu::publisher_tests
