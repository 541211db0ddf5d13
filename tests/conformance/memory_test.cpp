#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Every kind of memory that the device has.
class MemoryTest : public DeviceTest {
 protected:
  static ErrorCode code_of_exhaustion(hal::MemoryKind kind) {
    return kind == hal::MemoryKind::host ? ErrorCode::out_of_host_memory : ErrorCode::out_of_device_memory;
  }
  static std::uint64_t free_bytes(hal::MemoryProvider& provider) { return provider.info().value().free_bytes; }

  /// Takes blocks of this size until one is refused, at most `most`; the last answer is in `refusal`.
  static std::vector<void*> take_all(hal::MemoryProvider& provider, std::size_t block_bytes, std::size_t most, Result<void*>& refusal) {
    std::vector<void*> blocks;
    while (blocks.size() < most) {
      refusal = provider.allocate(block_bytes, 64);
      if (!refusal) break;
      blocks.push_back(*refusal);
    }
    return blocks;
  }
};
XPU_CONFORMANCE_SUITE(MemoryTest);

bool is_aligned(const void* address, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(address) % alignment == 0; }

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

TEST_P(MemoryTest, ABlockIsAlignedAsItWasAskedFor) {
  for (const hal::MemoryKind kind : kinds()) {
    for (std::size_t alignment = 1; alignment <= 2 * kMebibyte; alignment *= 2) {
      EXPECT_TRUE(is_aligned(allocate_bytes(memory(kind), 100, alignment), alignment)) << to_string(kind) << " " << alignment;
    }
  }
}

TEST_P(MemoryTest, ABlockHasTheAlignmentOfTheDeviceWhenLessIsAskedFor) {
  const std::uint32_t alignment = device().properties().memory_alignment_bytes;
  for (const hal::MemoryKind kind : kinds()) {
    for (int index = 0; index < 10; ++index) EXPECT_TRUE(is_aligned(allocate_bytes(memory(kind), 1, 1), alignment)) << to_string(kind);
  }
}

TEST_P(MemoryTest, BlocksDoNotOverlap) {
  for (const hal::MemoryKind kind : kinds()) {
    std::vector<std::pair<std::byte*, std::size_t>> blocks;
    for (std::size_t index = 0; index < 200; ++index) {
      const std::size_t bytes = 1 + index * index * 7 % 50'000;
      blocks.emplace_back(allocate<std::byte>(kind, bytes), bytes);
    }
    std::sort(blocks.begin(), blocks.end());
    for (std::size_t index = 1; index < blocks.size(); ++index) {
      EXPECT_LE(blocks[index - 1].first + blocks[index - 1].second, blocks[index].first) << to_string(kind);
    }
  }
}

TEST_P(MemoryTest, TheHostReadsBackWhatItWrote) {
  for (const hal::MemoryKind kind : host_visible_kinds()) {
    const std::vector<std::byte> expected = pattern_bytes(100'000, 1);
    std::byte* const block = allocate<std::byte>(kind, expected.size());
    std::copy(expected.begin(), expected.end(), block);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), block)) << to_string(kind);
  }
}

TEST_P(MemoryTest, ContentsStayWhileOtherBlocksComeAndGo) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    const std::vector<std::byte> expected = pattern_bytes(10'000, 2);
    std::byte* const block = allocate<std::byte>(kind, expected.size());
    write(*queue, block, expected);
    for (std::size_t bytes = 1; bytes < 4 * kMebibyte; bytes *= 3) {
      void* const other = memory(kind).allocate(bytes, 64).value();
      const std::byte filler{0xee};
      queue->fill(other, {&filler, 1}, bytes, {}).value();
      queue->synchronize_blocking().value();
      memory(kind).free(other);
    }
    EXPECT_EQ(read(*queue, block, expected.size()), expected) << to_string(kind);
  }
}

TEST_P(MemoryTest, TheFirstAndTheLastByteOfALargeBlockCanBeUsed) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    const std::size_t bytes = 64 * kMebibyte - 1;
    std::byte* const block = allocate<std::byte>(kind, bytes);
    const std::vector<std::byte> ends = pattern_bytes(2, 3);
    write(*queue, block, std::span(ends).first(1));
    write(*queue, block + bytes - 1, std::span(ends).last(1));
    EXPECT_EQ(read(*queue, block, 1)[0], ends[0]) << to_string(kind);
    EXPECT_EQ(read(*queue, block + bytes - 1, 1)[0], ends[1]) << to_string(kind);
  }
}

TEST_P(MemoryTest, AKernelReachesEveryKind) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_set");
  for (const hal::MemoryKind kind : kinds()) {
    auto* const values = allocate<std::uint32_t>(kind, 1'000);
    launch(*queue, *kernel, items({1'000}), values, std::uint32_t{77}).value();
    EXPECT_THAT(read_as(*queue, values, 1'000), ::testing::Each(77u)) << to_string(kind);
  }
}

TEST_P(MemoryTest, AKernelSeesWhatTheHostWroteBeforeTheLaunch) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : host_visible_kinds()) {
    auto* const source = allocate<std::uint64_t>(kind, 100);
    auto* const destination = allocate<std::uint64_t>(kind, 100);
    for (std::uint64_t index = 0; index < 100; ++index) source[index] = index * index;
    launch(*queue, *suite_kernel("conformance_copy_words"), items({100}), static_cast<const std::uint64_t*>(source), destination).value();
    queue->synchronize_blocking().value();
    EXPECT_EQ(std::memcmp(source, destination, 100 * sizeof(std::uint64_t)), 0) << to_string(kind);
  }
}

TEST_P(MemoryTest, FreeAndTotalAreSane) {
  for (const hal::MemoryKind kind : kinds()) {
    const hal::MemoryInfo info = memory(kind).info().value();
    EXPECT_GT(info.total_bytes, 0u) << to_string(kind);
    EXPECT_LE(info.free_bytes, info.total_bytes) << to_string(kind);
  }
}

TEST_P(MemoryTest, TheTotalIsThatOfTheProperties) {
  XPU_NEEDS(device_memory);
  EXPECT_EQ(memory(hal::MemoryKind::device).info().value().total_bytes, device().properties().total_memory_bytes);
}

TEST_P(MemoryTest, AnAllocationTakesItsBytesFromTheFreeOnes) {
  for (const hal::MemoryKind kind : kinds()) {
    if (memory(kind).info().value().is_measured) continue;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4'096}, 3 * kMebibyte + 1}) {
      const std::uint64_t before = free_bytes(memory(kind));
      void* const block = memory(kind).allocate(bytes, 64).value();
      const std::uint64_t taken = before - free_bytes(memory(kind));
      memory(kind).free(block);
      EXPECT_GE(taken, bytes) << to_string(kind);
      EXPECT_LE(taken, bytes + 64 * 1'024) << to_string(kind) << ": rounding may add a page or a granule";
    }
  }
}

TEST_P(MemoryTest, TheFreeFigureIsExactlyBackWhenABlockIsFreed) {
  for (const hal::MemoryKind kind : kinds()) {
    if (memory(kind).info().value().is_measured) continue;
    const std::uint64_t before = free_bytes(memory(kind));
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes < 8 * kMebibyte; bytes = bytes * 2 + 1) {
      blocks.push_back(memory(kind).allocate(bytes, bytes % 3 == 0 ? 4'096 : 1).value());
    }
    for (void* block : blocks) memory(kind).free(block);
    EXPECT_EQ(free_bytes(memory(kind)), before) << to_string(kind);
  }
}

TEST_P(MemoryTest, TheTotalNeverChanges) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::uint64_t before = memory(kind).info().value().total_bytes;
    static_cast<void>(allocate<std::byte>(kind, 5 * kMebibyte));
    EXPECT_EQ(memory(kind).info().value().total_bytes, before) << to_string(kind);
  }
}

TEST_P(MemoryTest, MoreThanTheTotalIsRefused) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::uint64_t total = memory(kind).info().value().total_bytes;
    EXPECT_TRUE(fails_with(code_of_exhaustion(kind), memory(kind).allocate(total + 1, 64))) << to_string(kind);
  }
}

TEST_P(MemoryTest, AnAbsurdSizeIsRefusedAndDoesNotOverflow) {
  for (const hal::MemoryKind kind : kinds()) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX - 4'095, SIZE_MAX / 2 + 1}) {
      EXPECT_TRUE(fails_with(code_of_exhaustion(kind), memory(kind).allocate(bytes, 4'096))) << to_string(kind) << " " << bytes;
    }
  }
}

TEST_P(MemoryTest, ARefusedAllocationTakesNothing) {
  for (const hal::MemoryKind kind : kinds()) {
    if (memory(kind).info().value().is_measured) continue;
    const hal::MemoryInfo before = memory(kind).info().value();
    for (int index = 0; index < 100; ++index) EXPECT_FALSE(memory(kind).allocate(before.total_bytes + 1, 64));
    EXPECT_EQ(free_bytes(memory(kind)), before.free_bytes) << to_string(kind);
  }
}

TEST_P(MemoryTest, ARefusedAllocationLeavesEveryBlockIntact) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (const hal::MemoryKind kind : kinds()) {
    const std::vector<std::byte> expected = pattern_bytes(50'000, 4);
    std::byte* const block = allocate<std::byte>(kind, expected.size());
    write(*queue, block, expected);
    EXPECT_FALSE(memory(kind).allocate(memory(kind).info().value().total_bytes + 1, 64));
    EXPECT_EQ(read(*queue, block, expected.size()), expected) << to_string(kind);
  }
}

TEST_P(MemoryTest, TheSumOfAllBlocksNeverExceedsTheTotal) {
  for (const hal::MemoryKind kind : kinds()) {
    const hal::MemoryInfo before = memory(kind).info().value();
    const std::size_t block_bytes = before.total_bytes / 16 + 1;
    Result<void*> refusal = nullptr;
    const std::vector<void*> blocks = take_all(memory(kind), block_bytes, 17, refusal);
    EXPECT_LT(blocks.size(), 17u) << to_string(kind) << ": " << blocks.size() << " blocks of " << block_bytes << " bytes";
    EXPECT_TRUE(fails_with(code_of_exhaustion(kind), refusal)) << to_string(kind);
    for (void* block : blocks) memory(kind).free(block);
    if (!before.is_measured) {
      EXPECT_EQ(free_bytes(memory(kind)), before.free_bytes) << to_string(kind);
    }
  }
}

TEST_P(MemoryTest, ABlockThatWasFreedMakesRoomForAnother) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::size_t block_bytes = memory(kind).info().value().total_bytes / 16 + 1;
    Result<void*> refusal = nullptr;
    std::vector<void*> blocks = take_all(memory(kind), block_bytes, 17, refusal);
    ASSERT_FALSE(blocks.empty()) << to_string(kind);
    memory(kind).free(blocks.back());
    blocks.pop_back();
    Result<void*> again = memory(kind).allocate(block_bytes, 64);
    EXPECT_TRUE(is_ok(again)) << to_string(kind);
    if (again) blocks.push_back(*again);
    for (void* block : blocks) memory(kind).free(block);
  }
}

TEST_P(MemoryTest, MemoryThatIsFreedIsNeverUsedUp) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::size_t block_bytes = memory(kind).info().value().total_bytes / 8;
    for (int round = 0; round < 200; ++round) {
      const Result<void*> block = memory(kind).allocate(block_bytes, 64);
      ASSERT_TRUE(is_ok(block)) << to_string(kind) << " " << round;
      memory(kind).free(*block);
    }
  }
}

TEST_P(MemoryTest, ABlockMayBeFreedByAnotherThread) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::uint64_t before = free_bytes(memory(kind));
    void* const block = memory(kind).allocate(kMebibyte, 64).value();
    on_threads(1, [&](int) { memory(kind).free(block); });
    if (!memory(kind).info().value().is_measured) {
      EXPECT_EQ(free_bytes(memory(kind)), before) << to_string(kind);
    }
  }
}

TEST_P(MemoryTest, FourThreadsAllocateAndFreeAtOnce) {
  for (const hal::MemoryKind kind : host_visible_kinds()) {
    const std::uint64_t before = free_bytes(memory(kind));
    on_threads(4, [&](int thread) {
      for (std::size_t round = 0; round < 300; ++round) {
        const std::size_t bytes = 1 + round * 997 % 30'000;
        auto* const block = static_cast<std::uint8_t*>(memory(kind).allocate(bytes, 64).value());
        const int mine = thread * 50 + static_cast<int>(round % 50);
        std::memset(block, mine, bytes);
        const bool is_intact = std::all_of(block, block + bytes, [mine](std::uint8_t value) { return value == mine; });
        EXPECT_TRUE(is_intact) << "another block overlaps";
        memory(kind).free(block);
      }
    });
    if (!memory(kind).info().value().is_measured) {
      EXPECT_EQ(free_bytes(memory(kind)), before) << to_string(kind);
    }
  }
}

TEST_P(MemoryTest, FourThreadsTogetherGetNoMoreThanTheTotal) {
  for (const hal::MemoryKind kind : kinds()) {
    const std::size_t block_bytes = memory(kind).info().value().total_bytes / 10 + 1;
    std::vector<std::vector<void*>> blocks(4);
    on_threads(4, [&](int thread) {
      Result<void*> refusal = nullptr;
      blocks[static_cast<std::size_t>(thread)] = take_all(memory(kind), block_bytes, 10, refusal);
    });
    std::size_t count = 0;
    for (const std::vector<void*>& of_thread : blocks) {
      count += of_thread.size();
      for (void* block : of_thread) memory(kind).free(block);
    }
    EXPECT_LE(count, 9u) << to_string(kind);
  }
}

TEST_P(MemoryTest, MemoryOfTwoDevicesIsCountedApart) {
  XPU_NEEDS(two_devices);
  XPU_NEEDS(device_memory);
  hal::MemoryProvider& other = *device(1).memory(hal::MemoryKind::device);
  const std::uint64_t before = free_bytes(other);
  static_cast<void>(allocate<std::byte>(hal::MemoryKind::device, 4 * kMebibyte));
  EXPECT_EQ(free_bytes(other), before);
}

}  // namespace
}  // namespace xpu::conformance
