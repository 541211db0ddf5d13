// Pools of a device allocator, on a device that does not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/device_allocator_fixture.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

class PoolTest : public DeviceAllocatorFixture {
 protected:
  Result<void*> try_allocate(std::size_t bytes, const DevicePool* pool = nullptr, std::int64_t stream = 1) {
    return pool == nullptr ? allocator_->allocate(bytes, progress_.stream(stream))
                           : allocator_->allocate(bytes, progress_.stream(stream), *pool);
  }
  void* allocate(std::size_t bytes, const DevicePool* pool = nullptr, std::int64_t stream = 1) {
    return try_allocate(bytes, pool, stream).value();
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, PoolTest, ::testing::Values(true, false), name_of_device);

TEST_P(PoolTest, NoTwoPoolsHaveTheSameIdInAnyThread) {
  std::vector<std::vector<PoolId>> ids(64);
  std::vector<std::thread> threads;
  for (std::vector<PoolId>& mine : ids) {
    threads.emplace_back([&] {
      for (int count = 0; count < 50; ++count) {
        mine.push_back(allocator_->create_pool({.is_for_graphs = count % 2 == 0})->id());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::pair<std::uint64_t, std::uint64_t>> all;
  for (const std::vector<PoolId>& mine : ids) {
    for (const PoolId& id : mine) {
      EXPECT_NE(id.graph == 0, id.user == 0);
      EXPECT_TRUE(all.emplace(id.graph, id.user).second);
    }
  }
  EXPECT_EQ(all.size(), 64u * 50);
}

TEST_P(PoolTest, MemoryOfAPoolIsKeptApartFreeOrNot) {
  const auto pool = allocator_->create_pool();
  for (const std::size_t bytes : {std::size_t{1'000}, 3 * kMiB}) {
    void* const inside = allocate(bytes, pool.get());
    void* const outside = allocate(bytes);
    EXPECT_EQ(segment_of(inside).pool, pool->id());
    EXPECT_EQ(segment_of(outside).pool, PoolId{});
    free(inside);
    EXPECT_NE(allocate(bytes), inside);
    EXPECT_EQ(segment_of(inside).pool, pool->id()) << "what is free is in the snapshot, too";
    EXPECT_EQ(allocate(bytes, pool.get()), inside);
  }
  EXPECT_EQ(allocator_->statistics().allocation.all.current, 6);
}

TEST_P(PoolTest, ABlockIsHandedOutWholeWhereNothingIsSplit) {
  const auto pool = allocator_->create_pool({.no_split = true});
  void* const whole = allocate(20 * kMiB, pool.get());
  free(whole);
  EXPECT_EQ(allocate(10 * kMiB, pool.get()), whole);
  EXPECT_EQ(allocator_->statistics().allocated_bytes.all.current, static_cast<std::int64_t>(20 * kMiB));
  EXPECT_EQ(allocator_->statistics().requested_bytes.all.current, static_cast<std::int64_t>(10 * kMiB));
  EXPECT_FALSE(segment_of(whole).is_expandable);
  void* const small = allocate(700, pool.get());
  EXPECT_EQ(segment_of(small).allocated_bytes, 2 * kMiB);
  free(small);
  EXPECT_EQ(allocate(2'000, pool.get()), small);
  free(whole);
  const auto splitting = allocator_->create_pool();
  allocate(10 * kMiB, splitting.get());
  EXPECT_EQ(allocator_->statistics().allocated_bytes.large_pool.current, static_cast<std::int64_t>(10 * kMiB));
}

TEST_P(PoolTest, WhatIsFreeInAPoolIsGivenBackBeforeMemoryIsSaidToBeUsedUp) {
  const auto pool = allocator_->create_pool();
  free(allocate(150 * kMiB, pool.get()));
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 150 * kMiB) << "it is the pool's until somebody needs it";
  void* const outside = allocate(150 * kMiB);
  EXPECT_EQ(segment_of(outside).pool, PoolId{});
  EXPECT_EQ(memory_.taken_bytes(), 150 * kMiB);
}

TEST_P(PoolTest, WhatAGraphMayReplayOnStaysUntilThePoolGoes) {
  auto pool = allocator_->create_pool({.is_for_graphs = true});
  free(allocate(150 * kMiB, pool.get()));
  allocator_->empty_cache();
  allocator_->empty_cache(*pool);
  const Result<void*> refused = try_allocate(150 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(memory_.taken_bytes(), 150 * kMiB);
  pool.reset();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_TRUE(try_allocate(150 * kMiB));
}

TEST_P(PoolTest, APoolLendsWhatIsFreeWhenThereIsNoOtherWayAndItSaidSo) {
  for (const bool is_for_graphs : {false, true}) {
    for (const bool use_on_oom : {false, true}) {
      auto pool = allocator_->create_pool({.is_for_graphs = is_for_graphs, .use_on_oom = use_on_oom});
      // Halves of segments are in use, so nothing can be given back as a whole.
      std::vector<void*> kept, freed;
      for (int count = 0; count < 4; ++count) {
        kept.push_back(allocate(4 * kMiB, pool.get()));
        freed.push_back(allocate(16 * kMiB, pool.get()));
      }
      void* const rest = allocate(120 * kMiB);
      EXPECT_FALSE(try_allocate(12 * kMiB)) << "it is not free";
      for (void* const block : freed) free(block);
      const auto other = allocator_->create_pool();
      const bool is_given_back = GetParam() && !is_for_graphs;
      if (!is_given_back) {
        EXPECT_FALSE(try_allocate(12 * kMiB, nullptr, 2)) << "it is another stream's";
        EXPECT_FALSE(try_allocate(12 * kMiB, other.get())) << "pools do not lend to pools";
      }
      const Result<void*> lent = try_allocate(12 * kMiB);
      EXPECT_EQ(lent.has_value(), is_given_back || (use_on_oom && !is_for_graphs));
      if (lent) {
        EXPECT_EQ(segment_of(*lent).pool, is_given_back ? PoolId{} : pool->id());
        free(*lent);
      }
      for (void* const block : kept) free(block);
      free(rest);
      pool.reset();
      allocator_->empty_cache();
      EXPECT_EQ(memory_.taken_bytes(), 0u);
    }
  }
}

TEST_P(PoolTest, TheEndOfAPoolWaitsForItsStreamsAndLeavesLiveBlocksAlone) {
  auto pool = allocator_->create_pool();
  const StreamRef stream = progress_.stream(1), other = progress_.stream(2);
  void* const live = allocate(5 * kMiB, pool.get());
  free(allocate(30 * kMiB, pool.get()));
  void* const used = allocate(30 * kMiB, pool.get(), 3);
  EXPECT_TRUE(allocator_->record_use(used, other));
  free(used);
  EXPECT_EQ(progress_.calls(stream).wait, 0);
  const PoolId id = pool->id();
  pool.reset();
  EXPECT_GE(progress_.calls(stream).wait, 1);
  EXPECT_EQ(segment_of(live).pool, id);
  EXPECT_EQ(segment_of(used).active_bytes, 30 * kMiB) << "another stream still uses it";
  progress_.finish_at_once(other);
  free(live);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

TEST_P(PoolTest, PoolsComeAndGoWithoutEnd) {
  void* previous = nullptr;
  for (int count = 0; count < 10'000; ++count) {
    const auto pool = allocator_->create_pool({.is_for_graphs = count % 2 == 0, .no_split = count % 3 == 0});
    void* const block = allocate(1'000, pool.get());
    ASSERT_EQ(segment_of(block).pool, pool->id());
    // Its memory stays alive longer than the pool.
    if (previous != nullptr) free(previous);
    previous = block;
  }
  free(previous);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(allocator_->statistics().allocation.all.allocated, 10'000);
}

}  // namespace
}  // namespace xpu::memory
