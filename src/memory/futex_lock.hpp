#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"

namespace xpu::memory {

/// The lock of an arena, and of pinned memory, where a mutex would be a third of the cost of an allocation. Spins for a while, then sleeps.
/// (The three states are those of Drepper, "Futexes Are Tricky".)
class XPU_THREAD_ATTRIBUTE(capability("mutex")) FutexLock {
 public:
  FutexLock() = default;
  FutexLock(const FutexLock&) = delete;
  FutexLock& operator=(const FutexLock&) = delete;

  [[gnu::always_inline]] void lock() noexcept XPU_ACQUIRE() {
    std::uint32_t free = kFree;
    if (word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) [[likely]]
      return;
    lock_slowly();
  }
  [[nodiscard]] bool try_lock() noexcept XPU_TRY_ACQUIRE(true) {
    std::uint32_t free = kFree;
    return word_.load(std::memory_order_relaxed) == kFree && word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire);
  }
  [[gnu::always_inline]] void unlock() noexcept XPU_RELEASE() {
    if (word_.exchange(kFree, std::memory_order_release) == kHeldWithSleepers) [[unlikely]]
      syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kHeldWithSleepers = 2;
  static constexpr int kSpins = 80;

  [[gnu::cold, gnu::noinline]] void lock_slowly() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
    for (int spin = 0; spin < kSpins; ++spin) {
      relax();
      if (try_lock()) return;
    }
    while (word_.exchange(kHeldWithSleepers, std::memory_order_acquire) != kFree) {
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, kHeldWithSleepers, nullptr, nullptr, 0);
    }
  }
  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<std::uint32_t> word_{kFree};
};

class XPU_THREAD_ATTRIBUTE(scoped_lockable) FutexLockGuard {
 public:
  [[gnu::always_inline]] explicit FutexLockGuard(FutexLock& lock) noexcept XPU_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  [[gnu::always_inline]] ~FutexLockGuard() XPU_RELEASE() { lock_.unlock(); }
  FutexLockGuard(const FutexLockGuard&) = delete;
  FutexLockGuard& operator=(const FutexLockGuard&) = delete;

 private:
  FutexLock& lock_;
};

}  // namespace xpu::memory
