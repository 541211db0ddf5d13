#include "base/mutex.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <type_traits>
#include <vector>

namespace xpu::base {
namespace {

static_assert(std::is_trivially_destructible_v<Mutex>, "a static mutex must outlive every static destructor");

TEST(MutexTest, OneHolderAtATime) {
  Mutex mutex;
  long count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        const MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

TEST(MutexTest, TryLockFailsWhileAnotherThreadHoldsIt) {
  Mutex mutex;
  const MutexLock lock(mutex);
  bool taken = true;
  std::thread([&] {
    if (!mutex.try_lock()) {
      taken = false;
      return;
    }
    mutex.unlock();
  }).join();
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace xpu::base
