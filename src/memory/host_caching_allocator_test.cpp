#include "xpu/memory/host_caching_allocator.hpp"

#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "memory/test_support/scripted_progress.hpp"
#include "memory/test_support/watched_provider.hpp"

namespace xpu::memory {
namespace {

using testing::HasSubstr;

constexpr std::size_t kKibibyte = 1024, kMebibyte = 1024 * kKibibyte;

struct Fixture {
  explicit Fixture(const HostCachingOptions& options = {}, std::uint64_t limit_bytes = std::uint64_t{1} << 40)
      : provider(limit_bytes), allocator(provider, progress, options) {
    provider.on_allocate([this](std::size_t bytes) { asked.push_back(bytes); });
    provider.on_free([this](void* address, std::size_t) { returned.push_back(address); });
  }

  std::byte* allocate(std::size_t bytes) {
    const Result<void*> result = allocator.allocate(bytes);
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? static_cast<std::byte*>(*result) : nullptr;
  }
  void free(void* pointer) {
    const Result<> result = allocator.free(pointer);
    EXPECT_TRUE(result) << to_string(result.error());
  }
  /// A block that the stream may still be using.
  std::byte* free_used(std::size_t bytes, const StreamRef& stream) {
    std::byte* const pointer = allocate(bytes);
    EXPECT_TRUE(allocator.record_use(pointer, stream));
    free(pointer);
    return pointer;
  }
  HostStatistics statistics() const { return allocator.statistics(); }

  std::vector<std::size_t> asked;  // of the provider
  std::vector<void*> returned;     // to the provider
  ScriptedProgress progress;
  WatchedProvider provider;
  HostCachingAllocator allocator;
  StreamRef first = progress.stream(1), second = progress.stream(2);
};

TEST(HostCachingAllocator, GivesNullForNothingAndTakesItBack) {
  Fixture f;
  EXPECT_EQ(f.allocate(0), nullptr);
  f.free(nullptr);
  EXPECT_EQ(f.statistics().num_host_alloc, 0);
}

TEST(HostCachingAllocator, AsksTheDriverForSlabsClassesAndExactSizes) {
  Fixture f;
  f.allocate(1);
  f.allocate(64 * kKibibyte);
  EXPECT_THAT(f.asked, testing::ElementsAre(2 * kMebibyte)) << "small blocks of any size come from one slab";
  f.asked.clear();
  f.allocate(64 * kKibibyte + 1);
  f.allocate(33 * kMebibyte);
  f.allocate(64 * kMebibyte);
  f.allocate(64 * kMebibyte + 1);
  f.allocate(100 * kMebibyte);
  EXPECT_THAT(f.asked,
              testing::ElementsAre(72 * kKibibyte, 36 * kMebibyte, 64 * kMebibyte, 64 * kMebibyte + 64 * kKibibyte, 100 * kMebibyte));
}

TEST(HostCachingAllocator, RoundsNothingAboveTheSmallerOfBothThresholds) {
  Fixture f({.max_round_threshold_bytes = kMebibyte});
  f.allocate(kMebibyte - 1);
  f.allocate(kMebibyte + 1);
  EXPECT_THAT(f.asked, testing::ElementsAre(kMebibyte, kMebibyte + 64 * kKibibyte));

  Fixture least({.exact_above_bytes = 0});
  least.allocate(40 * kKibibyte + 1);
  least.allocate(64 * kKibibyte + 1);
  EXPECT_THAT(least.asked, testing::ElementsAre(2 * kMebibyte, 72 * kKibibyte)) << "the class wastes less";
}

TEST(HostCachingAllocator, ReusesABlockForItsClassOnly) {
  Fixture f;
  std::byte* const block = f.allocate(kMebibyte);
  f.free(block);
  EXPECT_NE(f.allocate(kMebibyte + 1), block) << "too small";
  EXPECT_NE(f.allocate(kMebibyte / 16 * 15), block) << "of a smaller class";
  EXPECT_EQ(f.allocate(kMebibyte / 16 * 15 + 1), block);
}

TEST(HostCachingAllocator, ReusesAnExactBlockForItsSizeOnly) {
  Fixture f;
  std::byte* const block = f.allocate(100 * kMebibyte);
  f.free(block);
  EXPECT_NE(f.allocate(100 * kMebibyte - 64 * kKibibyte), block);
  EXPECT_EQ(f.allocate(100 * kMebibyte - 1), block);
}

TEST(HostCachingAllocator, CutsASlabAnewOnceNothingOfItIsInUse) {
  Fixture f;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(f.allocate(32 * kKibibyte));
  for (std::byte* block : blocks) f.free(block);
  std::set<std::byte*> anew;
  for (int i = 0; i < 32; ++i) anew.insert(f.allocate(64 * kKibibyte));
  EXPECT_EQ(anew.size(), 32u);
  EXPECT_EQ(f.statistics().num_host_alloc, 1) << "32 blocks of 64 KiB are one slab";
  f.allocate(1);
  EXPECT_EQ(f.statistics().num_host_alloc, 2);
}

TEST(HostCachingAllocator, RefusesToFreeWhatIsNotItsToFree) {
  Fixture f;
  std::byte* const small = f.allocate(100);
  std::byte* const large = f.allocate(kMebibyte);
  int foreign = 0;
  const auto message = [&](void* pointer) {
    const Result<> result = f.allocator.free(pointer);
    if (result) return std::string("freed");
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    return result.error().message;
  };
  EXPECT_THAT(message(&foreign), HasSubstr("lies in no block"));
  EXPECT_THAT(message(small + 128), HasSubstr("lies in no block")) << "the slab is not cut there";
  EXPECT_THAT(message(large + 5), HasSubstr("lies inside a block"));
  f.free(small);
  EXPECT_THAT(message(small), HasSubstr("freed already"));
  f.allocator.record_use(large, f.first);
  f.free(large);
  EXPECT_THAT(message(large), HasSubstr("freed already")) << "pending";
  EXPECT_EQ(f.statistics().allocation.current, 0);
  EXPECT_EQ(f.statistics().allocation.freed, 2);
}

TEST(HostCachingAllocator, RecordsUsesOfAnyPointerInsideALiveBlock) {
  Fixture f;
  std::byte* const small = f.allocate(100);
  std::byte* const large = f.allocate(kMebibyte);
  int foreign = 0;
  EXPECT_TRUE(f.allocator.record_use(small, f.first));
  EXPECT_TRUE(f.allocator.record_use(small + 127, f.first));
  EXPECT_TRUE(f.allocator.record_use(large + kMebibyte - 1, f.first));
  EXPECT_TRUE(f.allocator.contains(small));
  EXPECT_TRUE(f.allocator.contains(large + kMebibyte - 1));
  EXPECT_FALSE(f.allocator.contains(small + 128));
  EXPECT_FALSE(f.allocator.contains(&foreign));
  EXPECT_FALSE(f.allocator.record_use(small + 128, f.first));
  if (large + kMebibyte != small) {  // another block's begin
    EXPECT_FALSE(f.allocator.record_use(large + kMebibyte, f.first));
  }
  EXPECT_FALSE(f.allocator.record_use(&foreign, f.first));
  f.free(large);
  EXPECT_FALSE(f.allocator.record_use(large, f.first));
  EXPECT_FALSE(f.allocator.contains(large));
  EXPECT_EQ(f.progress.calls(f.first).total(), 0);
}

TEST(HostCachingAllocator, ReusesAUsedBlockOnlyAfterATicketFromBehindItsFree) {
  Fixture f;
  std::byte* const block = f.allocate(kMebibyte);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(f.allocator.record_use(block + i, f.first));  // one stream, one use
  ASSERT_TRUE(f.allocator.record_use(block, f.second));
  f.free(block);
  EXPECT_EQ(f.progress.calls(f.first).total(), 0) << "freeing asks nothing";
  EXPECT_EQ(f.statistics().pending_bytes.current, kMebibyte);

  f.allocate(2 * kMebibyte);
  EXPECT_EQ(f.progress.calls(f.first).total(), 0) << "this request could not use the block";
  EXPECT_NE(f.allocate(kMebibyte), block);
  EXPECT_EQ(f.progress.issued(f.first), 1u);
  EXPECT_EQ(f.progress.issued(f.second), 1u);
  f.progress.reach_all(f.first);
  EXPECT_NE(f.allocate(kMebibyte), block) << "the second stream is not there yet";
  f.progress.reach_all(f.second);
  EXPECT_EQ(f.allocate(kMebibyte), block);
  EXPECT_EQ(f.progress.issued(f.first), 1u) << "one ticket was enough";
  EXPECT_EQ(f.statistics().pending_bytes.current, 0);
}

TEST(HostCachingAllocator, NeedsOneTicketForManyFrees) {
  Fixture f;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(f.allocate(kMebibyte));
    f.allocator.record_use(blocks.back(), f.first);
  }
  for (std::byte* block : blocks) f.free(block);
  EXPECT_EQ(f.progress.calls(f.first).issue, 0);
  f.progress.finish_at_once(f.first);
  for (int i = 0; i < 40; ++i) f.allocate(kMebibyte);
  EXPECT_EQ(f.progress.calls(f.first).issue, 1);
  EXPECT_EQ(f.statistics().num_host_alloc, 40);
}

TEST(HostCachingAllocator, IssuesATicketWhen64BlocksOr64MebibytesWait) {
  Fixture f;
  f.progress.finish_at_once(f.first);
  for (int i = 0; i < 63; ++i) f.free_used(64 + 64 * static_cast<std::size_t>(i % 8), f.second);
  EXPECT_EQ(f.progress.calls(f.second).total(), 0) << "the slab had room for all of them";

  std::vector<std::byte*> blocks;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(f.allocate(kKibibyte));
    f.allocator.record_use(blocks.back(), f.first);
  }
  for (int i = 0; i < 63; ++i) f.free(blocks[static_cast<std::size_t>(i)]);
  EXPECT_EQ(f.progress.calls(f.first).issue, 0);
  f.free(blocks.back());
  EXPECT_EQ(f.progress.calls(f.first).issue, 1);
  std::byte* const large = f.allocate(65 * kMebibyte);
  f.allocator.record_use(large, f.first);
  f.free(large);
  EXPECT_EQ(f.progress.calls(f.first).issue, 2);
}

TEST(HostCachingAllocator, AsksNothingOfACapturingStreamAndGoesOnAfterwards) {
  Fixture f({}, 3 * kMebibyte);
  const StreamRef capturing = f.progress.stream(1, true);
  std::byte* const block = f.free_used(2 * kMebibyte, capturing);
  const Result<void*> refused = f.allocator.allocate(2 * kMebibyte);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("stream 1 is capturing"));
  f.allocator.empty_cache();
  EXPECT_EQ(f.progress.calls(f.first).total(), 0);
  EXPECT_EQ(f.statistics().pending_bytes.current, 2 * kMebibyte);

  f.progress.finish_at_once(f.first);
  f.allocator.note_stream(f.first);
  EXPECT_EQ(f.allocate(2 * kMebibyte), block);
}

TEST(HostCachingAllocator, HearsFromALaterUseThatACaptureHasEnded) {
  Fixture f;
  f.progress.finish_at_once(f.first);
  std::byte* const block = f.free_used(kMebibyte, f.progress.stream(1, true));
  std::byte* const other = f.allocate(kMebibyte);
  EXPECT_NE(other, block);
  f.allocator.record_use(other, f.first);
  EXPECT_EQ(f.allocate(kMebibyte), block);
}

TEST(HostCachingAllocator, GivesBackWhatWasUsedLongestAgoAboveTheCap) {
  Fixture f({.max_cached_bytes = 3 * kMebibyte});
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(f.allocate(kMebibyte));
  for (int i : {2, 0, 3}) f.free(blocks[static_cast<std::size_t>(i)]);
  EXPECT_THAT(f.returned, testing::IsEmpty());
  f.free(blocks[1]);
  EXPECT_THAT(f.returned, testing::ElementsAre(blocks[2]));

  std::byte* const huge = f.allocate(4 * kMebibyte);
  f.free(huge);
  EXPECT_THAT(f.returned, testing::ElementsAre(blocks[2], huge)) << "what exceeds the cap alone pushes out nothing else";
  EXPECT_EQ(f.statistics().reserved_bytes.current, 3 * kMebibyte);
}

TEST(HostCachingAllocator, EmptiesItsCacheButForWhatIsInUse) {
  Fixture f;
  std::byte* const live = f.allocate(kMebibyte);
  f.free(f.allocate(2 * kMebibyte));
  f.free(f.allocate(100));
  f.free_used(3 * kMebibyte, f.first);
  f.allocator.empty_cache();
  EXPECT_EQ(f.statistics().reserved_bytes.current, 4 * kMebibyte);
  f.progress.reach_all(f.first);
  f.allocator.empty_cache();
  EXPECT_EQ(f.statistics().reserved_bytes.current, kMebibyte);
  f.free(live);
  f.allocator.empty_cache();
  EXPECT_EQ(f.provider.taken_bytes(), 0u);
}

TEST(HostCachingAllocator, GivesBackItsCacheBeforeItWaits) {
  Fixture f({}, 4 * kMebibyte);
  f.free_used(kMebibyte, f.first);
  f.free(f.allocate(3 * kMebibyte));
  f.allocate(2 * kMebibyte + 1);
  EXPECT_EQ(f.progress.calls(f.first).wait, 0);
  EXPECT_EQ(f.statistics().pending_bytes.current, kMebibyte);
}

TEST(HostCachingAllocator, WaitsForTheOldestEpochsAndNoMoreThanItNeeds) {
  Fixture f({}, 4 * kMebibyte);
  for (std::int64_t id : {3, 1, 2, 4}) f.free_used(id == 3 ? kMebibyte + 1 : kMebibyte / 2, f.progress.stream(id));
  f.allocate(2 * kMebibyte + 1);  // 2.25 MiB; 1.375 are free, 1.125 and 0.5 MiB suffice
  EXPECT_EQ(f.progress.calls(f.progress.stream(3)).wait, 1);
  for (std::int64_t id : {1, 2, 4}) EXPECT_EQ(f.progress.calls(f.progress.stream(id)).wait, 0) << id;
}

TEST(HostCachingAllocator, WaitsForOtherStreamsWhenOneRefuses) {
  Fixture f({}, 2 * kMebibyte);
  f.free_used(kMebibyte / 2, f.first);
  f.free_used(kMebibyte, f.second);
  f.progress.fail(f.first, Error{ErrorCode::internal, "no tickets"});
  f.allocate(kMebibyte + 1);
  EXPECT_EQ(f.statistics().pending_bytes.current, kMebibyte / 2);
}

TEST(HostCachingAllocator, SaysWhatWasAskedForAndWhereTheMemoryIs) {
  Fixture f({}, 8 * kMebibyte);
  f.allocate(4 * kMebibyte);
  f.allocate(1);
  f.free_used(kMebibyte, f.progress.stream(1, true));
  const Result<void*> refused = f.allocator.allocate(3 * kMebibyte);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_host_memory);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("3145728 bytes (3.0 MiB)"), HasSubstr("4.0 MiB are allocated"),
                                                      HasSubstr("1.0 MiB wait for streams (stream 1 is capturing"),
                                                      HasSubstr("2.0 MiB are cached"), HasSubstr("limit")))
      << refused.error().message;
  EXPECT_THAT(f.allocator.allocate(SIZE_MAX).error().message, HasSubstr("at most"));
  f.allocate(kMebibyte);
}

TEST(HostCachingAllocator, CountsWhatPyTorchCounts) {
  Fixture f;
  std::byte* const small = f.allocate(100);
  std::byte* const large = f.allocate(kMebibyte);
  f.free(large);
  f.free(f.allocate(kMebibyte));
  HostStatistics now = f.statistics();
  EXPECT_EQ(now.allocation.current, 1);
  EXPECT_EQ(now.allocation.peak, 2);
  EXPECT_EQ(now.allocation.allocated, 3);
  EXPECT_EQ(now.allocation.freed, 2);
  EXPECT_EQ(now.allocated_bytes.current, 128);
  EXPECT_EQ(now.allocated_bytes.peak, 128 + kMebibyte);
  EXPECT_EQ(now.segment.current, 2);
  EXPECT_EQ(now.reserved_bytes.current, 3 * kMebibyte);
  EXPECT_EQ(now.num_host_alloc, 2);
  EXPECT_EQ(now.host_alloc_time.count, 2);
  EXPECT_LE(now.host_alloc_time.min_us, now.host_alloc_time.max_us);
  EXPECT_LE(now.host_alloc_time.max_us, now.host_alloc_time.total_us);

  f.allocator.reset_peak_statistics();
  f.allocator.reset_accumulated_statistics();
  now = f.statistics();
  EXPECT_EQ(now.allocation.peak, 1);
  EXPECT_EQ(now.allocation.allocated, 0);
  EXPECT_EQ(now.allocation.freed, 0);
  EXPECT_EQ(now.host_alloc_time.count, 0);
  EXPECT_EQ(now.host_alloc_time.max_us, 0);
  EXPECT_EQ(now.num_host_alloc, 0);
  EXPECT_EQ(now.reserved_bytes.current, 3 * kMebibyte);

  f.free(small);
  f.allocator.empty_cache();
  now = f.statistics();
  EXPECT_EQ(now.allocation.current, 0);
  EXPECT_EQ(now.allocated_bytes.current, 0);
  EXPECT_EQ(now.segment.current, 0);
  EXPECT_EQ(now.reserved_bytes.current, 0);
  EXPECT_EQ(now.num_host_free, 2);
  EXPECT_EQ(now.host_free_time.count, 2);
}

TEST(HostCachingAllocator, CallsNeitherDriverNorQueueWithALockHeld) {
  Fixture f({.max_cached_bytes = kMebibyte}, 16 * kMebibyte);
  int calls = 0;
  // Each of these needs one of the locks: were it held, this would not come back.
  const auto look = [&] {
    ++calls;
    f.allocator.statistics();
    f.allocator.note_stream(f.second);
  };
  f.provider.on_allocate([&](std::size_t) { look(); });
  f.provider.on_free([&](void*, std::size_t) { look(); });
  f.progress.on_call(look);
  f.free_used(4 * kMebibyte, f.first);
  f.free(f.allocate(2 * kMebibyte));
  f.allocate(4 * kMebibyte);
  f.allocate(8 * kMebibyte);
  for (int i = 0; i < 64; ++i) f.free_used(kKibibyte, f.second);
  f.allocator.empty_cache();
  EXPECT_GT(f.progress.calls(f.first).wait, 0) << "all kinds of calls were made";
  EXPECT_GT(calls, 10);
  f.provider.on_free(nullptr);
}

TEST(HostCachingAllocator, GivesEverythingBackWhenItGoes) {
  ScriptedProgress progress;
  WatchedProvider provider;
  {
    HostCachingAllocator allocator(provider, progress);
    for (std::size_t bytes : {std::size_t{1}, kMebibyte, 65 * kMebibyte}) {
      const Result<void*> live = allocator.allocate(bytes), used = allocator.allocate(bytes);
      ASSERT_TRUE(live && used);
      allocator.record_use(*used, progress.stream(1));
      EXPECT_TRUE(allocator.free(*used));
    }
  }
  EXPECT_EQ(provider.taken_bytes(), 0u);
}

}  // namespace
}  // namespace xpu::memory
