// What the checks for misuse find, and what they leave alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "memory/block_ledger.hpp"
#include "memory/block_sizes.hpp"
#include "memory/live_blocks.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A program that is in the line of code that a test says.
class LineRecorder final : public StackRecorder {
 public:
  std::uint32_t line = 0;
  StackId record() noexcept override { return line; }
  std::vector<Frame> frames(StackId stack) const override { return {{"train.py", "step", stack}, {"train.py", "main", 1}}; }
};

class ChecksTest : public ::testing::TestWithParam<bool> {
 protected:
  ChecksTest() {
    for (std::int64_t stream = 1; stream < 4; ++stream) progress_.finish_at_once(progress_.stream(stream));
  }
  void start_checks(std::size_t max_freed_blocks = 100) {
    allocator_->start_checks({stacks_, [this](const std::string& finding) { findings_.push_back(finding); }, max_freed_blocks}).value();
  }
  void* allocate(std::size_t bytes, std::uint32_t line, std::int64_t stream = 1) {
    stacks_->line = line;
    return allocator_->allocate(bytes, progress_.stream(stream)).value();
  }
  Result<> free(void* address, std::uint32_t line) {
    stacks_->line = line;
    return allocator_->free(address);
  }
  bool record_use(void* address, std::size_t offset = 0) {
    return allocator_->record_use(static_cast<std::byte*>(address) + offset, progress_.stream(2));
  }

  FakeDeviceMemory memory_{200 * kMiB, GetParam()};
  ScriptedProgress progress_;
  std::shared_ptr<LineRecorder> stacks_ = std::make_shared<LineRecorder>();
  std::vector<std::string> findings_;
  std::unique_ptr<DeviceCachingAllocator> allocator_ = DeviceCachingAllocator::create(memory_, progress_).value();
};

INSTANTIATE_TEST_SUITE_P(Devices, ChecksTest, ::testing::Values(true, false),
                         [](const ::testing::TestParamInfo<bool>& can_map) { return can_map.param ? "expandable" : "segments"; });

TEST_P(ChecksTest, AUseOfAFreedBlockIsFoundWithItsSizeItsStreamAndItsStacks) {
  start_checks();
  void* const block = allocate(1'234, 17);
  free(block, 23).value();
  EXPECT_FALSE(record_use(block, 700));
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_THAT(findings_[0], AllOf(HasSubstr("stream 2"), HasSubstr("block that was freed: 1,234 bytes of stream 1"),
                                  HasSubstr("allocated at:\n    step (train.py:17)\n    main (train.py:1)"),
                                  HasSubstr("freed at:\n    step (train.py:23)")));
}

TEST_P(ChecksTest, WhatIsNoMisuseIsNoFinding) {
  start_checks();
  void* const block = allocate(2'000, 1);
  EXPECT_TRUE(record_use(block));
  EXPECT_FALSE(record_use(block, 512)) << "inside of a live block";
  int elsewhere = 0;
  EXPECT_FALSE(record_use(&elsewhere));
  free(block, 2).value();
  free(allocate(2'000, 1, 3), 2).value();
  void* const again = allocate(2'000, 3);
  EXPECT_FALSE(record_use(again, 512));
  EXPECT_THAT(findings_, IsEmpty());
}

TEST_P(ChecksTest, MemoryThatIsSomebodyElsesByNowIsNotAFreedBlockAnyMore) {
  start_checks();
  void* const first = allocate(kMiB, 1);
  allocate(kMiB, 1);  // nothing is left of the segment
  free(first, 2).value();
  ASSERT_EQ(allocate(512, 3), first);
  ASSERT_EQ(allocate(1'024, 3), static_cast<std::byte*>(first) + 512);
  EXPECT_TRUE(record_use(first));
  EXPECT_TRUE(record_use(first, 512));
  EXPECT_FALSE(record_use(first, 1'024)) << "inside of a live block";
  EXPECT_THAT(findings_, IsEmpty());
  EXPECT_FALSE(record_use(first, 2'048)) << "nobody has got the rest";
  EXPECT_EQ(findings_.size(), 1u);
}

TEST_P(ChecksTest, AFreeThatIsRefusedSaysWhatWasFreedAndWhere) {
  start_checks();
  void* const block = allocate(1'234, 17);
  free(block, 23).value();
  const Result<> twice = free(block, 29);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(twice.error().message, AllOf(HasSubstr("1,234 bytes of stream 1"), HasSubstr("(train.py:17)"), HasSubstr("(train.py:23)")));
  int elsewhere = 0;
  EXPECT_THAT(free(&elsewhere, 31).error().message, Not(HasSubstr("it lies in")));
}

TEST_P(ChecksTest, OnlyTheLastFreedBlocksAreRemembered) {
  start_checks(2);
  std::vector<void*> blocks;
  for (int count = 0; count < 3; ++count) blocks.push_back(allocate(512, 1));
  for (void* const block : blocks) free(block, 2).value();
  EXPECT_FALSE(record_use(blocks[0]));
  EXPECT_EQ(findings_.size(), 0u);
  EXPECT_FALSE(record_use(blocks[1]));
  EXPECT_FALSE(record_use(blocks[2]));
  EXPECT_EQ(findings_.size(), 2u);
}

TEST_P(ChecksTest, NothingIsFoundBeforeAndAfter) {
  void* const before = allocate(512, 1);
  void* const over = allocate(512, 1);
  free(before, 2).value();
  EXPECT_FALSE(record_use(before));
  start_checks();
  EXPECT_FALSE(record_use(before));
  EXPECT_EQ(findings_.size(), 0u);
  free(over, 3).value();
  EXPECT_FALSE(record_use(over));
  ASSERT_EQ(findings_.size(), 1u) << "it was freed while checks were on";
  EXPECT_THAT(findings_[0], AllOf(HasSubstr("freed at:"), Not(HasSubstr("allocated at:"))));
  allocator_->stop_checks();
  EXPECT_FALSE(record_use(over));
  EXPECT_EQ(findings_.size(), 1u);
}

TEST_P(ChecksTest, FreesOfOtherThreadsAreKnown) {
  start_checks();
  void* const block = allocate(512, 17);
  std::thread([&] { free(block, 23).value(); }).join();
  EXPECT_FALSE(record_use(block));
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_THAT(findings_[0], HasSubstr("(train.py:23)"));
}

std::string logged;
TEST_P(ChecksTest, FindingsAreLoggedWhenNobodyTakesThem) {
  allocator_->start_checks({}).value();
  void* const block = allocate(512, 17);
  free(block, 23).value();
  base::set_log_sink([](base::LogLevel level, const char*, const char* line) {
    if (level == base::LogLevel::error) logged = line;
  });
  EXPECT_FALSE(record_use(block));
  base::set_log_sink(nullptr);
  EXPECT_THAT(logged, AllOf(HasSubstr("block that was freed: 512 bytes"), Not(HasSubstr("freed at"))));
}

TEST_P(ChecksTest, AHistoryKeepsItsOwnStacksBesideTheChecks) {
  const auto others = std::make_shared<LineRecorder>();
  others->line = 5;
  allocator_->start_history({16, 0, StackUse::alloc, others}).value();
  start_checks();
  void* const block = allocate(512, 17);
  free(block, 23).value();
  EXPECT_FALSE(record_use(block));
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_THAT(findings_[0], HasSubstr("(train.py:17)"));
  allocator_->history().for_each([](const TraceEntry& entry) { EXPECT_EQ(entry.stack, entry.action == TraceAction::alloc ? 5u : 0u); });
}

TEST_P(ChecksTest, NothingCanBeRememberedIsRefused) {
  const Result<> refused = allocator_->start_checks({nullptr, nullptr, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
}

TEST_P(ChecksTest, LiveBlocksAreSummedByStackTheLargestFirst) {
  start_checks();
  const auto pool = allocator_->create_pool();
  for (int count = 0; count < 3; ++count) allocate(1'000, 7);
  allocate(2'000, 8, 2);
  stacks_->line = 8;
  allocator_->allocate(5'000, progress_.stream(2), *pool).value();
  free(allocate(9'000, 9), 10).value();
  const LiveBlockReport report = allocator_->report_live_blocks();
  ASSERT_EQ(report.rows.size(), 3u);
  EXPECT_EQ(report.rows[0].requested_bytes, 5'000u);
  EXPECT_EQ(report.rows[0].pool, pool->id());
  EXPECT_EQ(report.rows[1].requested_bytes, 3'000u);
  EXPECT_EQ(report.rows[1].blocks, 3u);
  EXPECT_EQ(report.rows[1].stream, 1);
  EXPECT_EQ(report.rows[1].stack[0].line, 7u);
  EXPECT_GT(report.rows[1].oldest_age_ns, 0u);
  EXPECT_EQ(report.rows[2].requested_bytes, 2'000u);
  EXPECT_EQ(report.rows[2].stream, 2);
  EXPECT_EQ(report.more_rows, 0u);
}

TEST_P(ChecksTest, LiveBlocksAreKnownWithoutChecksToo) {
  allocate(1'000, 7);
  LiveBlockReport report = allocator_->report_live_blocks();
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0], (LiveBlockReport::Row{1, 1'000, 1, {}, 0, {}}));
  allocator_->start_history({16, 0, StackUse::state, stacks_}).value();
  allocate(3'000, 9);
  report = allocator_->report_live_blocks();
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].stack[0].line, 9u) << "the stack of the history";
}

TEST(LiveBlockReportTest, TheTextSaysWhatIsLiveAndHowMuchIsLeftOut) {
  std::vector<NotedBlock> blocks;
  for (std::uint64_t index = 1; index <= 4; ++index)
    blocks.push_back({index << 20, 1'024, index * 100, 1, {0, 2}, StackId(index), 0, 1'000});
  blocks.push_back({5 << 20, 1'024, 100, 1, {0, 2}, 3, 0, 500});
  const auto frames_of = [](StackId stack) { return std::vector<StackRecorder::Frame>{{"train.py", "step", stack}}; };
  EXPECT_EQ(to_string(summarise_live_blocks(blocks, 1'700, 2, frames_of)),
            "1.1 KiB in 5 blocks were not freed:\n"
            "  400 B in 2 blocks, stream 1, pool (0, 2), up to 1.20 µs old\n"
            "    step (train.py:3)\n"
            "  400 B in 1 block, stream 1, pool (0, 2), 700 ns old\n"
            "    step (train.py:4)\n"
            "  … and 2 more (300 B in 2 blocks)");
  EXPECT_EQ(to_string(summarise_live_blocks({}, 0, 2, frames_of)), "");
  EXPECT_THAT(to_string(summarise_live_blocks(blocks, 1'700, 0, frames_of)), HasSubstr("… and 4 more (1.1 KiB in 5 blocks)"));
}

TEST(BlockLedgerTest, PartsOfAFreedBlockAreKnownUntilSomebodyGetsThem) {
  BlockLedger ledger;
  ledger.start({});
  const auto taken = [&](std::uint64_t begin, std::uint64_t bytes) { ledger.note_taken({begin, bytes, bytes, 1, {}, 0, 0, 0}); };
  const auto freed = [&](std::uint64_t begin, std::uint64_t bytes) { ledger.note_freed({begin, bytes, bytes, 1, {}, 0, 0, 0}, 0); };
  const auto owner = [&](std::uint64_t address) { return ledger.find_freed(address).value_or(NotedBlock{}).begin; };
  taken(1'000, 1'000);
  freed(1'000, 1'000);
  freed(2'000, 1'000);
  taken(1'400, 200);
  EXPECT_EQ(owner(999), 0u);
  EXPECT_EQ(owner(1'000), 1'000u);
  EXPECT_EQ(owner(1'399), 1'000u);
  EXPECT_EQ(owner(1'400), 0u);
  EXPECT_EQ(owner(1'599), 0u);
  EXPECT_EQ(owner(1'600), 1'000u);
  EXPECT_EQ(owner(2'000), 2'000u);
  taken(1'900, 200);
  EXPECT_EQ(owner(1'899), 1'000u);
  EXPECT_EQ(owner(1'900), 0u);
  EXPECT_EQ(owner(2'099), 0u);
  EXPECT_EQ(owner(2'100), 2'000u);
  EXPECT_EQ(owner(3'000), 0u);
}

TEST(BlockLedgerTest, MemoryThatIsReusedForEverKeepsTheLastFreesOnly) {
  BlockLedger ledger;
  ledger.start({nullptr, nullptr, 4});
  for (std::uint64_t round = 0; round < 10'000; ++round) {
    const std::uint64_t begin = 1'000 * (1 + round % 6);
    ledger.note_taken({begin, 1'000, 1'000, 1, {}, 0, 0, 0});
    ledger.note_freed({begin, 1'000, 1'000, 1, {}, 0, 0, 0}, StackId(round));
  }
  std::vector<StackId> known;
  for (std::uint64_t begin = 1'000; begin < 7'000; begin += 1'000) {
    if (const auto block = ledger.find_freed(begin)) known.push_back(block->freed_at);
  }
  EXPECT_THAT(known, ::testing::UnorderedElementsAre(9'996u, 9'997u, 9'998u, 9'999u));
  EXPECT_THAT(ledger.live(), IsEmpty());
}

}  // namespace
}  // namespace xpu::memory
