#include "drivers/host/worker_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace xpu::drivers::host {
namespace {

std::shared_ptr<WorkerPool> started_pool(std::uint32_t runners, std::uint32_t processors) {
  auto pool = std::make_shared<WorkerPool>(runners, processors);
  EXPECT_TRUE(pool->ensure_started());
  return pool;
}

/// Whether each of `count` was covered once by parts of at least `least`.
bool covers_once(WorkerPool& pool, std::uint64_t count, std::uint64_t least) {
  std::vector<std::atomic<int>> seen(count);
  std::atomic<bool> are_parts_large{true};
  pool.spread(count, least, [&](std::uint64_t first, std::uint64_t last) noexcept {
    if (last - first < least && last != count) are_parts_large = false;
    for (std::uint64_t index = first; index < last; ++index) ++seen[index];
  });
  return are_parts_large && std::all_of(seen.begin(), seen.end(), [](const std::atomic<int>& times) { return times == 1; });
}

TEST(WorkerPoolTest, ALoopIsCoveredOnceWhateverItsSize) {
  for (const std::uint32_t processors : {1u, 2u, 5u}) {
    const auto pool = started_pool(4, processors);
    for (const std::uint64_t count : {0u, 1u, 2u, 7u, 100u, 10'001u}) {
      for (const std::uint64_t least : {0u, 1u, 33u, 20'000u}) {
        EXPECT_TRUE(covers_once(*pool, count, least)) << count << " in parts of " << least << " on " << processors;
      }
    }
    pool->stop();
  }
}

TEST(WorkerPoolTest, LoopsOfSeveralThreadsShareTheHelpers) {
  const auto pool = started_pool(2, 3);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) good += covers_once(*pool, 200, 1) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 300);
  pool->stop();
}

TEST(WorkerPoolTest, AHelperTakesPartInALoop) {
  const auto pool = started_pool(2, 2);
  std::atomic<int> inside{0};
  // Two parts that wait for each other: with one thread this never ends.
  pool->spread(2, 1, [&](std::uint64_t first, std::uint64_t last) noexcept {
    if (last - first == 2) {
      inside = 2;  // one part only: not what was asked for
      ADD_FAILURE();
      return;
    }
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 2);
  pool->stop();
}

TEST(WorkerPoolTest, StoppingTwiceAndWithoutAStartIsNothing) {
  const auto pool = std::make_shared<WorkerPool>(4, 2);
  pool->stop();
  pool->stop();
  const auto started = started_pool(4, 2);
  started->stop();
  started->stop();
}

}  // namespace
}  // namespace xpu::drivers::host
