// Defects that users of other caching allocators reported, one a test: this allocator must not have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/device_allocator_fixture.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

class KnownDefectTest : public DeviceAllocatorFixture {
 protected:
  /// Freed while the stream of this number may be using it.
  void free_used(void* block, std::int64_t user) {
    EXPECT_TRUE(allocator_->record_use(block, progress_.stream(user)));
    free(block);
  }
  int waits_of(std::int64_t stream) { return progress_.calls(progress_.stream(stream)).wait; }
};

INSTANTIATE_TEST_SUITE_P(Devices, KnownDefectTest, ::testing::Values(true, false), name_of_device);

// --- What is counted

// torch-xpu-ops#1438, prime-rl#3221
TEST_P(KnownDefectTest, EveryStatisticIsThereFromTheStart) {
  int keys = 0;
  statistics().for_each([&](std::string_view key, std::int64_t figure) {
    ++keys;
    EXPECT_EQ(figure, key == "max_split_size" ? -1 : 0) << key;
  });
  EXPECT_EQ(keys, 122);
}

TEST_P(KnownDefectTest, CallsOfTheDriverAreCounted) {
  void* const block = allocate(50 * kMiB);
  void* const other = allocate(1'000);
  EXPECT_EQ(statistics().num_device_alloc, 2);
  EXPECT_EQ(statistics().num_device_free, 0);
  free(block);
  free(other);
  allocator_->empty_cache();
  EXPECT_EQ(statistics().num_device_alloc, 2);
  EXPECT_EQ(statistics().num_device_free, 2);
}

// pytorch#171451
TEST_P(KnownDefectTest, WhatIsAllocatedIsTheSumOfRoundedRequests) {
  std::mt19937_64 random(3);
  std::int64_t requested = 0, small = 0;
  for (int count = 0; count < 200; ++count) {
    const std::size_t bytes = count % 2 == 0 ? 512 * (1 + random() % 512) : 1 + random() % (kMiB / 4);
    allocate(bytes, static_cast<std::int64_t>(random() % 3));
    requested += static_cast<std::int64_t>(bytes);
    small += static_cast<std::int64_t>((bytes + 511) / 512 * 512);
  }
  EXPECT_EQ(statistics().requested_bytes.all.current, requested);
  EXPECT_EQ(statistics().allocated_bytes.small_pool.current, small);
  EXPECT_EQ(statistics().allocated_bytes.all.current, small);
}

// --- Where blocks lie

// torch-xpu-ops#1543, #2142
TEST(KnownDefects, TheSameRequestsAreServedAlikeWhereverTheyRun) {
  const auto run = [](bool can_map, int used_gigabytes, bool is_slow) {
    FakeDeviceMemory memory(1024 * kMiB, can_map);
    // Addresses begin behind what was ever used.
    for (int count = 0; count < used_gigabytes; ++count) memory.free(memory.allocate(1024 * kMiB, 512).value());
    ScriptedProgress progress;
    const auto allocator = DeviceCachingAllocator::create(memory, progress).value();
    std::mt19937_64 random(11);
    std::vector<void*> live;
    std::vector<std::int64_t> reserved;
    for (int step = 0; step < 2'000; ++step) {
      const StreamRef stream = progress.stream(static_cast<std::int64_t>(random() % 2));
      if (!is_slow) progress.finish_at_once(stream);
      const std::size_t place = random() % 64;
      if (place < live.size()) {
        allocator->free(std::exchange(live[place], live.back())).value();
        live.pop_back();
      }
      live.push_back(allocator->allocate(1 + random() % (random() % 4 == 0 ? 8 * kMiB : kMiB / 8), stream).value());
      reserved.push_back(allocator->statistics().reserved_bytes.all.current);
    }
    return reserved;
  };
  for (const bool can_map : {true, false}) {
    const std::vector<std::int64_t> reserved = run(can_map, 0, true);
    EXPECT_EQ(reserved, run(can_map, 0, false)) << "how far the queues are decides nothing where no other stream uses memory";
    EXPECT_EQ(reserved, run(can_map, 3, true)) << "nor does where the device's addresses begin";
  }
}

// pytorch#35901, #44742
TEST_P(KnownDefectTest, FreeMemoryBetweenLiveBlocksServesALargeRequest) {
  if (!GetParam()) GTEST_SKIP() << "a segment goes back in whole or not at all";
  std::vector<void*> blocks;
  for (int count = 0; count < 20; ++count) blocks.push_back(allocate(10 * kMiB));
  ASSERT_EQ(memory_.taken_bytes(), kCapacity);
  for (std::size_t index = 0; index < blocks.size(); index += 2) free(blocks[index]);
  EXPECT_NE(allocate(100 * kMiB), nullptr);
  EXPECT_EQ(memory_.taken_bytes(), kCapacity);
  EXPECT_EQ(statistics().allocation.all.current, 11);
}

// rapidsai/rmm#1664
TEST_P(KnownDefectTest, TheWholeDeviceCanBeUsed) {
  void* const everything = allocate(kCapacity, 1);
  free(everything);
  std::vector<void*> halves{allocate(kCapacity / 2, 2), allocate(kCapacity / 2, 2)};
  for (void* const half : halves) free(half);
  for (int count = 0; count < 10; ++count) allocate(20 * kMiB, 3);
  EXPECT_EQ(statistics().allocated_bytes.all.current, static_cast<std::int64_t>(kCapacity));
  EXPECT_EQ(statistics().num_ooms, 0);
}

// torch-xpu-ops#1745
TEST_P(KnownDefectTest, EmptyingTheCacheAgainAndAgainLosesNothing) {
  void* const small = allocate(1'000);
  void* const kept = allocate(15 * kMiB);
  void* first = nullptr;
  for (int round = 0; round < 1'000; ++round) {
    void* const block = allocate(50 * kMiB);
    if (round == 0) first = block;
    // The device chooses the addresses of segments.
    ASSERT_TRUE(block == first || !GetParam()) << "round " << round;
    free(block);
    allocator_->empty_cache();
    const std::size_t left = 2 * kMiB + 16 * kMiB;
    ASSERT_EQ(memory_.taken_bytes(), left);
    ASSERT_EQ(static_cast<std::size_t>(statistics().reserved_bytes.all.current), left);
  }
  free(small);
  free(kept);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
}

// --- When there is not enough

// pytorch#177714, torch-xpu-ops#3155
TEST_P(KnownDefectTest, TheDriverIsNotAskedForMoreThanIsAllowed) {
  allocator_->set_memory_fraction(0.25).value();
  void* const block = allocate(40 * kMiB);
  const int calls = memory_.calls();
  EXPECT_FALSE(try_allocate(20 * kMiB));
  EXPECT_FALSE(try_allocate(300 * kMiB, 2));
  EXPECT_EQ(memory_.calls(), calls);
  free(block);
}

TEST_P(KnownDefectTest, EveryWordForNoMemoryIsOutOfMemoryAndALostDeviceIsNot) {
  void* const kept = allocate(5 * kMiB);
  for (const ErrorCode code : {ErrorCode::out_of_device_memory, ErrorCode::out_of_host_memory}) {
    memory_.refuse(10, code);
    const Result<void*> refused = try_allocate(50 * kMiB);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr("The device gave no more: the fake device refuses."));
  }
  memory_.refuse(10, ErrorCode::device_lost);
  const Result<void*> lost = try_allocate(50 * kMiB);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::device_lost);
  EXPECT_EQ(statistics().num_ooms, 2);
  EXPECT_EQ(statistics().num_alloc_retries, 2) << "there is nothing to gain by trying again";
  memory_.refuse(0);
  free(kept);
}

// torch-xpu-ops#4427
TEST_P(KnownDefectTest, ADeviceThatCannotMapAfterAllIsNoticedBeforeItMatters) {
  if (!GetParam()) GTEST_SKIP() << "it says so itself";
  memory_.refuse(1);
  EXPECT_FALSE(DeviceCachingAllocator::create(memory_, progress_).value()->has_expandable_segments());
  memory_.refuse(1);
  const auto asked_for = DeviceCachingAllocator::create(memory_, progress_, parse_config("expandable_segments:True").value());
  ASSERT_FALSE(asked_for);
  EXPECT_EQ(asked_for.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(DeviceCachingAllocator::create(memory_, progress_).value()->has_expandable_segments());
  EXPECT_EQ(memory_.taken_bytes(), 0u) << "the trial is over";
}

// pytorch#188008, #191076
TEST_P(KnownDefectTest, WhatCouldNotBeMappedInTheMiddleIsMissingAndNothingElse) {
  if (!GetParam()) GTEST_SKIP() << "segments have no middle";
  std::vector<void*> blocks;
  for (int count = 0; count < 5; ++count) blocks.push_back(allocate(20 * kMiB));
  free(blocks[2]);
  allocator_->empty_cache();
  // A free block on either side, and nothing mapped in between.
  free(blocks[1]);
  free(blocks[3]);
  const auto reserved = statistics().reserved_bytes.all.current;
  memory_.refuse(1);
  void* const elsewhere = allocate(60 * kMiB);  // the second attempt succeeds, and takes the same place
  EXPECT_EQ(elsewhere, blocks[1]);
  EXPECT_EQ(statistics().reserved_bytes.all.current, reserved + static_cast<std::int64_t>(20 * kMiB));
  free(elsewhere);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 40 * kMiB);
  memory_.refuse(100);
  EXPECT_FALSE(try_allocate(60 * kMiB));
  EXPECT_EQ(memory_.taken_bytes(), 40 * kMiB);
  memory_.refuse(0);
  EXPECT_EQ(allocate(60 * kMiB), blocks[1]);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

// --- Streams

// pytorch#171771
TEST_P(KnownDefectTest, AllocatingWaitsForTheOldestFreesAndForNoMoreThanAreNeeded) {
  progress_.refuse_device_waits(true);
  for (const std::int64_t stream : {1, 9}) {
    SCOPED_TRACE("for stream " + std::to_string(stream));
    std::vector<void*> blocks;
    for (int count = 0; count < 4; ++count) blocks.push_back(allocate(50 * kMiB));
    for (std::int64_t user : {2, 3, 4, 5}) free_used(blocks[static_cast<std::size_t>(user - 2)], user + 10 * stream);
    void* const first = allocate(48 * kMiB, stream);
    EXPECT_EQ(waits_of(2 + 10 * stream), 1);
    for (const std::int64_t user : {3, 4, 5}) EXPECT_EQ(waits_of(user + 10 * stream), 0) << user;
    void* const second = allocate(96 * kMiB, stream);
    EXPECT_EQ(waits_of(3 + 10 * stream), 1);
    EXPECT_EQ(waits_of(4 + 10 * stream), 1);
    EXPECT_EQ(waits_of(5 + 10 * stream), 0);
    free(first);
    free(second);
    progress_.finish_at_once(progress_.stream(5 + 10 * stream));
    allocator_->empty_cache();
    EXPECT_EQ(memory_.taken_bytes(), 0u);
  }
}

// pytorch#71745
TEST_P(KnownDefectTest, ASlowStreamDoesNotHoldBackWhatOthersUsed) {
  void* const slow = allocate(20 * kMiB);
  void* const quick = allocate(20 * kMiB);
  free_used(slow, 2);
  free_used(quick, 3);
  progress_.finish_at_once(progress_.stream(3));
  EXPECT_EQ(allocate(20 * kMiB), quick);
  EXPECT_EQ(waits_of(2), 0);
}

// pytorch#147168, #139234
TEST_P(KnownDefectTest, AHostThatRunsAheadOfAStreamIsBoundedByTheDevice) {
  for (int step = 0; step < 200; ++step) {
    const Result<void*> block = try_allocate(30 * kMiB);
    ASSERT_TRUE(block) << "step " << step;
    free_used(*block, 2);
  }
  EXPECT_EQ(statistics().num_ooms, 0);
  // A ticket for each time that memory was wanted and none was free; nothing at a free.
  EXPECT_LE(progress_.calls(progress_.stream(2)).issue, 200);
  progress_.finish_at_once(progress_.stream(2));
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
}

// --- Pools and captures

// Frees in other pools were forgotten where one pool was emptied.
TEST_P(KnownDefectTest, EmptyingOnePoolForgetsNoFreeOfAnother) {
  const auto one = allocator_->create_pool(), other = allocator_->create_pool();
  void* const inside = allocator_->allocate(20 * kMiB, progress_.stream(1), *one).value();
  void* const outside = allocator_->allocate(20 * kMiB, progress_.stream(1), *other).value();
  free_used(inside, 2);
  free_used(outside, 2);
  progress_.finish_at_once(progress_.stream(2));
  allocator_->empty_cache(*one);
  EXPECT_EQ(allocator_->allocate(20 * kMiB, progress_.stream(1), *other).value(), outside);
  EXPECT_EQ(statistics().active.all.current, 1);
}

// pytorch#175015, #159674
TEST_P(KnownDefectTest, APoolOfAUserIsNoCapture) {
  const auto pool = allocator_->create_pool();
  void* const inside = allocator_->allocate(20 * kMiB, progress_.stream(1), *pool).value();
  free_used(inside, 2);
  progress_.finish_at_once(progress_.stream(2));
  EXPECT_EQ(allocator_->allocate(20 * kMiB, progress_.stream(1), *pool).value(), inside) << "frees are not put off";
  free(allocate(150 * kMiB));
  EXPECT_TRUE(allocator_->allocate(160 * kMiB, progress_.stream(1), *pool)) << "memory is taken back for it";
}

// Memory was not taken back while anybody captured, and the attempt was counted.
TEST_P(KnownDefectTest, ACaptureGetsWhatOtherStreamsDoNotUse) {
  free(allocate(150 * kMiB, 2));
  const StreamRef capturing = progress_.stream(1, true);
  const auto pool = allocator_->create_pool({.is_for_graphs = true});
  EXPECT_TRUE(allocator_->allocate(150 * kMiB, capturing, *pool));
  EXPECT_EQ(progress_.calls(capturing).total(), 0);
  EXPECT_EQ(waits_of(2), 1);
  EXPECT_EQ(statistics().num_alloc_retries, 1);
}

// pytorch#190348
TEST_P(KnownDefectTest, ThePoolOfACaptureThatFailedIsNotLost) {
  const StreamRef capturing = progress_.stream(1, true);
  {
    const auto pool = allocator_->create_pool({.is_for_graphs = true});
    free(allocator_->allocate(100 * kMiB, capturing, *pool).value());
  }
  EXPECT_EQ(memory_.taken_bytes(), 100 * kMiB) << "its stream cannot be asked yet";
  EXPECT_EQ(progress_.calls(capturing).total(), 0);
  allocator_->note_stream(progress_.stream(1));
  EXPECT_TRUE(try_allocate(150 * kMiB, 2));
  EXPECT_EQ(memory_.taken_bytes(), 150 * kMiB);
}

}  // namespace
}  // namespace xpu::memory
