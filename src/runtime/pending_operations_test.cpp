#include "runtime/pending_operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace xpu::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::pair<probe::OperationId, probe::Completion>> g_completed;
std::vector<probe::Loss> g_lost;
std::atomic<std::uint64_t> g_completion_count{0};

class PendingOperationsTest : public ::testing::Test {
 protected:
  PendingOperationsTest() {
    g_completed.clear();
    g_lost.clear();
    subscriber_.complete = [](probe::OperationId id, const probe::Completion& completion) { g_completed.emplace_back(id, completion); };
    subscriber_.lost = [](const probe::Loss& loss) { g_lost.push_back(loss); };
  }
  static hal::Completion record_of(std::uint64_t token) { return {token, hal::CompletionStatus::ok, {1, 2, 3, 4}}; }
  static std::vector<probe::OperationId> completed_ids() {
    std::vector<probe::OperationId> ids;
    for (const auto& [id, completion] : g_completed) ids.push_back(id);
    return ids;
  }

  probe::Subscriber subscriber_;
  PendingOperations pending_;
};

TEST_F(PendingOperationsTest, ARecordAfterTheSubmissionIsPublishedAtOnce) {
  const std::uint64_t token = pending_.open(&subscriber_, 7, 3);
  pending_.submitted(token);
  EXPECT_THAT(g_completed, IsEmpty());
  pending_.complete(record_of(token));
  ASSERT_THAT(completed_ids(), ElementsAre(7));
  EXPECT_EQ(g_completed[0].second.queue, 3u);
  EXPECT_EQ(g_completed[0].second.status, probe::CompletionStatus::ok);
  EXPECT_EQ(g_completed[0].second.ticks.queued, 1u);
  EXPECT_EQ(g_completed[0].second.ticks.end, 4u);
}

TEST_F(PendingOperationsTest, ARecordBeforeTheSubmissionIsPublishedAfterIt) {
  const std::uint64_t token = pending_.open(&subscriber_, 7, 3);
  pending_.complete(record_of(token));
  EXPECT_THAT(g_completed, IsEmpty());
  pending_.submitted(token);
  EXPECT_THAT(completed_ids(), ElementsAre(7));
}

TEST_F(PendingOperationsTest, ARecordThatNobodyWantsIsNotPublished) {
  const std::uint64_t early = pending_.open(&subscriber_, 1, 3), late = pending_.open(&subscriber_, 2, 3);
  pending_.complete(record_of(early));
  pending_.discard(early);
  pending_.discard(late);
  pending_.complete(record_of(late));
  EXPECT_THAT(g_completed, IsEmpty());
  EXPECT_EQ(pending_.unexpected_records(), 0u);
}

TEST_F(PendingOperationsTest, ASecondRecordIsCountedAndGoesNoFurther) {
  const std::uint64_t token = pending_.open(&subscriber_, 7, 3);
  pending_.complete(record_of(token));
  pending_.complete(record_of(token));
  pending_.submitted(token);
  pending_.complete(record_of(token));
  const std::uint64_t reused = pending_.open(&subscriber_, 8, 3);
  EXPECT_NE(reused, token);
  pending_.submitted(reused);
  pending_.complete(record_of(token));
  EXPECT_THAT(completed_ids(), ElementsAre(7));
  EXPECT_EQ(pending_.unexpected_records(), 3u);
}

TEST_F(PendingOperationsTest, ARecordOfARefusedSubmissionOrOfNothingIsCounted) {
  const std::uint64_t token = pending_.open(&subscriber_, 7, 3);
  pending_.refused(token);
  pending_.complete(record_of(token));
  pending_.complete(record_of(0));
  EXPECT_THAT(g_completed, IsEmpty());
  EXPECT_EQ(pending_.unexpected_records(), 2u);
}

TEST_F(PendingOperationsTest, AnEndBeforeTheStartIsCorrectedAndMarked) {
  const std::uint64_t token = pending_.open(&subscriber_, 7, 3);
  pending_.submitted(token);
  pending_.complete({token, hal::CompletionStatus::ok, {10, 20, 300, 200}});
  EXPECT_EQ(g_completed[0].second.ticks.end, 300u);
  EXPECT_TRUE(g_completed[0].second.clamped);
}

TEST_F(PendingOperationsTest, ACounterThatWrappedIsNoCorrection) {
  pending_.set_valid_bits(32);
  const std::uint64_t token = pending_.open(&subscriber_, 7, 3);
  pending_.submitted(token);
  pending_.complete({token, hal::CompletionStatus::ok, {0xffff'fff0, 0xffff'fff1, 0xffff'fffe, 5}});
  EXPECT_EQ(g_completed[0].second.ticks.end, 5u);
  EXPECT_FALSE(g_completed[0].second.clamped);
}

TEST_F(PendingOperationsTest, WhatHasNoRecordWhenEverythingHasEndedIsLost) {
  const std::uint64_t first = pending_.open(&subscriber_, 1, 3), second = pending_.open(&subscriber_, 2, 3);
  pending_.submitted(first);
  pending_.submitted(second);
  pending_.complete(record_of(first));
  pending_.publish_lost();
  ASSERT_EQ(g_lost.size(), 1u);
  EXPECT_EQ(g_lost[0].first, 2u);
  EXPECT_EQ(g_lost[0].cause, probe::LossCause::driver_lost_times);
  pending_.complete(record_of(second));
  EXPECT_THAT(completed_ids(), ElementsAre(1)) << "what was given up is not published as well";
}

TEST_F(PendingOperationsTest, RecordsFromAnotherThreadAndSubmissionsMeetExactlyOnce) {
  constexpr std::uint64_t kCount = 20'000;
  g_completion_count = 0;
  subscriber_.complete = [](probe::OperationId, const probe::Completion&) { g_completion_count.fetch_add(1, std::memory_order_relaxed); };
  std::vector<std::atomic<std::uint64_t>> tokens(kCount);
  std::thread recorder([&] {
    for (auto& place : tokens) {
      std::uint64_t token = 0;
      while ((token = place.load(std::memory_order_acquire)) == 0) std::this_thread::yield();
      pending_.complete(record_of(token));
    }
  });
  for (std::uint64_t index = 0; index < kCount; ++index) {
    const std::uint64_t token = pending_.open(&subscriber_, index + 1, 3);
    tokens[index].store(token, std::memory_order_release);
    pending_.submitted(token);
  }
  recorder.join();
  EXPECT_EQ(g_completion_count, kCount);
  EXPECT_EQ(pending_.unexpected_records(), 0u);
}

}  // namespace
}  // namespace xpu::runtime
