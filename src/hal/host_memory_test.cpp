#include "hal/host_memory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

namespace xpu::hal {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Fixture {
  explicit Fixture(std::uint64_t limit_bytes, MemoryKind kind = MemoryKind::device)
      : budget(std::make_shared<MemoryBudget>(limit_bytes)), provider(kind, budget) {}

  std::shared_ptr<MemoryBudget> budget;
  HostMemoryProvider provider;
};

void* allocated(MemoryProvider& provider, std::size_t bytes, std::size_t alignment = 1) {
  auto result = provider.allocate(bytes, alignment);
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? *result : nullptr;
}

/// Whether the kernel can read the byte: a fault is EFAULT then and no signal.
bool is_readable(const void* address) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const ssize_t written = write(ends[1], address, 1);
  const int code = errno;
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(written == 1 || code == EFAULT);
  return written == 1;
}

TEST(MemoryBudget, TakesUpToItsLimitAndNotOneByteMore) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.take(60));
  EXPECT_FALSE(budget.take(41));
  EXPECT_TRUE(budget.take(40));
  EXPECT_FALSE(budget.take(1));
  EXPECT_FALSE(budget.take(UINT64_MAX)) << "the sum overflows";
  budget.give_back(40);
  EXPECT_EQ(budget.taken_bytes(), 60u);
}

TEST(MemoryBudget, IsExactWhenFourThreadsDrawFromIt) {
  constexpr std::uint64_t kLimit = 1000;
  MemoryBudget budget(kLimit);
  std::atomic<std::uint64_t> held{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> kept{0};
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      const std::uint64_t bytes = 100 * thread + 1;
      for (int round = 0; round < 2000; ++round) {
        if (!budget.take(bytes)) continue;
        if (held.fetch_add(bytes) + bytes > kLimit) exceeded = true;
        held.fetch_sub(bytes);
        budget.give_back(bytes);
      }
      while (budget.take(thread)) kept += thread;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  while (budget.take(1)) ++kept;
  EXPECT_EQ(kept, kLimit);
  EXPECT_EQ(budget.taken_bytes(), kLimit);
}

TEST(HostMemory, SmallAndLargeBlocksAreAlignedAndUsable) {
  Fixture memory(64 * kMiB);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, kMiB - 1, kMiB, 3 * kMiB + 5}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{64}, std::size_t{512}, std::size_t{4096}, 2 * kMiB}) {
      void* block = allocated(memory.provider, bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % std::max<std::size_t>(alignment, 64), 0u) << bytes << " by " << alignment;
      std::memset(block, 0x5a, bytes);
      memory.provider.free(block);
    }
  }
  EXPECT_EQ(memory.budget->taken_bytes(), 0u);
}

TEST(HostMemory, FailsExactlyAtTheLimitAndChangesNothing) {
  Fixture memory(2 * kMiB);
  void* first = allocated(memory.provider, kMiB);
  void* second = allocated(memory.provider, kMiB - 64);
  std::memset(first, 1, kMiB);
  void* last = allocated(memory.provider, 64);
  const auto refused = memory.provider.allocate(1, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_EQ(refused.error().message,
            "cannot take 1 bytes (1 B) of device memory: 2097152 of the limit of 2097152 bytes (2.0 MiB) are taken");
  EXPECT_EQ(memory.budget->taken_bytes(), 2 * kMiB);
  EXPECT_EQ(static_cast<unsigned char*>(first)[kMiB - 1], 1);
  memory.provider.free(last);
  memory.provider.free(allocated(memory.provider, 33));
  memory.provider.free(second);
  memory.provider.free(first);
}

TEST(HostMemory, TheKindDecidesTheCode) {
  EXPECT_EQ(Fixture(64, MemoryKind::host).provider.allocate(65, 1).error().code, ErrorCode::out_of_host_memory);
  EXPECT_EQ(Fixture(64, MemoryKind::shared).provider.allocate(65, 1).error().code, ErrorCode::out_of_device_memory);
}

TEST(HostMemory, AnAbsurdSizeIsRefusedByTheLimitOrTheSystem) {
  Fixture memory(UINT64_MAX);
  EXPECT_EQ(memory.provider.allocate(SIZE_MAX, 1).error().code, ErrorCode::out_of_device_memory);
  const auto refused = memory.provider.allocate(std::size_t{1} << 58, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_EQ(refused.error().native_code, ENOMEM);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("the system refuses them (Cannot allocate memory)"));
  EXPECT_EQ(memory.budget->taken_bytes(), 0u);
}

TEST(HostMemory, TwoProvidersShareOneLimit) {
  const auto budget = std::make_shared<MemoryBudget>(256);
  HostMemoryProvider device(MemoryKind::device, budget), shared(MemoryKind::shared, budget);
  void* block = allocated(device, 200);
  EXPECT_FALSE(shared.allocate(1, 1)) << "200 bytes take 256";
  device.free(block);
  shared.free(allocated(shared, 256));
}

TEST(HostMemory, AReservationCostsNothingAndFaultsUntilItIsMapped) {
  Fixture memory(kMiB);
  const std::size_t page = memory.provider.granularity();
  const auto reserved = memory.provider.reserve(1024 * kMiB);
  ASSERT_TRUE(reserved);
  auto* begin = static_cast<std::byte*>(*reserved);
  EXPECT_EQ(memory.budget->taken_bytes(), 0u);
  EXPECT_FALSE(is_readable(begin));

  ASSERT_TRUE(memory.provider.map(begin + page, page));
  EXPECT_EQ(memory.budget->taken_bytes(), page);
  begin[page] = std::byte{7};
  EXPECT_FALSE(is_readable(begin + page - 1));
  EXPECT_FALSE(is_readable(begin + 2 * page));

  memory.provider.unmap(begin + page, page);
  EXPECT_FALSE(is_readable(begin + page));
  EXPECT_EQ(memory.budget->taken_bytes(), 0u);
  ASSERT_TRUE(memory.provider.map(begin + page, page));
  EXPECT_EQ(begin[page], std::byte{0}) << "the contents were given up with the pages";
  memory.provider.unmap(begin + page, page);
  memory.provider.unreserve(begin, 1024 * kMiB);
}

TEST(HostMemory, MappingBeyondTheLimitIsRefusedAndLeavesTheRestMapped) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Fixture memory(2 * page);
  EXPECT_EQ(memory.provider.granularity(), page);
  auto* begin = static_cast<std::byte*>(*memory.provider.reserve(4 * page));
  ASSERT_TRUE(memory.provider.map(begin, page));
  begin[0] = std::byte{9};
  const auto refused = memory.provider.map(begin + page, 2 * page);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_FALSE(is_readable(begin + page));
  EXPECT_EQ(begin[0], std::byte{9});
  EXPECT_TRUE(memory.provider.map(begin + page, page));
  memory.provider.unreserve(begin, 4 * page);
  EXPECT_EQ(memory.budget->taken_bytes(), 0u) << "what was still mapped went with the reservation";
}

TEST(HostMemory, OwnsItsAllocationsAndNothingBesideThem) {
  Fixture memory(kMiB);
  auto* block = static_cast<std::byte*>(allocated(memory.provider, 128));
  EXPECT_TRUE(memory.provider.owns(block, 128));
  EXPECT_TRUE(memory.provider.owns(block + 127, 1));
  EXPECT_FALSE(memory.provider.owns(block, 129));
  EXPECT_FALSE(memory.provider.owns(block - 1, 1));
  EXPECT_FALSE(memory.provider.owns(&memory, 1));
  memory.provider.free(block);
  EXPECT_FALSE(memory.provider.owns(block, 1));
}

TEST(HostMemory, OwnsMappedPagesAsOneHoweverTheyWereMapped) {
  Fixture memory(kMiB);
  const std::size_t page = memory.provider.granularity();
  auto* begin = static_cast<std::byte*>(*memory.provider.reserve(8 * page));
  for (const std::size_t index : {1, 3, 2, 5}) ASSERT_TRUE(memory.provider.map(begin + index * page, page));
  EXPECT_TRUE(memory.provider.owns(begin + page, 3 * page));
  EXPECT_FALSE(memory.provider.owns(begin + page, 4 * page)) << "page 4 is missing";
  ASSERT_TRUE(memory.provider.map(begin + 4 * page, page));
  EXPECT_TRUE(memory.provider.owns(begin + page, 5 * page));

  memory.provider.unmap(begin + 2 * page, 2 * page);
  EXPECT_TRUE(memory.provider.owns(begin + page, page));
  EXPECT_FALSE(memory.provider.owns(begin + 2 * page, 1));
  EXPECT_TRUE(memory.provider.owns(begin + 4 * page, 2 * page));
  EXPECT_EQ(memory.budget->taken_bytes(), 3 * page);
  memory.provider.unreserve(begin, 8 * page);
}

TEST(HostMemory, InfoIsTheLimitLessWhatWasTaken) {
  Fixture memory(kMiB);
  void* block = allocated(memory.provider, 100);
  const auto info = memory.provider.info();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->total_bytes, kMiB);
  EXPECT_EQ(info->free_bytes, kMiB - 128);
  EXPECT_FALSE(info->is_measured);
  memory.provider.free(block);
}

TEST(HostMemory, WhatIsLeftIsFreedWithTheProvider) {
  const auto budget = std::make_shared<MemoryBudget>(8 * kMiB);
  {
    HostMemoryProvider provider(MemoryKind::device, budget);
    allocated(provider, 100);
    allocated(provider, 2 * kMiB);
  }
  EXPECT_EQ(budget->taken_bytes(), 0u);
}

TEST(HostMemory, FourThreadsAllocateWithoutExceedingTheLimit) {
  Fixture memory(4 * kMiB);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        auto block = memory.provider.allocate(round % 3 == 0 ? kMiB + 1 : 1000, 1);
        if (!block) continue;
        static_cast<std::byte*>(*block)[0] = std::byte{1};
        EXPECT_LE(memory.budget->taken_bytes(), 4 * kMiB);
        memory.provider.free(*block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.budget->taken_bytes(), 0u);
}

}  // namespace
}  // namespace xpu::hal
