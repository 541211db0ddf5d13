// Known answers of the device allocator on a device that does not exist.
#include "xpu/memory/device_caching_allocator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/device_allocator_fixture.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"

namespace xpu::memory {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AllocatorTest : public DeviceAllocatorFixture {
 protected:
  ErrorCode refusal(std::size_t bytes, std::int64_t stream = 1) {
    const Result<void*> allocated = try_allocate(bytes, stream);
    return allocated ? ErrorCode::internal : allocated.error().code;
  }
  void reach_all() {
    for (std::int64_t stream = 0; stream < 100; ++stream) progress_.finish_at_once(progress_.stream(stream));
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, AllocatorTest, ::testing::Values(true, false), name_of_device);

TEST(BlockSizes, EverySizeIsRoundedToAGranule) {
  EXPECT_EQ(block_bytes(1), 512u);
  EXPECT_EQ(block_bytes(512), 512u);
  EXPECT_EQ(block_bytes(513), 1024u);
  std::mt19937_64 random(1);
  for (int count = 0; count < 1'000'000; ++count) {
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (1 + random() % 46));
    const std::size_t block = block_bytes(bytes);
    ASSERT_GE(block, bytes);
    ASSERT_LT(block - bytes, 512u);
    ASSERT_EQ(block % 512, 0u);
    ASSERT_EQ(block, block_bytes(bytes, Config{}));
  }
}

TEST(BlockSizes, SegmentsAreThoseOfPyTorch) {
  EXPECT_EQ(segment_bytes(512), 2 * kMiB);
  EXPECT_EQ(segment_bytes(kMiB), 2 * kMiB);
  EXPECT_EQ(segment_bytes(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(segment_bytes(10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(segment_bytes(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(segment_bytes(10 * kMiB + 512), 12 * kMiB);
}

TEST(BlockSizes, BinsGrowWithTheSize) {
  unsigned before = 0;
  for (std::size_t bytes = 512; bytes <= 4 * kMiB; bytes += 512) {
    ASSERT_GE(bin_of(bytes), before);
    before = bin_of(bytes);
  }
  EXPECT_LT(bin_of(kMostRequestBytes), kBins);
  EXPECT_EQ(bin_of(kMiB) + 1, bin_of(kMiB + 512));
}

TEST_P(AllocatorTest, NothingIsAskedForAndNothingIsFreed) {
  EXPECT_EQ(allocate(0), nullptr);
  EXPECT_TRUE(allocator_->free(nullptr));
  EXPECT_EQ(statistics(), DeviceStatistics{});
  EXPECT_EQ(memory_.taken_bytes(), 0u);
}

TEST_P(AllocatorTest, ExactlyOneMiBIsSmall) {
  void* const first = allocate(kMiB);
  void* const second = allocate(kMiB);
  EXPECT_EQ(statistics().allocated_bytes.small_pool.current, static_cast<std::int64_t>(2 * kMiB));
  EXPECT_EQ(statistics().allocated_bytes.large_pool.current, 0);
  EXPECT_EQ(statistics().reserved_bytes.all.current, static_cast<std::int64_t>(2 * kMiB));
  free(first);
  free(second);
}

TEST_P(AllocatorTest, ABlockIsReusedAtOnceOnItsOwnStreamAndNotOnAnother) {
  for (const std::size_t bytes : {std::size_t{1'000}, 3 * kMiB}) {
    void* const first = allocate(bytes, 1);
    free(first);
    void* const elsewhere = allocate(bytes, 2);
    EXPECT_NE(elsewhere, first);
    EXPECT_EQ(allocate(bytes, 1), first);
    free(elsewhere);
    free(first);
  }
}

TEST_P(AllocatorTest, TheBestFittingBlockIsTakenAndNeighboursMergeBothWays) {
  std::vector<void*> blocks;
  for (int count = 0; count < 4; ++count) blocks.push_back(allocate(4 * kMiB));
  free(blocks[0]);
  free(blocks[2]);
  free(blocks[1]);  // between two free ones
  void* const merged = allocate(12 * kMiB);
  EXPECT_EQ(merged, blocks[0]);
  free(merged);
  void* const cut = allocate(5 * kMiB);
  EXPECT_EQ(cut, blocks[0]);
  free(cut);
  free(blocks[3]);
}

TEST_P(AllocatorTest, WhatIsNotTheBeginOfALiveBlockIsRefused) {
  auto* const small = static_cast<std::byte*>(allocate(1'000));
  auto* const large = static_cast<std::byte*>(allocate(5 * kMiB));
  int elsewhere = 0;
  for (void* const address :
       {static_cast<void*>(small + 512), static_cast<void*>(large + 1), static_cast<void*>(large + kMiB), static_cast<void*>(&elsewhere),
        reinterpret_cast<void*>(std::numeric_limits<std::uintptr_t>::max()), reinterpret_cast<void*>(std::uintptr_t{512})}) {
    const Result<> freed = allocator_->free(address);
    ASSERT_FALSE(freed) << address;
    EXPECT_EQ(freed.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(freed.error().message, HasSubstr("invalid device pointer"));
    EXPECT_FALSE(allocator_->record_use(address, progress_.stream(2)));
    EXPECT_FALSE(allocator_->requested_bytes_of(address)) << address;
  }
  EXPECT_EQ(allocator_->requested_bytes_of(small), 1'000u);
  for (void* const address : {small, large}) {
    EXPECT_TRUE(allocator_->free(address));
    EXPECT_FALSE(allocator_->requested_bytes_of(address)) << "freed";
    EXPECT_FALSE(allocator_->free(address)) << "twice";
    EXPECT_FALSE(allocator_->record_use(address, progress_.stream(2)));
  }
}

TEST_P(AllocatorTest, ABlockThatAnotherThreadFreedTwiceIsRefusedOnce) {
  void* const block = allocate(1'000);
  std::atomic<int> refused{0};
  std::thread([&] {
    for (int count = 0; count < 2; ++count) refused += allocator_->free(block) ? 0 : 1;
  }).join();
  EXPECT_EQ(refused, 1);
  EXPECT_FALSE(allocator_->free(block));
  EXPECT_EQ(statistics().allocation.all.current, 0);
  EXPECT_EQ(allocate(1'000), block);
  free(block);
}

TEST_P(AllocatorTest, AUseOnAnotherStreamHoldsABlockBackUntilThatStreamIsPastTheFree) {
  constexpr std::size_t kBytes = 16 * kMiB;  // a segment of its own
  const StreamRef user = progress_.stream(2);
  void* const block = allocate(kBytes);
  EXPECT_TRUE(allocator_->record_use(block, user));
  EXPECT_TRUE(allocator_->record_use(block, user));
  EXPECT_TRUE(allocator_->record_use(block, progress_.stream(1))) << "its own stream is no other one";
  free(block);
  EXPECT_EQ(statistics().allocated_bytes.all.current, 0);
  EXPECT_EQ(statistics().active_bytes.all.current, static_cast<std::int64_t>(kBytes));
  EXPECT_EQ(progress_.calls(user).issue, 0) << "no ticket at the free";
  EXPECT_NE(allocate(kBytes), block);
  EXPECT_EQ(progress_.calls(user).issue, 1);
  progress_.reach_all(user);
  EXPECT_EQ(allocate(kBytes), block);
  EXPECT_EQ(statistics().active.all.current, 2);
  EXPECT_EQ(statistics().active_bytes.all.peak, static_cast<std::int64_t>(2 * kBytes));
}

TEST_P(AllocatorTest, MoreThan64StreamsMayUseABlock) {
  constexpr std::size_t kBytes = 16 * kMiB;
  void* const block = allocate(kBytes);
  for (std::int64_t stream = 2; stream < 82; ++stream) EXPECT_TRUE(allocator_->record_use(block, progress_.stream(stream)));
  free(block);
  EXPECT_NE(allocate(kBytes), block);
  for (std::int64_t stream = 2; stream < 81; ++stream) progress_.reach_all(progress_.stream(stream));
  EXPECT_NE(allocate(kBytes), block) << "one is left";
  progress_.reach_all(progress_.stream(81));
  EXPECT_EQ(allocate(kBytes), block);
  EXPECT_EQ(statistics().active.all.current, statistics().allocation.all.current);
}

TEST_P(AllocatorTest, MemoryThatOtherStreamsDoNotUseIsGivenToTheOneThatNeedsIt) {
  std::vector<void*> blocks;
  for (int count = 0; count < 9; ++count) blocks.push_back(allocate(20 * kMiB, 1));
  for (void* const block : blocks) free(block);
  EXPECT_EQ(statistics().reserved_bytes.all.current, static_cast<std::int64_t>(180 * kMiB));
  void* const other = allocate(150 * kMiB, 2);
  EXPECT_EQ(progress_.calls(progress_.stream(1)).wait, 1) << "its work may still touch the memory";
  EXPECT_EQ(statistics().num_alloc_retries, 1);
  EXPECT_EQ(statistics().num_ooms, 0);
  free(other);
}

TEST_P(AllocatorTest, PendingBlocksAreWaitedForBeforeMemoryIsSaidToBeUsedUp) {
  const StreamRef user = progress_.stream(2);
  progress_.refuse_device_waits(true);
  void* const block = allocate(150 * kMiB);
  EXPECT_TRUE(allocator_->record_use(block, user));
  free(block);
  EXPECT_EQ(progress_.calls(user).wait, 0);
  EXPECT_EQ(allocate(150 * kMiB), block);
  EXPECT_EQ(progress_.calls(user).wait, 1);
  EXPECT_EQ(statistics().num_sync_all_streams, 1);
}

TEST_P(AllocatorTest, OutOfMemoryLeavesEverythingAsItIsAndSaysWhy) {
  std::vector<void*> blocks;
  for (int count = 0; count < 8; ++count) blocks.push_back(allocate(20 * kMiB));
  const Snapshot before = allocator_->snapshot();
  const Result<void*> refused = allocator_->allocate(50 * kMiB + 7, progress_.stream(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(
      refused.error().message,
      AllOf(HasSubstr("XPU out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 200.00 MiB of which 40.00 MiB is "
                      "free (estimated). Of the allocated memory 160.00 MiB is allocated"),
            HasSubstr("160.00 MiB of the 200.00 MiB that may be taken are reserved")));
  EXPECT_EQ(statistics().num_ooms, 1);
  const Snapshot after = allocator_->snapshot();
  ASSERT_EQ(after.segments.size(), before.segments.size());
  EXPECT_EQ(statistics().allocation.all.current, 8);
  for (void* const block : blocks) free(block);
  EXPECT_EQ(refusal(std::numeric_limits<std::size_t>::max()), ErrorCode::out_of_device_memory);
  EXPECT_EQ(refusal(std::size_t{1} << 46), ErrorCode::out_of_device_memory);
}

TEST_P(AllocatorTest, ADeviceThatRefusesLeavesNothingHalfDone) {
  void* const kept = allocate(5 * kMiB);
  memory_.refuse(100);
  EXPECT_EQ(refusal(40 * kMiB), ErrorCode::out_of_device_memory);
  EXPECT_EQ(refusal(40 * kMiB, 2), ErrorCode::out_of_device_memory);
  memory_.refuse(0);
  EXPECT_EQ(static_cast<std::size_t>(statistics().reserved_bytes.all.current), memory_.taken_bytes());
  free(kept);
  void* const block = allocate(40 * kMiB);
  EXPECT_NE(block, nullptr);
  free(block);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

TEST_P(AllocatorTest, AFreeBlockThatGrowthCountedOnMayBeTakenMeanwhile) {
  if (!GetParam()) GTEST_SKIP() << "segments do not grow";
  void* const first = allocate(20 * kMiB);
  free(first);
  void* meanwhile = nullptr;
  memory_.on_next_map([&] { meanwhile = allocate(20 * kMiB); });
  void* const grown = allocate(30 * kMiB);
  EXPECT_EQ(meanwhile, first);
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(static_cast<std::byte*>(grown) - static_cast<std::byte*>(first), static_cast<std::ptrdiff_t>(20 * kMiB));
  EXPECT_EQ(statistics().reserved_bytes.all.current, static_cast<std::int64_t>(50 * kMiB));
  free(meanwhile);
  free(grown);
}

TEST_P(AllocatorTest, TheFractionLimitsWhatIsTakenFromNowOn) {
  EXPECT_EQ(allocator_->memory_fraction(), 1);
  for (const double fraction : {-0.1, 0.0, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    const Result<> set = allocator_->set_memory_fraction(fraction);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(set.error().message, HasSubstr("invalid fraction"));
  }
  allocator_->set_memory_fraction(0.5).value();
  EXPECT_EQ(allocator_->memory_fraction(), 0.5);
  EXPECT_EQ(refusal(120 * kMiB), ErrorCode::out_of_device_memory);
  free(allocate(90 * kMiB));
  allocator_->set_memory_fraction(1).value();
  free(allocate(120 * kMiB));
}

TEST_P(AllocatorTest, EmptyingTheCacheGivesBackWhatIsFreeAndDoesNothingMore) {
  void* const kept = allocate(5 * kMiB);
  void* const freed = allocate(50 * kMiB);
  free(freed);
  allocator_->empty_cache();
  // Whole segments, or whole pages.
  EXPECT_EQ(statistics().reserved_bytes.all.current, static_cast<std::int64_t>(GetParam() ? 6 * kMiB : 20 * kMiB));
  const int calls = memory_.calls();
  const int questions = progress_.calls(progress_.stream(1)).total();
  allocator_->empty_cache();
  EXPECT_EQ(memory_.calls(), calls);
  EXPECT_EQ(progress_.calls(progress_.stream(1)).total(), questions) << "nothing is free, so nobody is asked";
  free(kept);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  free(allocate(50 * kMiB));
}

TEST_P(AllocatorTest, AStreamThatIsCapturingIsNotAskedAndKeepsItsMemory) {
  const StreamRef capturing = progress_.stream(1, true);
  void* const block = allocator_->allocate(50 * kMiB, capturing).value();
  free(block);
  allocator_->empty_cache();
  EXPECT_EQ(progress_.calls(capturing).total(), 0);
  EXPECT_GE(memory_.taken_bytes(), 50 * kMiB);
  EXPECT_EQ(allocator_->allocate(50 * kMiB, capturing).value(), block);
  free(block);
  void* const other = allocate(kMiB, 1);  // it is not any more
  free(other);
}

TEST_P(AllocatorTest, TheStatisticsHave122KeysInOrder) {
  free(allocate(100));
  std::vector<std::string> keys;
  statistics().for_each([&](std::string_view key, std::int64_t) { keys.emplace_back(key); });
  EXPECT_EQ(keys.size(), 122u);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  EXPECT_THAT(keys, ::testing::IsSupersetOf({"allocated_bytes.all.current", "num_ooms", "requested_bytes.large_pool.peak",
                                             "inactive_split.small_pool.freed", "oversize_segments.peak"}));
}

TEST_P(AllocatorTest, PeaksAndCountsAreReset) {
  void* const first = allocate(3 * kMiB);
  void* const second = allocate(4 * kMiB, 2);
  free(first);
  EXPECT_EQ(statistics().requested_bytes.all.peak, static_cast<std::int64_t>(7 * kMiB));
  EXPECT_EQ(statistics().allocation.all, (StatisticsCounter{1, 2, 2, 1}));
  allocator_->reset_peak_statistics();
  EXPECT_EQ(statistics().requested_bytes.all.peak, static_cast<std::int64_t>(4 * kMiB));
  allocator_->reset_accumulated_statistics();
  EXPECT_EQ(statistics().allocation.all, (StatisticsCounter{1, 1, 0, 0}));
  free(second);
  EXPECT_EQ(statistics().allocation.all, (StatisticsCounter{0, 1, 0, 1}));
}

TEST_P(AllocatorTest, PeaksOfSeveralStreamsAreThoseOfTheirSum) {
  // Each stream has its highest value when the others have none.
  for (std::int64_t stream = 1; stream <= 3; ++stream) free(allocate(10 * kMiB, stream));
  EXPECT_EQ(statistics().allocated_bytes.all.peak, static_cast<std::int64_t>(10 * kMiB));
  void* const one = allocate(6 * kMiB, 1);
  void* const two = allocate(600, 2);
  void* const three = allocate(6 * kMiB, 3);
  EXPECT_EQ(statistics().allocated_bytes.all.peak, static_cast<std::int64_t>(12 * kMiB + 1'024));
  EXPECT_EQ(statistics().allocated_bytes.small_pool.peak, 1'024);
  EXPECT_EQ(statistics().allocated_bytes.large_pool.peak, static_cast<std::int64_t>(12 * kMiB));
  for (void* const block : {one, two, three}) free(block);
}

TEST_P(AllocatorTest, ThreadsOnStreamsOfTheirOwnAndOnOneOfAllDoNotLoseAnything) {
  reach_all();
  constexpr int kThreads = 4, kRounds = 3'000;
  std::vector<std::atomic<void*>> shared(64);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(static_cast<std::uint64_t>(thread));
      for (int round = 0; round < kRounds; ++round) {
        const std::int64_t stream = random() % 3 == 0 ? 50 : thread + 1;
        const std::size_t bytes = random() % 8 == 0 ? kMiB + random() % (4 * kMiB) : 1 + random() % 20'000;
        const Result<void*> allocated = allocator_->allocate(bytes, progress_.stream(stream));
        ASSERT_TRUE(allocated || allocated.error().code == ErrorCode::out_of_device_memory);
        if (allocated && random() % 4 == 0) {
          EXPECT_TRUE(allocator_->record_use(*allocated, progress_.stream(1 + static_cast<std::int64_t>(random() % 5))));
        }
        // Freed by whoever comes next.
        void* const other = shared[random() % shared.size()].exchange(allocated ? *allocated : nullptr);
        if (other != nullptr) {
          EXPECT_TRUE(allocator_->free(other));
        }
        if (round % 500 == 0) static_cast<void>(allocator_->statistics());
        if (round % 1'000 == 999) {
          allocator_->empty_cache();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::int64_t left = 0;
  for (std::atomic<void*>& block : shared) left += block.load() != nullptr ? 1 : 0;
  EXPECT_EQ(statistics().allocation.all.current, left);
  for (std::atomic<void*>& block : shared) {
    if (block.load() != nullptr) free(block.load());
  }
  allocator_->empty_cache();
  EXPECT_EQ(statistics().allocation.all.allocated, statistics().allocation.all.freed);
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

TEST(AllocatorOptions, WhatTheDeviceCannotDoIsRefusedOrLeftOut) {
  FakeDeviceMemory memory(64 * kMiB, false);
  ScriptedProgress progress;
  Config config;
  config.expandable_segments = true;
  const auto refused = DeviceCachingAllocator::create(memory, progress, config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("expandable_segments:True is not possible here"));
  EXPECT_FALSE(DeviceCachingAllocator::create(memory, progress).value()->has_expandable_segments());
  FakeDeviceMemory mapping(64 * kMiB, true);
  config.expandable_segments = false;
  EXPECT_FALSE(DeviceCachingAllocator::create(mapping, progress, config).value()->has_expandable_segments());
  config = {};
  config.per_process_memory_fraction = 7;
  EXPECT_FALSE(DeviceCachingAllocator::create(mapping, progress, config));
}

/// On a device without expandable segments, with options.
class OptionTest : public ::testing::Test {
 protected:
  void create(const char* options, std::size_t capacity = 1024 * kMiB) {
    memory_ = std::make_unique<FakeDeviceMemory>(capacity, true);
    allocator_ = DeviceCachingAllocator::create(*memory_, progress_, parse_config(options).value()).value();
    EXPECT_FALSE(allocator_->has_expandable_segments());
  }
  void* allocate(std::size_t bytes) { return allocator_->allocate(bytes, progress_.stream(1)).value(); }
  void free(void* address) { allocator_->free(address).value(); }

  std::unique_ptr<FakeDeviceMemory> memory_;
  ScriptedProgress progress_;
  std::unique_ptr<DeviceCachingAllocator> allocator_;
};

TEST_F(OptionTest, ALargeBlockIsNeitherSplitNorGivenToSmallRequests) {
  create("max_split_size_mb:64,max_non_split_rounding_mb:32");
  EXPECT_EQ(allocator_->statistics().max_split_size, static_cast<std::int64_t>(64 * kMiB));
  void* const large = allocate(100 * kMiB);
  EXPECT_EQ(allocator_->statistics().oversize_allocations, (StatisticsCounter{1, 1, 1, 0}));
  EXPECT_EQ(allocator_->statistics().oversize_segments, (StatisticsCounter{1, 1, 1, 0}));
  free(large);
  EXPECT_EQ(allocator_->statistics().oversize_allocations, (StatisticsCounter{0, 1, 1, 1}));
  EXPECT_NE(allocate(30 * kMiB), large) << "a request below the limit";
  EXPECT_NE(allocate(68 * kMiB), large) << "32 MiB would be wasted";
  EXPECT_EQ(allocate(69 * kMiB), large);
  EXPECT_EQ(allocator_->statistics().allocated_bytes.all.current, static_cast<std::int64_t>((30 + 68 + 100) * kMiB));
  EXPECT_EQ(allocator_->statistics().oversize_allocations, (StatisticsCounter{2, 2, 3, 1}));
  EXPECT_EQ(allocator_->statistics().oversize_segments.current, 2);
  void* const smaller = allocate(60 * kMiB);
  free(smaller);
  EXPECT_EQ(allocate(30 * kMiB), smaller) << "below the limit blocks are split";
  free(large);
  allocator_->empty_cache();
  EXPECT_EQ(allocator_->statistics().oversize_segments.current, 1);
  allocator_->reset_peak_statistics();
  allocator_->reset_accumulated_statistics();
  EXPECT_EQ(allocator_->statistics().oversize_allocations, (StatisticsCounter{1, 1, 0, 0}));
  EXPECT_EQ(allocator_->statistics().oversize_segments, (StatisticsCounter{1, 1, 0, 0}));
}

TEST_F(OptionTest, OversizeBlocksAreGivenBackBeforeMemoryIsSaidToBeUsedUp) {
  create("max_split_size_mb:64", 200 * kMiB);
  free(allocate(150 * kMiB));
  allocate(100 * kMiB);
  EXPECT_EQ(allocator_->statistics().num_ooms, 0);
  EXPECT_EQ(memory_->taken_bytes(), 100 * kMiB);
}

TEST_F(OptionTest, GarbageIsWhatWasNotUsedForLongest) {
  create("garbage_collection_threshold:0.5", 400 * kMiB);
  std::vector<void*> blocks;
  for (int count = 0; count < 4; ++count) blocks.push_back(allocate(40 * kMiB));
  for (void* const block : blocks) free(block);
  for (int times = 0; times < 10; ++times) {
    for (int used = 0; used < 2; ++used) blocks[static_cast<std::size_t>(used)] = allocate(40 * kMiB);
    for (int used = 0; used < 2; ++used) free(blocks[static_cast<std::size_t>(used)]);
  }
  allocate(60 * kMiB);
  EXPECT_EQ(memory_->taken_bytes(), 220 * kMiB) << "below the threshold nothing goes";
  const std::uint64_t kept[] = {reinterpret_cast<std::uintptr_t>(blocks[0]), reinterpret_cast<std::uintptr_t>(blocks[1])};
  // 20 MiB above it: one segment goes, one of those that lay unused.
  allocate(80 * kMiB);
  EXPECT_EQ(memory_->taken_bytes(), 260 * kMiB);
  const Snapshot snapshot = allocator_->snapshot();
  for (const std::uint64_t address : kept) {
    EXPECT_TRUE(std::any_of(snapshot.segments.begin(), snapshot.segments.end(),
                            [&](const SnapshotSegment& segment) { return segment.address == address; }));
  }
  EXPECT_EQ(allocator_->statistics().num_alloc_retries, 0);
}

}  // namespace
}  // namespace xpu::memory
