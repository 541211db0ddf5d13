// Blocks that other streams still use are handed out once the new owner's stream waits for them on the device; the host does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/block_sizes.hpp"
#include "memory/test_support/device_allocator_fixture.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

using ::testing::ElementsAre;

class DeviceWaitTest : public DeviceAllocatorFixture {
 protected:
  static constexpr std::size_t kMost = 150 * kMiB;  // a second one of these does not fit

  void* allocate_pending(std::size_t bytes, const std::vector<std::int64_t>& users) {
    void* const block = allocate(bytes);
    for (const std::int64_t user : users) EXPECT_TRUE(allocator_->record_use(block, progress_.stream(user)));
    free(block);
    return block;
  }
  int host_waits() {
    int waits = 0;
    for (std::int64_t stream = 0; stream < 10; ++stream) waits += progress_.calls(progress_.stream(stream)).wait;
    return waits;
  }
  int device_waits(std::int64_t stream = 1) { return progress_.calls(progress_.stream(stream)).make_wait; }
  std::uint64_t awaited(std::int64_t user) { return progress_.awaited(progress_.stream(1), progress_.stream(user)); }
  std::int64_t active_bytes() const { return statistics().active_bytes.all.current; }
};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceWaitTest, ::testing::Values(true, false), name_of_device);

TEST_P(DeviceWaitTest, ThePendingBlockIsTakenAndTheStreamWaitsForATicketFromBehindTheFree) {
  const StreamRef user = progress_.stream(2);
  ASSERT_EQ(progress_.issue(user.queue).value(), 1u) << "a ticket from before the free";
  void* const block = allocate_pending(kMost, {2});
  const int calls = memory_.calls();
  EXPECT_EQ(allocate(kMost), block);
  EXPECT_EQ(awaited(2), 2u);
  EXPECT_EQ(device_waits(), 1);
  EXPECT_EQ(progress_.reached(user), 0u);
  EXPECT_EQ(host_waits(), 0);
  EXPECT_EQ(memory_.calls(), calls);
  EXPECT_EQ(statistics().active, statistics().allocation);
  EXPECT_EQ(active_bytes(), static_cast<std::int64_t>(kMost));
  EXPECT_EQ(statistics().num_sync_all_streams, 0);
}

TEST_P(DeviceWaitTest, EveryStreamThatUsesTheBlockIsWaitedFor) {
  void* const block = allocate_pending(kMost, {2, 3, 4});
  EXPECT_EQ(allocate(kMost), block);
  for (const std::int64_t user : {2, 3, 4}) EXPECT_EQ(awaited(user), 1u) << user;
  EXPECT_EQ(host_waits(), 0);
}

TEST_P(DeviceWaitTest, TheSmallestThatFitsIsTakenAndItsRestNeedsNoOtherWait) {
  allocate_pending(80 * kMiB, {2});
  auto* const smallest = static_cast<std::byte*>(allocate(40 * kMiB));
  EXPECT_TRUE(allocator_->record_use(smallest, progress_.stream(3)));
  void* const last = allocate(70 * kMiB);
  EXPECT_TRUE(allocator_->record_use(last, progress_.stream(4)));
  free(last);
  free(smallest);
  EXPECT_EQ(allocate(30 * kMiB), smallest);
  EXPECT_EQ(allocate(10 * kMiB), smallest + 30 * kMiB);
  EXPECT_EQ(awaited(2), 0u);
  EXPECT_EQ(awaited(3), 1u);
  EXPECT_EQ(awaited(4), 0u);
  EXPECT_EQ(device_waits(), 1);
  EXPECT_EQ(active_bytes(), static_cast<std::int64_t>(190 * kMiB));
}

TEST_P(DeviceWaitTest, MemoryOfTheDeviceIsPreferredUntilMostOfItIsTaken) {
  void* const block = allocate_pending(80 * kMiB, {2});
  EXPECT_NE(allocate(80 * kMiB), block);
  EXPECT_EQ(device_waits(), 0) << "there is enough";
  allocate(16 * kMiB);
  EXPECT_EQ(memory_.taken_bytes(), 176 * kMiB);
  EXPECT_EQ(allocate(16 * kMiB), block) << "above 85 %";
  EXPECT_EQ(device_waits(), 1);
  EXPECT_EQ(memory_.taken_bytes(), 176 * kMiB);
}

TEST_P(DeviceWaitTest, WhereAQueueCannotWaitTheHostDoes) {
  progress_.refuse_device_waits(true);
  void* const block = allocate_pending(kMost, {2});
  EXPECT_EQ(allocate(kMost), block);
  EXPECT_EQ(device_waits(), 1);
  EXPECT_EQ(host_waits(), 1);
  EXPECT_EQ(statistics().num_sync_all_streams, 1);
}

TEST_P(DeviceWaitTest, AStreamThatIsCapturingIsNotMadeToWait) {
  void* const block = allocate_pending(kMost, {2});
  EXPECT_EQ(allocator_->allocate(kMost, progress_.stream(1, true)).value(), block);
  EXPECT_EQ(device_waits(), 0);
  EXPECT_EQ(host_waits(), 1);
}

TEST_P(DeviceWaitTest, ABlockThatCannotBeWaitedForStaysPending) {
  void* const block = allocate_pending(kMost, {2, 3});
  allocator_->note_stream(progress_.stream(3, true));
  EXPECT_FALSE(try_allocate(kMost)) << "one of its users is capturing";
  EXPECT_EQ(awaited(3), 0u);
  EXPECT_EQ(active_bytes(), static_cast<std::int64_t>(kMost));
  EXPECT_EQ(segment_of(block).blocks.front().state, SnapshotBlockState::active_pending_free);
  allocator_->note_stream(progress_.stream(3));
  EXPECT_EQ(allocate(kMost), block);
  EXPECT_EQ(awaited(3), 1u);
  EXPECT_EQ(active_bytes(), static_cast<std::int64_t>(kMost));
}

TEST_P(DeviceWaitTest, WhileTheQueueIsAskedTheBlockIsPendingAndNobodyElses) {
  void* const block = allocate_pending(kMost, {2});
  int asked = 0;
  progress_.on_call([&] {
    // The call after the questions that any allocation asks. Under an arena's lock none of what follows would return.
    if (progress_.calls(progress_.stream(2)).completed == 0 || asked++ != 0) return;
    EXPECT_EQ(statistics().active.all.current, 1);
    EXPECT_EQ(segment_of(block).blocks.front().state, SnapshotBlockState::active_pending_free);
    EXPECT_FALSE(try_allocate(kMost));
    EXPECT_FALSE(allocator_->free(block));
    EXPECT_FALSE(allocator_->record_use(block, progress_.stream(3)));
  });
  EXPECT_EQ(allocate(kMost), block);
  progress_.on_call(nullptr);
  EXPECT_GT(asked, 0);
  EXPECT_EQ(device_waits(), 1);
}

TEST_P(DeviceWaitTest, MemoryIsBoundedAndNobodyWaitsAlthoughTheUserIsNeverDone) {
  const StreamRef user = progress_.stream(2);
  for (int step = 0; step < 2'000; ++step) {
    void* const block = allocate((step % 2 == 0 ? 30 : 50) * kMiB);
    EXPECT_TRUE(allocator_->record_use(block, user));
    free(block);
  }
  EXPECT_EQ(host_waits(), 0);
  EXPECT_EQ(progress_.reached(user), 0u);
  EXPECT_LE(memory_.taken_bytes(), kCapacity);
  EXPECT_EQ(statistics().num_ooms, 0);
  EXPECT_GT(device_waits(), 1'900);
  progress_.finish_at_once(user);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(active_bytes(), 0);
}

TEST_P(DeviceWaitTest, WhatGoesBackToTheDeviceAfterwardsIsInNobodysHands) {
  void* const block = allocate_pending(kMost, {2});
  EXPECT_EQ(allocate(kMost), block);
  free(block);
  std::uint64_t reached = 0;
  memory_.on_take_away([&](std::uint64_t, std::size_t) { reached = progress_.reached(progress_.stream(2)); });
  allocator_->empty_cache();
  memory_.on_take_away({});
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(reached, 1u) << "by waiting for the stream that waits";
}

TEST_P(DeviceWaitTest, TheHistoryTellsThatTheFreeIsCompleteBeforeTheNextAllocation) {
  allocator_->start_history().value();
  std::vector<std::string> told;
  allocator_->attach_tracker([&](const TraceEntry& entry) { told.emplace_back(to_string(entry.action)); });
  void* const block = allocate_pending(kMost, {2});
  EXPECT_EQ(allocate(kMost - 7), block);
  EXPECT_THAT(told, ElementsAre(GetParam() ? "segment_map" : "segment_alloc", "alloc", "free_requested", "free_completed", "alloc"));
  std::vector<std::size_t> bytes;
  allocator_->history().for_each([&](const TraceEntry& entry) { bytes.push_back(entry.bytes); });
  EXPECT_THAT(bytes, ElementsAre(kMost, kMost, kMost, kMost, kMost - 7));
  EXPECT_EQ(segment_of(block).blocks.front().state, SnapshotBlockState::active_allocated);
}

}  // namespace
}  // namespace xpu::memory
