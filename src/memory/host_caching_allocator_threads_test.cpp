#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "memory/test_support/scripted_progress.hpp"
#include "memory/test_support/watched_provider.hpp"
#include "xpu/memory/host_caching_allocator.hpp"

namespace xpu::memory {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

/// What one thread allocated and any thread may free.
class Exchange {
 public:
  void put(std::pair<void*, std::size_t> block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
  }
  std::pair<void*, std::size_t> take() {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return {};
    const auto block = blocks_.front();
    blocks_.pop_front();
    return block;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<void*, std::size_t>> blocks_;
};

TEST(HostCachingAllocatorThreads, HandNobodyTheMemoryOfAnother) {
  ScriptedProgress progress;
  WatchedProvider provider;
  HostCachingAllocator allocator(provider, progress, {.max_cached_bytes = 4 * kMebibyte});
  std::vector<StreamRef> streams;
  for (std::int64_t id = 0; id < 3; ++id) streams.push_back(progress.stream(id));
  Exchange exchange;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int i = 0; i < 1500; ++i) {
        const std::size_t bytes = 1 + random() % (std::size_t{1} << (4 + random() % 15));
        const Result<void*> result = allocator.allocate(bytes);
        if (!result) {
          ++wrong;
          continue;
        }
        // Written by this thread, compared by the one that frees it: whoever else had the block would be seen, and be a race.
        std::memset(*result, static_cast<int>(bytes % 251), bytes);
        const StreamRef& stream = streams[random() % streams.size()];
        if (random() % 2 == 0 && !allocator.record_use(*result, stream)) ++wrong;
        exchange.put({*result, bytes});
        if (random() % 8 == 0) progress.reach_all(stream);
        if (i % 500 == 0) allocator.empty_cache();
        const auto [pointer, size] = exchange.take();
        if (pointer == nullptr) continue;
        const auto* const content = static_cast<const unsigned char*>(pointer);
        for (std::size_t at = 0; at < size; ++at) wrong += content[at] == size % 251 ? 0 : 1;
        if (!allocator.free(pointer)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);

  for (auto block = exchange.take(); block.first != nullptr; block = exchange.take()) EXPECT_TRUE(allocator.free(block.first));
  for (const StreamRef& stream : streams) progress.finish_at_once(stream);
  allocator.empty_cache();
  const HostStatistics now = allocator.statistics();
  EXPECT_EQ(now.allocation.current, 0);
  EXPECT_EQ(now.pending_bytes.current, 0);
  EXPECT_EQ(now.reserved_bytes.current, 0);
  EXPECT_EQ(now.allocation.allocated, 6'000);
  EXPECT_EQ(provider.taken_bytes(), 0u);
}

// Each thread holds one block at a time, so there is always room for the next one: in another thread's cache, in a pending block, or on its
// way back to the driver.
TEST(HostCachingAllocatorThreads, AreNeverRefusedWhatTheOthersHaveLetGo) {
  constexpr std::size_t kThreads = 4;
  ScriptedProgress progress;
  WatchedProvider provider(kThreads * kMebibyte);
  HostCachingAllocator allocator(provider, progress);
  const StreamRef stream = progress.stream(1);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < 3000; ++i) {
        const Result<void*> result = allocator.allocate(kMebibyte / 16 * (9 + (thread + i) % 8));
        if (!result) {
          ++refused;
          continue;
        }
        if (i % 3 == 0) allocator.record_use(*result, stream);
        if (!allocator.free(*result)) ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace xpu::memory
