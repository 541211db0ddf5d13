// What a device allocator tells of what it did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/device_allocator_fixture.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Stacks that a test names.
class NamedStacks final : public StackRecorder {
 public:
  std::atomic<StackId> next{0};
  std::atomic<int> calls{0};
  StackId record() noexcept override {
    ++calls;
    return next;
  }
  std::vector<Frame> frames(StackId stack) const override { return {{"file", std::to_string(stack), stack}}; }
};

class HistoryTest : public DeviceAllocatorFixture {
 protected:
  std::vector<TraceEntry> entries() const {
    std::vector<TraceEntry> all;
    const History history = allocator_->history();
    history.for_each([&](const TraceEntry& entry) { all.push_back(entry); });
    EXPECT_EQ(all.size(), history.size());
    return all;
  }
  std::vector<std::string> actions() const {
    std::vector<std::string> all;
    for (const TraceEntry& entry : entries()) all.emplace_back(to_string(entry.action));
    return all;
  }
  std::string grown() const { return GetParam() ? "segment_map" : "segment_alloc"; }
  std::string shrunk() const { return GetParam() ? "segment_unmap" : "segment_free"; }
};

INSTANTIATE_TEST_SUITE_P(Devices, HistoryTest, ::testing::Values(true, false), name_of_device);

TEST_P(HistoryTest, ABorrowedOneEndsAloneAndOnlyWhereNobodyElseKeepsOne) {
  const std::uint64_t borrowed = allocator_->borrow_history().value();
  EXPECT_NE(borrowed, 0u);
  EXPECT_EQ(allocator_->borrow_history().value(), 0u) << "one is kept already";
  free(allocate(512));
  EXPECT_FALSE(actions().empty());
  allocator_->return_history(0);
  EXPECT_FALSE(actions().empty());
  allocator_->return_history(borrowed);
  free(allocate(512));
  EXPECT_THAT(actions(), IsEmpty());
  const std::uint64_t again = allocator_->borrow_history().value();
  allocator_->return_history(borrowed);
  allocator_->start_history().value();
  allocator_->return_history(again);
  free(allocate(512));
  EXPECT_FALSE(actions().empty()) << "neither was the one that is kept";
  EXPECT_FALSE(allocator_->borrow_history({.max_entries = 0}));
}

TEST_P(HistoryTest, TellsWhatHappenedInOrder) {
  allocator_->start_history().value();
  const std::uint64_t before_ns = now_ns();
  void* const block = allocate(3 * kMiB + 5);
  free(block);
  allocator_->empty_cache();
  const std::uint64_t after_ns = now_ns();
  EXPECT_THAT(actions(), ElementsAre(grown(), "alloc", "free_requested", "free_completed", shrunk()));
  std::uint64_t last_ns = before_ns - 1'000'000;
  for (const TraceEntry& entry : entries()) {
    EXPECT_EQ(entry.address, value(block));
    EXPECT_EQ(entry.bytes, entry.action == TraceAction::alloc || entry.action == TraceAction::free_requested ||
                                   entry.action == TraceAction::free_completed
                               ? 3 * kMiB + 5
                           : GetParam() ? 4 * kMiB
                                        : 20 * kMiB);
    EXPECT_EQ(entry.stream, 1);
    EXPECT_EQ(entry.pool, PoolId{});
    EXPECT_EQ(entry.stack, 0u);
    EXPECT_GE(entry.time_ns, last_ns);
    EXPECT_LE(entry.time_ns, after_ns + 1'000'000);
    last_ns = entry.time_ns;
  }
}

TEST_P(HistoryTest, AFreeIsCompletedWhenTheOtherStreamIsDone) {
  void* const block = allocate(1'000);
  EXPECT_TRUE(allocator_->record_use(block, progress_.stream(2)));
  allocator_->start_history().value();
  free(block);
  EXPECT_THAT(actions(), ElementsAre("free_requested"));
  progress_.finish_at_once(progress_.stream(2));
  void* const other = allocate(5 * kMiB);
  EXPECT_THAT(actions(), ElementsAre("free_requested", "free_completed", grown(), "alloc"));
  free(other);
}

TEST_P(HistoryTest, OnlyTheNewestEntriesAreKept) {
  for (const std::size_t kept : {1u, 10u, 255u, 256u, 257u, 1'000u, 3'000u}) {
    allocator_->start_history({.max_entries = kept, .skipped_actions = bit_of(TraceAction::free_requested)}).value();
    const std::size_t steps = 2'500;
    for (std::size_t step = 1; step <= steps; ++step) free(allocate(step));
    const std::vector<TraceEntry> newest = entries();
    ASSERT_GE(newest.size(), std::min(kept, 2 * steps));
    ASSERT_LE(newest.size(), std::max(kept, 2 * steps + 50));
    if (kept < 2 * steps) {
      ASSERT_EQ(newest.size(), kept);
      for (std::size_t index = 0; index < kept; ++index) {
        const std::size_t from_end = kept - 1 - index;
        ASSERT_EQ(newest[index].bytes, steps - from_end / 2) << "of " << kept;
        ASSERT_EQ(newest[index].action, from_end % 2 == 0 ? TraceAction::free_completed : TraceAction::alloc);
      }
    }
  }
}

TEST_P(HistoryTest, BeginsAnewAndEndsWithNothing) {
  EXPECT_THAT(entries(), IsEmpty());
  allocator_->start_history().value();
  free(allocate(1'000));
  EXPECT_FALSE(entries().empty());
  allocator_->start_history().value();
  EXPECT_THAT(entries(), IsEmpty());
  free(allocate(1'000, 7));
  const History kept = allocator_->history();
  allocator_->stop_history();
  free(allocate(1'000));
  EXPECT_THAT(entries(), IsEmpty());
  EXPECT_GE(kept.size(), 3u);
  kept.for_each([](const TraceEntry& entry) { EXPECT_EQ(entry.stream, 7); });
  allocator_->start_history().value();
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_P(HistoryTest, BadOptionsAreRefused) {
  const Result<> none = allocator_->start_history({.max_entries = 0});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(allocator_->start_history({.stack_use = StackUse::state}));
}

TEST_P(HistoryTest, StacksAreRecordedForWhatIsAskedFor) {
  for (const StackUse use : {StackUse::never, StackUse::state, StackUse::alloc, StackUse::all}) {
    const auto stacks = std::make_shared<NamedStacks>();
    allocator_->start_history({.stack_use = use, .stacks = stacks}).value();
    stacks->next = 11;
    void* const block = allocate(1'000);
    void* const kept = allocate(2'000);
    stacks->next = 12;
    free(block);
    EXPECT_EQ(stacks->calls, use == StackUse::never ? 0 : use == StackUse::all ? 3 : 2);
    for (const SnapshotSegment& segment : allocator_->snapshot().segments) {
      for (const SnapshotBlock& seen : segment.blocks) {
        EXPECT_EQ(seen.stack, seen.address == value(kept) && use != StackUse::never ? 11u : 0u);
      }
    }
    for (const TraceEntry& entry : entries()) {
      if (entry.action == TraceAction::alloc) {
        EXPECT_EQ(entry.stack, use >= StackUse::alloc ? 11u : 0u);
      } else if (entry.action == TraceAction::free_requested) {
        EXPECT_EQ(entry.stack, use == StackUse::all ? 12u : 0u);
      }
    }
    allocator_->stop_history();
    for (const SnapshotSegment& segment : allocator_->snapshot().segments) {
      for (const SnapshotBlock& seen : segment.blocks) EXPECT_EQ(seen.stack, 0u);
    }
    free(kept);
  }
}

TEST_P(HistoryTest, WhatDidNotFitIsNotedWithWhatWasFree) {
  allocator_->start_history().value();
  void* const block = allocate(120 * kMiB);
  const auto pool = allocator_->create_pool();
  EXPECT_FALSE(allocator_->allocate(100 * kMiB, progress_.stream(3), *pool));
  EXPECT_EQ(entries().back().action, TraceAction::oom);
  std::vector<TraceEntry> ooms;
  for (const TraceEntry& entry : entries()) {
    if (entry.action == TraceAction::oom) ooms.push_back(entry);
  }
  ASSERT_EQ(ooms.size(), 1u);
  EXPECT_EQ(ooms[0].address, 80 * kMiB);
  EXPECT_EQ(ooms[0].bytes, 100 * kMiB);
  EXPECT_EQ(ooms[0].stream, 3);
  EXPECT_EQ(ooms[0].pool, pool->id());
  free(block);
}

TEST_P(HistoryTest, TrackersGetEverythingWithoutAHistoryAndMayCallTheAllocator) {
  std::vector<std::string> first, second;
  allocator_->attach_tracker([&](const TraceEntry& entry) {
    first.emplace_back(to_string(entry.action));
    if (entry.action == TraceAction::alloc) {
      EXPECT_EQ(allocator_->statistics().allocation.all.current, 1);
      EXPECT_GE(entry.time_ns, 1u);
    }
  });
  allocator_->attach_tracker([&](const TraceEntry& entry) { second.emplace_back(to_string(entry.action)); });
  free(allocate(1'000));
  allocator_->empty_cache();
  EXPECT_THAT(first, ElementsAre(grown(), "alloc", "free_requested", "free_completed", shrunk()));
  EXPECT_EQ(first, second);
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_P(HistoryTest, StreamsOfManyThreadsAreInOrderAndComplete) {
  constexpr int kThreads = 4;
  constexpr std::size_t kSteps = 2'000;
  allocator_->start_history().value();
  std::atomic<std::size_t> told{0};
  allocator_->attach_tracker([&](const TraceEntry& entry) { told += entry.action == TraceAction::alloc; });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      void* before = nullptr;
      for (std::size_t step = 0; step < kSteps; ++step) {
        void* const block = allocate(1 + step % 5'000, thread);
        if (before != nullptr) free(before);
        before = block;
      }
      free(before);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::unordered_set<std::uint64_t> live[kThreads];
  std::size_t allocations = 0;
  for (const TraceEntry& entry : entries()) {
    auto& mine = live[entry.stream];
    if (entry.action == TraceAction::alloc) {
      ++allocations;
      EXPECT_TRUE(mine.insert(entry.address).second);
    } else if (entry.action == TraceAction::free_requested) {
      EXPECT_EQ(mine.erase(entry.address), 1u);
    }
  }
  EXPECT_EQ(allocations, kThreads * kSteps);
  EXPECT_EQ(told, kThreads * kSteps);
  for (const auto& mine : live) EXPECT_THAT(mine, IsEmpty());
}

}  // namespace
}  // namespace xpu::memory
