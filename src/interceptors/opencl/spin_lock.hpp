#pragma once

#include <sched.h>

#include <atomic>

#include "base/mutex.hpp"

namespace xpu::interceptors::opencl {

/// Held for a few instructions and never across a call of the driver or the subscriber. base::Mutex would be a tenth of what a recorded
/// launch costs, and must not be tried by the thread that holds it, which a driver's callback inside our own query would do.
class XPU_THREAD_ATTRIBUTE(capability("mutex")) SpinLock {
 public:
  constexpr SpinLock() noexcept = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() noexcept XPU_ACQUIRE() {
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins > 32) sched_yield();
    }
  }
  [[nodiscard]] bool try_lock() noexcept XPU_TRY_ACQUIRE(true) { return !is_locked_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept XPU_RELEASE() { is_locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_locked_{false};
};

}  // namespace xpu::interceptors::opencl
