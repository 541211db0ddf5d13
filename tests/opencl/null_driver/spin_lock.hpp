#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace xpu::null_driver {

/// Counts the forks between the first process and this one, from 1. Written only by a forked child while it has one thread.
inline std::uint32_t fork_generation = 1;

/// A lock for critical sections of a few instructions, which may be held by another thread while the process forks.
///
/// The word holds the generation of the holder's process. In a forked child no thread of the parent exists, so a word with an older
/// generation is free: the child can never wait for a thread that it does not have. What such a lock guards must be usable at any point of
/// a critical section.
class SpinLock {
 public:
  void lock() noexcept {
    std::uint32_t seen = 0;
    while (!word_.compare_exchange_weak(seen, fork_generation, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (seen == fork_generation) {
        sched_yield();
        seen = 0;
      }
    }
  }
  void unlock() noexcept { word_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace xpu::null_driver
