#pragma once

#include <atomic>

#include "base/mutex.hpp"

namespace xpu::runtime {

/// Orders the submissions of one stream. A thread that holds it may take it again: a driver may run a host function within the submitting
/// call, and that function may submit to its own stream.
class SubmissionLock {
 public:
  SubmissionLock() = default;
  SubmissionLock(const SubmissionLock&) = delete;
  SubmissionLock& operator=(const SubmissionLock&) = delete;

  /// True when it was free; false when this thread already holds it.
  bool lock() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
    const void* const me = this_thread();
    if (owner_.load(std::memory_order_relaxed) == me) return false;
    mutex_.lock();
    owner_.store(me, std::memory_order_relaxed);
    return true;
  }
  void unlock() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS {
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  static const void* this_thread() noexcept {
    static constinit thread_local char t_address = 0;
    return &t_address;
  }

  base::Mutex mutex_;
  std::atomic<const void*> owner_{nullptr};
};

class SubmissionGuard {
 public:
  explicit SubmissionGuard(SubmissionLock& lock) noexcept : lock_(lock), is_outermost_(lock.lock()) {}
  ~SubmissionGuard() {
    if (is_outermost_) lock_.unlock();
  }
  SubmissionGuard(const SubmissionGuard&) = delete;
  SubmissionGuard& operator=(const SubmissionGuard&) = delete;

 private:
  SubmissionLock& lock_;
  const bool is_outermost_;
};

}  // namespace xpu::runtime
