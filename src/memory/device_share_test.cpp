// Blocks whose memory somebody else has been given, on a device that does not exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/share_table.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

class ShareTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kBytes = 20 * kMiB;  // a segment of its own

  ShareTest() {
    progress_.finish_at_once(stream_);
    progress_.finish_at_once(other_);
  }
  std::byte* allocate(std::size_t bytes = kBytes) { return static_cast<std::byte*>(allocator_->allocate(bytes, stream_).value()); }
  void free(void* address) { allocator_->free(address).value(); }
  SharedBlock share(void* address) { return allocator_->share(address).value(); }
  std::size_t reserved_bytes() const { return static_cast<std::size_t>(allocator_->statistics().reserved_bytes.all.current); }

  FakeDeviceMemory memory_{200 * kMiB, GetParam()};
  ScriptedProgress progress_;
  const StreamRef stream_ = progress_.stream(1), other_ = progress_.stream(2);
  std::unique_ptr<DeviceCachingAllocator> allocator_ = DeviceCachingAllocator::create(memory_, progress_).value();
};

INSTANTIATE_TEST_SUITE_P(Devices, ShareTest, ::testing::Values(true, false),
                         [](const ::testing::TestParamInfo<bool>& can_map) { return can_map.param ? "expandable" : "segments"; });

TEST_P(ShareTest, ABlockIsSharedAsAnOffsetInMemoryThatIsThere) {
  std::byte* const first = allocate(1'000);
  std::byte* const second = allocate(3'000);
  const SharedBlock shared = share(first), beside = share(second);
  for (const auto& [block, bytes, where] : {std::tuple(first, 1'000, shared), std::tuple(second, 3'000, beside)}) {
    EXPECT_EQ(static_cast<std::byte*>(where.segment) + where.offset_bytes, block);
    EXPECT_LE(where.offset_bytes + static_cast<std::size_t>(bytes), where.segment_bytes);
  }
  EXPECT_EQ(shared.segment_bytes, kSmallSegmentBytes);
  EXPECT_EQ(beside.segment, shared.segment);
  EXPECT_EQ(beside.segment_id, shared.segment_id) << "one handle serves for both";
  EXPECT_NE(beside.offset_bytes, shared.offset_bytes);
  EXPECT_EQ(reserved_bytes(), shared.segment_bytes) << "no more than is there";
}

TEST_P(ShareTest, SharedMemoryStaysUntilItIsUnsharedAsOften) {
  std::byte* const block = allocate();
  const SharedBlock shared = share(block);
  EXPECT_EQ(share(block).segment_id, shared.segment_id);
  free(block);
  for (int count = 0; count < 2; ++count) {
    allocator_->empty_cache();
    EXPECT_EQ(reserved_bytes(), kBytes);
    allocator_->unshare(shared.segment_id).value();
  }
  allocator_->empty_cache();
  EXPECT_EQ(reserved_bytes(), 0u);
}

TEST_P(ShareTest, OthersCannotHaveItWhenMemoryIsShort) {
  std::byte* const block = allocate();
  const SharedBlock shared = share(block);
  free(block);
  EXPECT_EQ(allocator_->allocate(190 * kMiB, other_).error().code, ErrorCode::out_of_device_memory);
  allocator_->unshare(shared.segment_id).value();
  EXPECT_TRUE(allocator_->allocate(190 * kMiB, other_));
}

TEST_P(ShareTest, ItsOwnStreamGoesOnUsingIt) {
  std::byte* const block = allocate();
  share(block);
  free(block);
  EXPECT_EQ(allocate(), block);
}

TEST_P(ShareTest, WhatIsRoundItGoesBack) {
  std::vector<std::byte*> blocks;
  for (int count = 0; count < 7; ++count) blocks.push_back(allocate());
  std::vector<std::uint64_t> ids;
  for (const std::size_t index : {1u, 2u, 4u}) ids.push_back(share(blocks[index]).segment_id);
  for (std::byte* const block : blocks) free(block);
  allocator_->empty_cache();
  EXPECT_EQ(reserved_bytes(), 3 * kBytes);
  allocator_->unshare(ids[1]).value();
  allocator_->empty_cache();
  EXPECT_EQ(reserved_bytes(), 2 * kBytes);
  // What is there serves as before.
  EXPECT_TRUE(allocator_->allocate(150 * kMiB, stream_));
  EXPECT_EQ(memory_.broken_rules(), 0);
}

TEST_P(ShareTest, MemoryOfAPoolStaysBeyondThePool) {
  auto pool = allocator_->create_pool();
  void* const block = allocator_->allocate(kBytes, stream_, *pool).value();
  const SharedBlock shared = share(block);
  free(block);
  pool.reset();
  EXPECT_EQ(reserved_bytes(), kBytes);
  allocator_->unshare(shared.segment_id).value();
  allocator_->empty_cache();
  EXPECT_EQ(reserved_bytes(), 0u);
}

TEST_P(ShareTest, ANumberIsThatOfTheMemoryAndNotOfItsAddresses) {
  std::byte* const block = allocate();
  const std::uint64_t id = share(block).segment_id;
  allocator_->unshare(id).value();
  EXPECT_EQ(share(block).segment_id, id) << "nothing was given back";
  allocator_->unshare(id).value();
  free(block);
  allocator_->empty_cache();
  std::byte* const again = allocate();
  EXPECT_EQ(again == block, GetParam()) << "at the same addresses, where they are reserved";
  EXPECT_NE(share(again).segment_id, id);
  EXPECT_FALSE(allocator_->unshare(id));
}

TEST_P(ShareTest, WhatIsNotLiveOrNotSharedIsRefused) {
  std::byte* const block = allocate();
  int elsewhere = 0;
  for (void* const address : {static_cast<void*>(block + 512), static_cast<void*>(&elsewhere), static_cast<void*>(nullptr)}) {
    EXPECT_EQ(allocator_->share(address).error().code, ErrorCode::invalid_argument);
  }
  const std::uint64_t id = share(block).segment_id;
  EXPECT_EQ(allocator_->unshare(id + 1'000).error().code, ErrorCode::invalid_argument);
  allocator_->unshare(id).value();
  EXPECT_EQ(allocator_->unshare(id).error().code, ErrorCode::invalid_argument);
  free(block);
  EXPECT_EQ(allocator_->share(block).error().code, ErrorCode::invalid_argument);
}

TEST_P(ShareTest, NothingSharedIsTakenAwayWhateverOthersDo) {
  std::mutex mutex;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::size_t>> shared;  // by number
  std::atomic<int> taken_away{0};
  memory_.on_take_away([&](std::uint64_t begin, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    for (const auto& [id, run] : shared) taken_away += begin < run.first + run.second && run.first < begin + bytes ? 1 : 0;
  });
  std::atomic<bool> is_over{false};
  std::thread emptying([&] {
    while (!is_over) allocator_->empty_cache();
  });
  for (int count = 0; count < 1'000; ++count) {
    std::byte* const block = allocate(count % 2 == 0 ? 3'000 : 3 * kMiB);
    const SharedBlock where = share(block);
    {
      const std::lock_guard lock(mutex);
      shared[where.segment_id] = {reinterpret_cast<std::uintptr_t>(where.segment), where.segment_bytes};
    }
    free(block);
    {
      const std::lock_guard lock(mutex);
      shared.erase(where.segment_id);
    }
    allocator_->unshare(where.segment_id).value();
  }
  is_over = true;
  emptying.join();
  memory_.on_take_away(nullptr);
  EXPECT_EQ(taken_away, 0);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

TEST(SharedPagesTest, BothSidesOfALargeBlockGoBackAtOnce) {
  FakeDeviceMemory memory(200 * kMiB, true);
  ScriptedProgress progress;
  const StreamRef stream = progress.stream(1);
  progress.finish_at_once(stream);
  const auto allocator = DeviceCachingAllocator::create(memory, progress).value();
  std::vector<void*> blocks;
  for (const std::size_t bytes : {178 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB}) blocks.push_back(allocator->allocate(bytes, stream).value());
  allocator->share(blocks[1]).value();
  // One free block, before a live one; without its last 2 MiB it is in the same bin.
  for (const std::size_t index : {0u, 1u, 2u}) allocator->free(blocks[index]).value();
  allocator->empty_cache();
  EXPECT_EQ(memory.taken_bytes(), 4 * kMiB);
}

TEST(ShareTableTest, TheHighestPartThatNobodyHasIsFound) {
  ShareTable table;
  const auto highest = [&](std::uint64_t begin, std::uint64_t end) {
    const MemoryRun run = table.highest_closed({begin, end});
    return run.is_empty() ? std::pair<std::uint64_t, std::uint64_t>() : std::pair(run.begin, run.end);
  };
  using Run = std::pair<std::uint64_t, std::uint64_t>;
  const std::uint64_t wide = table.open({20, 40});
  table.open({30, 50});
  table.open({70, 80});
  EXPECT_EQ(highest(0, 100), Run(80, 100));
  EXPECT_EQ(highest(0, 80), Run(50, 70));
  EXPECT_EQ(highest(0, 75), Run(50, 70));
  EXPECT_EQ(highest(0, 50), Run(0, 20));
  EXPECT_EQ(highest(20, 45), Run());
  EXPECT_EQ(highest(52, 60), Run(52, 60));
  EXPECT_TRUE(table.close(wide));
  EXPECT_EQ(highest(20, 45), Run(20, 30));
  EXPECT_TRUE(table.has_open());
}

}  // namespace
}  // namespace xpu::memory
