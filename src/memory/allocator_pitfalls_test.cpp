// Mistakes that caching allocators invite, one a test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "hal/host_memory.hpp"
#include "memory/block_sizes.hpp"
#include "memory/test_support/device_allocator_fixture.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "memory/test_support/watched_provider.hpp"
#include "xpu/memory/device_caching_allocator.hpp"
#include "xpu/memory/host_caching_allocator.hpp"

namespace xpu::memory {
namespace {

class PitfallTest : public DeviceAllocatorFixture {
 protected:
  /// By a thread that allocates nothing, so that the block lies in a list of its arena until somebody looks.
  void free_elsewhere(void* block) {
    std::thread([&] { free(block); }).join();
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, PitfallTest, ::testing::Values(true, false), name_of_device);

// --- Streams

TEST_P(PitfallTest, MemoryIsOfAStreamAndNotOfAQueueAtSomeAddress) {
  const StreamRef one = progress_.stream(1);
  const StreamRef other{2, one.queue};
  void* const block = allocator_->allocate(3 * kMiB, one).value();
  free(block);
  EXPECT_NE(allocator_->allocate(3 * kMiB, other).value(), block);
  EXPECT_EQ(allocator_->allocate(3 * kMiB, one).value(), block);
}

TEST_P(PitfallTest, AStreamThatCapturesIntoMemoryAtHandIsNotAsked) {
  free(allocate(50 * kMiB));
  const StreamRef capturing = progress_.stream(1, true);
  allocator_->note_stream(capturing);
  free(allocator_->allocate(20 * kMiB, capturing).value());
  allocator_->empty_cache();
  EXPECT_EQ(progress_.calls(capturing).total(), 0);
  EXPECT_EQ(memory_.taken_bytes(), 50 * kMiB);
  allocator_->note_stream(progress_.stream(1));
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 0u) << "the capture is over";
}

// --- Threads

TEST_P(PitfallTest, WhatAThreadHadAtHandOutlivesTheThread) {
  void* block = nullptr;
  std::thread([&] {
    block = allocate(1'000);
    free(block);
  }).join();
  EXPECT_EQ(allocate(1'000), block);
  free_elsewhere(block);
  EXPECT_EQ(statistics().allocation.all.current, 0);
}

TEST_P(PitfallTest, WhatOtherThreadsFreedCountsWhereverItMatters) {
  free_elsewhere(allocate(150 * kMiB));
  EXPECT_EQ(statistics().allocated_bytes.all.current, 0);
  free_elsewhere(allocate(150 * kMiB));
  EXPECT_EQ(allocator_->snapshot().segments.at(0).allocated_bytes, 0u);
  free_elsewhere(allocate(150 * kMiB));
  EXPECT_TRUE(try_allocate(190 * kMiB, 2)) << "it is all there is";
  EXPECT_EQ(statistics().num_ooms, 0);
  allocator_->empty_cache();
  free_elsewhere(allocate(1'000));
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 190 * kMiB);
  free_elsewhere(allocate(1'000));
  allocator_->reset_peak_statistics();
  EXPECT_EQ(statistics().allocated_bytes.all.peak, static_cast<std::int64_t>(190 * kMiB));
}

TEST_P(PitfallTest, WhatOtherThreadsFreedIsInNoPeak) {
  for (std::int64_t stream = 1; stream <= 5; ++stream) {
    void* const large = allocate(10 * kMiB, stream);
    void* const small = allocate(1'000, stream);
    free_elsewhere(large);
    free_elsewhere(small);
  }
  EXPECT_EQ(statistics().allocated_bytes.all.peak, static_cast<std::int64_t>(10 * kMiB + 1'024));
  EXPECT_EQ(statistics().allocation.all.peak, 2);
}

TEST_P(PitfallTest, OthersGoOnWhileTheDeviceTakesMemoryBack) {
  void* const kept = allocate(1'000, 2);
  allocate(1'000, 1);
  free(allocate(50 * kMiB, 1));
  int calls = 0;
  memory_.on_take_away([&](std::uint64_t, std::size_t) {
    ++calls;
    // Another thread, as locks of a thread are its own: were one held, this would not come back.
    std::thread([&] {
      free(allocate(5 * kMiB, 2));
      free(allocate(2'000, 1));  // what is at hand, also on the stream whose memory goes
      free_elsewhere(allocate(3'000, 2));
      EXPECT_TRUE(allocator_->record_use(kept, progress_.stream(3)));
      EXPECT_FALSE(allocator_->snapshot().segments.empty());
      EXPECT_EQ(statistics().allocation.all.current, 2);
    }).join();
  });
  allocator_->empty_cache();
  memory_.on_take_away({});
  EXPECT_GE(calls, 1);
}

/// Foreign code that comes back, as code of an interpreter does.
class CallingStacks final : public StackRecorder {
 public:
  explicit CallingStacks(std::function<void()> call) : call_(std::move(call)) {}
  ~CallingStacks() override { call_(); }
  CallingStacks(const CallingStacks&) = delete;
  CallingStacks& operator=(const CallingStacks&) = delete;
  StackId record() noexcept override {
    call_();
    return 1;
  }
  std::vector<Frame> frames(StackId) const override { return {}; }

 private:
  const std::function<void()> call_;
};

// Each of these calls would not come back if a lock were held.
TEST_P(PitfallTest, ARecorderOfStacksMayAskTheAllocatorAlsoWhenItGoes) {
  int calls = 0;
  const auto options = [&] {
    return HistoryOptions{.stack_use = StackUse::all, .stacks = std::make_shared<CallingStacks>([&] {
                                                        ++calls;
                                                        static_cast<void>(statistics());
                                                        static_cast<void>(allocator_->snapshot());
                                                      })};
  };
  allocator_->start_history(options()).value();
  free(allocate(1'000));
  EXPECT_EQ(calls, 2);
  allocator_->start_history(options()).value();
  EXPECT_EQ(calls, 3) << "the first recorder is gone";
  allocator_->stop_history();
  EXPECT_EQ(calls, 4);
}

/// A function whose copies call something when they go.
struct CallingTracker {
  std::shared_ptr<std::function<void()>> call;
  explicit CallingTracker(std::function<void()> function) : call(std::make_shared<std::function<void()>>(std::move(function))) {}
  CallingTracker(const CallingTracker&) = default;
  CallingTracker& operator=(const CallingTracker&) = delete;
  ~CallingTracker() { (*call)(); }
  void operator()(const TraceEntry&) const {}
};

TEST_P(PitfallTest, NoCopyOfATrackerGoesUnderALock) {
  int calls = 0;
  const CallingTracker tracker([&] {
    ++calls;
    free(allocate(1'000));
  });
  allocator_->attach_tracker(tracker);
  allocator_->attach_tracker(tracker);
  allocator_->attach_tracker([](const TraceEntry&) {});
  EXPECT_EQ(calls, 0) << "none goes at all";
  *tracker.call = [] {};
}

// --- Pointers and sizes

TEST_P(PitfallTest, AFreedBlockIsKnownAsSuchInEveryState) {
  void* const pending = allocate(5 * kMiB);
  EXPECT_TRUE(allocator_->record_use(pending, progress_.stream(2)));
  free(pending);
  EXPECT_FALSE(allocator_->free(pending)) << "a stream may still use it";
  std::vector<void*> blocks;
  for (int count = 0; count < 3; ++count) blocks.push_back(allocate(4 * kMiB));
  for (void* const block : blocks) free(block);
  for (void* const block : blocks) EXPECT_FALSE(allocator_->free(block)) << "it is part of a larger one";
  void* const all = allocate(12 * kMiB);
  EXPECT_EQ(all, blocks[0]);
  EXPECT_FALSE(allocator_->free(blocks[1])) << "it is inside of a live one";
  free(all);
  allocator_->empty_cache();
  for (void* const block : blocks) EXPECT_FALSE(allocator_->free(block)) << "the device has it back";
  EXPECT_EQ(statistics().allocation.all.freed, 5);
}

TEST_P(PitfallTest, NoSizeIsTakenForASmallerOne) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  const auto rounding = DeviceCachingAllocator::create(memory_, progress_, parse_config("roundup_power2_divisions:4").value()).value();
  for (const std::size_t size : {kCapacity + 1, kMost, kMost - 511, kMost - 2 * kMiB, kMost / 2, kMost / 2 + 2, std::size_t{1} << 46,
                                 (std::size_t{1} << 46) + 1, std::size_t{1} << 47, std::size_t{1} << 63, (std::size_t{3} << 62) + 1}) {
    for (DeviceCachingAllocator* const allocator : {allocator_.get(), rounding.get()}) {
      const Result<void*> refused = allocator->allocate(size, progress_.stream(1));
      ASSERT_FALSE(refused) << size;
      EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory) << size;
    }
  }
  EXPECT_EQ(statistics().num_ooms, 11);
  EXPECT_EQ(memory_.taken_bytes(), 0u);
  EXPECT_EQ(memory_.broken_rules(), 0);
}

TEST_P(PitfallTest, ASmallBlockKeepsNoPageOfLargeOnes) {
  std::vector<void*> large;
  for (int count = 0; count < 8; ++count) {
    large.push_back(allocate(12 * kMiB));
    allocate(512);
  }
  for (void* const block : large) free(block);
  allocator_->empty_cache();
  EXPECT_EQ(memory_.taken_bytes(), 2 * kMiB);
}

// --- Contents, of memory that is really there

class ContentsTest : public ::testing::TestWithParam<bool> {
 protected:
  struct Block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    int filling = 0;

    explicit operator bool() const { return begin != nullptr; }
    bool is_intact() const {
      return *begin == static_cast<std::byte>(filling) && std::memcmp(begin, begin + 1, bytes - 1) == 0;  // each byte as the one before it
    }
  };

  /// Null when there is no memory.
  Block allocate(std::size_t bytes, int filling, std::int64_t stream = 1) {
    const Result<void*> allocated = allocator_->allocate(bytes, progress_.stream(stream));
    if (!allocated) return Block{};
    std::memset(*allocated, filling, bytes);
    return {static_cast<std::byte*>(*allocated), bytes, filling};
  }
  void free(const Block& block) { allocator_->free(block.begin).value(); }

  hal::HostMemoryProvider memory_{hal::MemoryKind::device, std::make_shared<hal::MemoryBudget>(64 * kMiB)};
  ScriptedProgress progress_;
  std::unique_ptr<DeviceCachingAllocator> allocator_ =
      DeviceCachingAllocator::create(memory_, progress_, Config{.expandable_segments = GetParam()}).value();
};

INSTANTIATE_TEST_SUITE_P(Devices, ContentsTest, ::testing::Values(true, false), name_of_device);

// torch-xpu-ops#1324
TEST_P(ContentsTest, OutOfMemoryTouchesNoBlock) {
  std::mt19937 random(5);
  std::vector<Block> live;
  int refused = 0;
  for (int step = 0; step < 400; ++step) {
    const std::size_t bytes = 1 + random() % (random() % 3 == 0 ? 9 * kMiB : kMiB / 4);
    if (const Block block = allocate(bytes, step % 251, static_cast<std::int64_t>(random() % 2))) {
      live.push_back(block);
      continue;
    }
    ++refused;
    for (const Block& block : live) ASSERT_TRUE(block.is_intact()) << "step " << step;
    for (std::size_t count = live.size() / 2; count > 0; --count) {
      std::swap(live[random() % live.size()], live.back());
      free(live.back());
      live.pop_back();
    }
  }
  EXPECT_GT(refused, 5);
  for (const Block& block : live) EXPECT_TRUE(block.is_intact());
}

TEST_P(ContentsTest, ThreadsThatGrowOneArenaShareNoBlock) {
  std::atomic<int> broken{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      std::vector<Block> live;
      for (int step = 0; step < 600; ++step) {
        if (const Block block = allocate(1 + random() % (random() % 8 == 0 ? 3 * kMiB : 9'000), thread * 50 + step % 50))
          live.push_back(block);
        if (live.size() < 6) continue;
        std::swap(live[random() % live.size()], live.back());
        broken += live.back().is_intact() ? 0 : 1;
        free(live.back());
        live.pop_back();
        if (step % 100 == 0) allocator_->empty_cache();
      }
      for (const Block& block : live) free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(allocator_->statistics().allocation.all.current, 0);
}

// --- Pinned memory

TEST(HostPitfalls, ABlockIsPendingUntilItIsNotWhicheverWayItComesBack) {
  ScriptedProgress progress;
  WatchedProvider provider(8 * kMiB);
  HostCachingAllocator allocator(provider, progress);
  const StreamRef stream = progress.stream(1);
  const auto free_used = [&](std::size_t bytes) {
    void* const block = allocator.allocate(bytes).value();
    EXPECT_TRUE(allocator.record_use(block, stream));
    allocator.free(block).value();
    EXPECT_EQ(allocator.statistics().pending_bytes.current, static_cast<std::int64_t>(bytes));
    EXPECT_EQ(allocator.statistics().allocated_bytes.current, 0);
  };
  free_used(2 * kMiB);
  progress.finish_at_once(stream);
  allocator.free(allocator.allocate(2 * kMiB).value()).value();  // by its next owner
  EXPECT_EQ(allocator.statistics().pending_bytes.current, 0);
  free_used(3 * kMiB);
  allocator.empty_cache();
  EXPECT_EQ(allocator.statistics().pending_bytes.current, 0);
  EXPECT_EQ(allocator.statistics().reserved_bytes.current, 0);
  free_used(5 * kMiB);
  allocator.free(allocator.allocate(7 * kMiB).value()).value();  // by somebody who needs the room
  const HostStatistics now = allocator.statistics();
  EXPECT_EQ(now.pending_bytes.current, 0);
  EXPECT_EQ(now.allocated_bytes.current, 0);
  EXPECT_EQ(now.allocated_bytes.allocated, now.allocated_bytes.freed);
  EXPECT_EQ(now.reserved_bytes.current, static_cast<std::int64_t>(7 * kMiB));
}

}  // namespace
}  // namespace xpu::memory
