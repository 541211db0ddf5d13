#include "xpu/memory/guarded_allocator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hal/host_memory.hpp"
#include "memory/block_sizes.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"

namespace xpu::memory {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Whether a touch of the byte is none of a fault: the kernel is asked, which says so instead of dying.
bool is_mapped(const std::byte* address) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  const ssize_t written = write(ends[1], address, 1);
  EXPECT_TRUE(written == 1 || errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  return written == 1;
}

/// Whether somebody has the page's addresses, with memory or without.
bool is_reserved(std::byte* page) { return msync(page, 1, MS_ASYNC) == 0; }

class LineRecorder final : public StackRecorder {
 public:
  std::uint32_t line = 0;
  StackId record() noexcept override { return line; }
  std::vector<Frame> frames(StackId stack) const override { return {{"train.py", "step", stack}}; }
};

class GuardedAllocatorTest : public ::testing::Test {
 protected:
  GuardedAllocatorTest() { create({}); }
  void create(GuardOptions options) {
    options.is_host_accessible = true;
    options.checks.stacks = stacks_;
    options.checks.on_misuse = [this](const std::string& finding) { findings_.push_back(finding); };
    allocator_ = GuardedAllocator::create(memory_, progress_, options).value();
  }
  std::byte* allocate(std::size_t bytes, const StreamRef& stream) {
    return static_cast<std::byte*>(allocator_->allocate(bytes, stream).value());
  }
  std::size_t page() const { return memory_.granularity(); }

  std::shared_ptr<hal::MemoryBudget> budget_ = std::make_shared<hal::MemoryBudget>(std::size_t{1} << 20);
  hal::HostMemoryProvider memory_{hal::MemoryKind::device, budget_};
  ScriptedProgress progress_;
  const StreamRef stream_ = progress_.stream(1), other_ = progress_.stream(2);
  std::shared_ptr<LineRecorder> stacks_ = std::make_shared<LineRecorder>();
  std::vector<std::string> findings_;
  std::unique_ptr<GuardedAllocator> allocator_;
};

TEST_F(GuardedAllocatorTest, ABlockEndsAtAGuardAndHasOneInFront) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{512}, std::size_t{513}, page() - 1, page(), page() + 1, 10 * page()}) {
    std::byte* const block = allocate(bytes, stream_);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 512, 0u);
    std::memset(block, 1, bytes);
    const std::size_t padded_bytes = round_up(bytes, 512), mapped_bytes = round_up(bytes, page());
    EXPECT_TRUE(is_mapped(block + padded_bytes - 1));
    EXPECT_FALSE(is_mapped(block + padded_bytes)) << bytes;
    EXPECT_FALSE(is_mapped(block + padded_bytes - mapped_bytes - 1)) << bytes;
    allocator_->free(block).value();
  }
  progress_.finish_at_once(stream_);
  allocator_->empty_cache();
  EXPECT_THAT(findings_, IsEmpty());
}

TEST_F(GuardedAllocatorTest, ASmallerAlignmentBringsTheGuardCloser) {
  create({1, 1 << 20, true, {}});
  std::byte* const block = allocate(77, stream_);
  EXPECT_TRUE(is_mapped(block + 76));
  EXPECT_FALSE(is_mapped(block + 77));
}

TEST_F(GuardedAllocatorTest, AFreedBlockHasNoMemoryOnceItsStreamsArePastTheFree) {
  std::byte* const block = allocate(100, stream_);
  EXPECT_TRUE(allocator_->record_use(block, other_));
  allocator_->free(block).value();
  EXPECT_TRUE(is_mapped(block)) << "its stream may still use it";
  progress_.reach_all(stream_);
  allocator_->free(allocate(1, stream_)).value();
  EXPECT_TRUE(is_mapped(block)) << "the other stream may";
  progress_.reach_all(other_);
  allocator_->free(allocate(1, stream_)).value();
  EXPECT_FALSE(is_mapped(block));
}

TEST_F(GuardedAllocatorTest, TheAddressesOfTheLastFreedBlocksAreNobodyElses) {
  create({512, 6 * page(), true, {}});
  progress_.finish_at_once(stream_);
  std::vector<std::byte*> blocks;
  for (int count = 0; count < 3; ++count) blocks.push_back(allocate(page(), stream_));
  for (std::byte* const block : blocks) allocator_->free(block).value();
  // Three pages each, with the guards.
  EXPECT_FALSE(is_reserved(blocks[0]));
  EXPECT_TRUE(is_reserved(blocks[1]));
  EXPECT_TRUE(is_reserved(blocks[2]));
}

TEST_F(GuardedAllocatorTest, AWriteJustPastTheEndIsFoundWhenTheBlockIsFreed) {
  stacks_->line = 17;
  std::byte* const block = allocate(1'000, stream_);
  block[1'000] = std::byte{0};
  block[1'003] = std::byte{0};
  stacks_->line = 23;
  allocator_->free(block).value();
  EXPECT_THAT(findings_, IsEmpty()) << "the stream may still be at it";
  progress_.finish_at_once(stream_);
  allocator_->empty_cache();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_THAT(findings_[0], AllOf(HasSubstr("2 bytes outside of a block were written, the first of them at offset 1000"),
                                  HasSubstr("1,000 bytes of stream 1"), HasSubstr("allocated at:\n    step (train.py:17)"),
                                  HasSubstr("freed at:\n    step (train.py:23)")));
}

TEST_F(GuardedAllocatorTest, AWriteInFrontOfTheBeginIsFound) {
  progress_.finish_at_once(stream_);
  std::byte* const block = allocate(1'000, stream_);
  block[-3] = std::byte{0};
  allocator_->free(block).value();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_THAT(findings_[0], HasSubstr("1 bytes outside of a block were written, the first of them 3 in front of its begin"));
}

TEST_F(GuardedAllocatorTest, AUseOfAFreedBlockIsFoundAndWhatIsFreedTwiceIsSaidToHaveBeenOne) {
  std::byte* const block = allocate(1'000, stream_);
  allocator_->free(block).value();
  EXPECT_FALSE(allocator_->record_use(block + 100, other_));
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_THAT(findings_[0], HasSubstr("1,000 bytes of stream 1"));
  const Result<> twice = allocator_->free(block);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(twice.error().message, HasSubstr("1,000 bytes of stream 1"));
  EXPECT_FALSE(allocator_->free(&findings_));
}

TEST_F(GuardedAllocatorTest, WhenMemoryIsShortItWaitsForWhatWasFreed) {
  std::byte* const block = allocate(std::size_t{1} << 20, stream_);
  EXPECT_EQ(allocator_->allocate(1, stream_).error().code, ErrorCode::out_of_device_memory);
  EXPECT_EQ(allocator_->statistics().num_ooms, 1);
  allocator_->free(block).value();
  EXPECT_EQ(progress_.calls(stream_).wait, 0);
  EXPECT_NE(allocate(1, stream_), nullptr);
  EXPECT_EQ(progress_.calls(stream_).wait, 1);
  const Result<void*> refused = allocator_->allocate(kMostRequestBytes + 1, stream_);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
}

TEST_F(GuardedAllocatorTest, TheStatisticsReturnToZero) {
  std::byte* const block = allocate(1'000, stream_);
  DeviceStatistics now = allocator_->statistics();
  EXPECT_EQ(now.requested_bytes.all.current, 1'000);
  EXPECT_EQ(now.allocated_bytes.all.current, 1'024);
  EXPECT_EQ(now.reserved_bytes.all.current, static_cast<std::int64_t>(page()));
  allocator_->free(block).value();
  now = allocator_->statistics();
  EXPECT_EQ(now.allocated_bytes.all.current, 0);
  EXPECT_EQ(now.active_bytes.all.current, 1'024);
  EXPECT_EQ(now.reserved_bytes.all.current, static_cast<std::int64_t>(budget_->taken_bytes()));
  allocator_->empty_cache();
  now = allocator_->statistics();
  EXPECT_EQ(now.active_bytes.all.current, 0);
  EXPECT_EQ(now.reserved_bytes.all.current, 0);
  EXPECT_EQ(budget_->taken_bytes(), 0u);
}

TEST_F(GuardedAllocatorTest, LiveBlocksAreReported) {
  stacks_->line = 17;
  allocate(1'000, stream_);
  const LiveBlockReport report = allocator_->report_live_blocks();
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0].requested_bytes, 1'000u);
  EXPECT_EQ(report.rows[0].stack[0].line, 17u);
}

TEST_F(GuardedAllocatorTest, EverythingGoesBackAtTheEnd) {
  allocate(1'000, stream_);
  allocator_->free(allocate(1'000, stream_)).value();
  allocator_.reset();
  EXPECT_EQ(budget_->taken_bytes(), 0u);
}

TEST_F(GuardedAllocatorTest, ThreadsMayAllocateAndFreeAtTheSameTime) {
  progress_.finish_at_once(stream_);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int count = 0; count < 200; ++count) {
        const Result<void*> block = allocator_->allocate(1'000, stream_);
        ASSERT_TRUE(block);
        std::memset(*block, 1, 1'000);
        ASSERT_TRUE(allocator_->free(*block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  allocator_->empty_cache();
  EXPECT_EQ(allocator_->statistics().active.all, (StatisticsCounter{0, allocator_->statistics().active.all.peak, 600, 600}));
  EXPECT_EQ(budget_->taken_bytes(), 0u);
  EXPECT_THAT(findings_, IsEmpty());
}

TEST(GuardOptionsTest, WhatCannotBeIsRefused) {
  ScriptedProgress progress;
  FakeDeviceMemory cannot(64 * kMiB, false), can(64 * kMiB, true);
  EXPECT_EQ(GuardedAllocator::create(cannot, progress).error().code, ErrorCode::unsupported);
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{48}, 2 * FakeDeviceMemory::kPage}) {
    EXPECT_EQ(GuardedAllocator::create(can, progress, {alignment}).error().code, ErrorCode::invalid_argument) << alignment;
  }
  GuardOptions nothing_remembered;
  nothing_remembered.checks.max_freed_blocks = 0;
  EXPECT_EQ(GuardedAllocator::create(can, progress, nothing_remembered).error().code, ErrorCode::invalid_argument);
}

TEST(GuardOptionsTest, MemoryThatTheHostMayNotTouchIsNotTouched) {
  ScriptedProgress progress;
  progress.finish_at_once(progress.stream(1));
  FakeDeviceMemory memory(64 * kMiB, true);
  const auto allocator = GuardedAllocator::create(memory, progress).value();
  void* const block = allocator->allocate(1'000, progress.stream(1)).value();  // a touch would be a fault
  allocator->free(block).value();
  EXPECT_EQ(memory.taken_bytes(), 0u);
  EXPECT_EQ(memory.broken_rules(), 0);
}

}  // namespace
}  // namespace xpu::memory
