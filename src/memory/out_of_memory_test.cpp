#include "memory/out_of_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xpu::memory {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

SnapshotSegment segment(std::int64_t stream, std::uint64_t allocated, std::uint64_t pending, std::uint64_t free) {
  SnapshotSegment made;
  made.stream = stream;
  made.total_bytes = allocated + pending + free;
  made.allocated_bytes = allocated;
  made.active_bytes = allocated + pending;
  if (allocated != 0) made.blocks.push_back({0, allocated, allocated, SnapshotBlockState::active_allocated});
  if (pending != 0) made.blocks.push_back({0, pending, pending, SnapshotBlockState::active_pending_free});
  if (free != 0) made.blocks.push_back({0, free, 0, SnapshotBlockState::inactive});
  return made;
}

class OutOfMemoryText : public ::testing::Test {
 protected:
  OutOfMemoryText() {
    failed_.device = 3;
    failed_.stream = 7;
    failed_.requested_bytes = 1500;
    failed_.wanted_bytes = 2 * kMiB;
    failed_.limit_bytes = 8 * kGiB;
    failed_.info = {512 * kMiB, 8 * kGiB, true};
    failed_.refusal = "error 39 of the driver";
  }
  std::string text() const { return out_of_memory_text(failed_, now_); }

  OutOfMemory failed_;
  Snapshot now_{{segment(7, 5 * kGiB, 0, 3 * kMiB), segment(8, kGiB, 0, 3 * kGiB / 2)}};
};

TEST_F(OutOfMemoryText, ComesInTheOrderThatUsersKnow) {
  EXPECT_EQ(text(),
            "XPU out of memory. Tried to allocate 1.46 KiB. GPU 3 has a total capacity of 8.00 GiB of which 512.00 MiB is free. Of the "
            "allocated memory 6.00 GiB is allocated by the program, and 1.50 GiB is reserved but unallocated. Please use `empty_cache` to "
            "release all unoccupied cached memory. The device gave no more: error 39 of the driver.");
}

TEST_F(OutOfMemoryText, AFigureThatNobodyMeasuredSaysSo) {
  failed_.info.is_measured = false;
  EXPECT_THAT(text(), HasSubstr("of which 512.00 MiB is free (estimated). "));
}

TEST_F(OutOfMemoryText, WhatIsAllowedIsSaidWhenItIsLessThanThereIs) {
  EXPECT_THAT(text(), Not(HasSubstr("allowed")));
  failed_.limit_bytes = 15 * kGiB / 2 + 3 * kMiB;
  EXPECT_THAT(text(), HasSubstr("7.50 GiB allowed; Of the allocated memory"));
}

TEST_F(OutOfMemoryText, PoolsAndPendingBlocksAreSaidWhenThereAreAny) {
  EXPECT_THAT(text(), Not(HasSubstr("pools")));
  SnapshotSegment pool = segment(7, 10 * kMiB, 6 * kMiB, 0);
  pool.pool = {0, 5};
  now_.segments.push_back(pool);
  EXPECT_THAT(text(), HasSubstr("6.01 GiB is allocated by the program (10.00 MiB of it in private pools), 6.00 MiB was freed by it and may "
                                "still be in use by streams, and 1.50 GiB is reserved but unallocated."));
}

TEST_F(OutOfMemoryText, TheReasonIsTheRequestTheLimitOrTheDevice) {
  EXPECT_THAT(text(), EndsWith("The device gave no more: error 39 of the driver."));
  failed_.wanted_bytes = kGiB;
  EXPECT_THAT(text(),
              EndsWith("It takes 1024.00 MiB more, and 7.50 GiB of the 8.00 GiB that may be taken are reserved; the largest free block "
                       "of its stream has 3.00 MiB, of any stream 1.50 GiB."));
  failed_.requested_bytes = 9 * kGiB;
  EXPECT_THAT(text(), EndsWith("The request alone is more than the 8.00 GiB that may be taken."));
}

}  // namespace
}  // namespace xpu::memory
