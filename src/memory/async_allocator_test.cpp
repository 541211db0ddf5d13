#include "xpu/memory/async_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"

namespace xpu::memory {
namespace {

class AsyncAllocatorTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kBytes = 16 * kMiB;  // a segment of its own
  static constexpr std::size_t kCapacity = 128 * kMiB;

  void* allocate(const StreamRef& stream, std::size_t bytes = kBytes) { return allocator_->allocate(bytes, stream).value(); }
  DeviceStatistics statistics() const { return allocator_->statistics(); }
  std::int64_t reserved_bytes() const { return statistics().reserved_bytes.all.current; }

  FakeDeviceMemory memory_{kCapacity, GetParam()};
  ScriptedProgress progress_;
  const StreamRef first_ = progress_.stream(1), second_ = progress_.stream(2), third_ = progress_.stream(3);
  std::unique_ptr<AsyncAllocator> allocator_ = AsyncAllocator::create(memory_, progress_).value();
};

INSTANTIATE_TEST_SUITE_P(Devices, AsyncAllocatorTest, ::testing::Values(true, false),
                         [](const ::testing::TestParamInfo<bool>& can_map) { return can_map.param ? "expandable" : "segments"; });

TEST_P(AsyncAllocatorTest, TheStreamThatFreesABlockGetsItAtOnce) {
  for (const StreamRef& freeing : {first_, second_}) {
    void* const block = allocate(first_);
    allocator_->free(block, freeing).value();
    EXPECT_EQ(allocate(freeing), block) << freeing.id;
    EXPECT_EQ(progress_.calls(freeing).issue, 0);
  }
}

TEST_P(AsyncAllocatorTest, AFreeWithoutAStreamIsOneOnThatOfTheLastAllocation) {
  void* const block = allocate(first_);
  allocator_->free(block, second_).value();
  ASSERT_EQ(allocate(second_), block);
  allocator_->free(block).value();
  EXPECT_NE(allocate(third_), block);
  EXPECT_EQ(allocate(second_), block);
}

TEST_P(AsyncAllocatorTest, OtherStreamsGetABlockAfterATicketOfTheStreamThatFreedIt) {
  void* const block = allocate(first_);
  allocator_->free(block, second_).value();
  EXPECT_NE(allocate(third_), block);
  EXPECT_NE(allocate(first_), block) << "the second stream has yet to come to the free";
  EXPECT_EQ(progress_.calls(second_).issue, 1);
  EXPECT_NE(allocate(second_), block) << "it has been let go";
  progress_.reach_all(second_);
  EXPECT_EQ(allocate(first_), block);
}

TEST_P(AsyncAllocatorTest, ABlockThatCameBackToItsFirstStreamIsItsAtOnce) {
  void* const block = allocate(first_);
  allocator_->free(block, second_).value();
  ASSERT_EQ(allocate(second_), block);
  allocator_->free(block, first_).value();
  EXPECT_EQ(allocate(first_), block);
  EXPECT_EQ(progress_.calls(second_).issue, 0);
}

TEST_P(AsyncAllocatorTest, UsesOnOtherStreamsAreWaitedFor) {
  void* const block = allocate(first_);
  EXPECT_TRUE(allocator_->record_use(block, third_));
  EXPECT_TRUE(allocator_->record_use(block, first_)) << "its own";
  allocator_->free(block, second_).value();
  EXPECT_NE(allocate(second_), block);
  EXPECT_NE(allocate(first_), block);
  progress_.reach_all(second_);
  EXPECT_NE(allocate(first_), block) << "the third stream is still at it";
  progress_.reach_all(third_);
  EXPECT_EQ(allocate(first_), block);
}

TEST_P(AsyncAllocatorTest, AUseOnTheFirstStreamOfABlockThatIsAnotherOnesIsNotForgotten) {
  void* const block = allocate(first_);
  allocator_->free(block, second_).value();
  ASSERT_EQ(allocate(second_), block);
  EXPECT_TRUE(allocator_->record_use(block, first_));
  allocator_->free(block).value();
  EXPECT_NE(allocate(second_), block) << "the first stream may still be at it";
}

TEST_P(AsyncAllocatorTest, OnlyABlockOfAboutTheSizeIsTakenWhole) {
  void* const block = allocate(first_);
  allocator_->free(block, second_).value();
  EXPECT_NE(allocate(second_, kBytes / 2), block);
  EXPECT_NE(allocate(second_, kBytes + 1), block);
  EXPECT_EQ(allocate(second_, kBytes - kMiB), block);
}

TEST_P(AsyncAllocatorTest, AStreamThatAllocatesWhatAnotherOneFreesNeedsNoMoreMemoryForThat) {
  progress_.finish_at_once(second_);
  for (int count = 0; count < 100; ++count) allocator_->free(allocate(first_), second_).value();
  EXPECT_LE(reserved_bytes(), static_cast<std::int64_t>(3 * kBytes));
}

TEST_P(AsyncAllocatorTest, WhenMemoryIsShortWhatOthersFreedIsWaitedFor) {
  std::vector<void*> blocks;
  for (int count = 0; count < 7; ++count) blocks.push_back(allocate(first_));
  for (void* const block : blocks) allocator_->free(block, second_).value();
  EXPECT_NE(allocate(third_, 100 * kMiB), nullptr);
  EXPECT_GE(progress_.calls(second_).wait, 1);
  EXPECT_EQ(statistics().num_ooms, 0);
  EXPECT_EQ(allocator_->allocate(kCapacity, third_).error().code, ErrorCode::out_of_device_memory);
  EXPECT_EQ(statistics().num_ooms, 1);
}

TEST_P(AsyncAllocatorTest, WhatIsNotTheBeginOfALiveBlockIsRefused) {
  void* const block = allocate(first_);
  allocator_->free(block, second_).value();
  for (void* const address : {block, static_cast<void*>(static_cast<std::byte*>(block) + 512), static_cast<void*>(this)}) {
    EXPECT_EQ(allocator_->free(address).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(allocator_->free(address, first_).error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(allocator_->record_use(address, third_));
  }
  EXPECT_TRUE(allocator_->free(nullptr));
  EXPECT_EQ(allocate(first_, 0), nullptr);
}

TEST_P(AsyncAllocatorTest, TrimmingKeepsWhatItIsTold) {
  for (const StreamRef& stream : {first_, second_}) progress_.finish_at_once(stream);
  std::vector<void*> blocks;
  for (int count = 0; count < 4; ++count) blocks.push_back(allocate(first_));
  allocator_->free(blocks[0], first_).value();
  allocator_->free(blocks[1], second_).value();
  allocator_->free(blocks[2], second_).value();
  allocator_->trim(5 * kBytes);
  EXPECT_EQ(reserved_bytes(), static_cast<std::int64_t>(4 * kBytes));
  EXPECT_EQ(allocate(second_), blocks[1]) << "nothing had to go";
  allocator_->free(blocks[1]).value();
  allocator_->trim(2 * kBytes);
  EXPECT_EQ(reserved_bytes(), static_cast<std::int64_t>(2 * kBytes));
  allocator_->empty_cache();
  EXPECT_EQ(reserved_bytes(), static_cast<std::int64_t>(kBytes)) << "what is live";
}

TEST_P(AsyncAllocatorTest, WhatIsBeyondTheThresholdGoesBackWhenSomebodyHasWaited) {
  progress_.finish_at_once(first_);
  std::vector<void*> blocks;
  for (int count = 0; count < 4; ++count) blocks.push_back(allocate(first_));
  for (void* const block : blocks) allocator_->free(block).value();
  allocator_->note_synchronized();
  EXPECT_EQ(reserved_bytes(), static_cast<std::int64_t>(4 * kBytes)) << "without a threshold everything is kept";
  allocator_->set_release_threshold(kBytes);
  EXPECT_EQ(allocator_->release_threshold(), kBytes);
  EXPECT_EQ(reserved_bytes(), static_cast<std::int64_t>(4 * kBytes));
  allocator_->note_synchronized();
  EXPECT_EQ(reserved_bytes(), static_cast<std::int64_t>(kBytes));
}

TEST_P(AsyncAllocatorTest, WhatWasFreedIsNotAllocatedButActiveWhileItIsAStreamsOwn) {
  void* const block = allocate(first_, 1'000);
  allocator_->free(block, second_).value();
  DeviceStatistics now = statistics();
  EXPECT_EQ(now.allocated_bytes.all, (StatisticsCounter{0, 1'024, 1'024, 1'024}));
  EXPECT_EQ(now.requested_bytes.small_pool, (StatisticsCounter{0, 1'000, 1'000, 1'000}));
  EXPECT_EQ(now.allocation.all, (StatisticsCounter{0, 1, 1, 1}));
  EXPECT_EQ(now.active_bytes.all.current, 1'024);
  ASSERT_EQ(allocate(second_, 1'010), block);
  now = statistics();
  EXPECT_EQ(now.requested_bytes.all.current, 1'010);
  EXPECT_EQ(now.active_bytes.all.current, 1'024);
  allocator_->reset_peak_statistics();
  allocator_->reset_accumulated_statistics();
  EXPECT_EQ(statistics().requested_bytes.all, (StatisticsCounter{1'010, 1'010, 0, 0}));
}

TEST_P(AsyncAllocatorTest, ThreadsFreeWhatOthersAllocatedOnTheirStreams) {
  for (const StreamRef& stream : {first_, second_, third_}) progress_.finish_at_once(stream);
  const std::vector<StreamRef> streams = {first_, second_, third_};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < streams.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t count = 0; count < 300; ++count) {
        const Result<void*> block = allocator_->allocate(1'000 + 512 * (count % 3), streams[thread]);
        ASSERT_TRUE(block);
        ASSERT_TRUE(allocator_->free(*block, streams[(thread + count) % streams.size()]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(statistics().allocation.all.allocated, 900);
  EXPECT_EQ(statistics().allocated_bytes.all.current, 0);
  allocator_->empty_cache();
  EXPECT_EQ(statistics().active_bytes.all.current, 0);
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

}  // namespace
}  // namespace xpu::memory
