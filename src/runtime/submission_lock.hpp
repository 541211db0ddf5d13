#pragma once

#include <atomic>
#include <cstdint>

namespace xpu::runtime {

/// Orders the submissions of one stream. A thread that holds it may take it again: a driver may run a host function within the submitting
/// call, and that function may submit to its own stream.
///
/// One word, the address of a variable of the thread that holds it: a launch cannot afford a mutex and the question who holds it.
class SubmissionLock {
 public:
  SubmissionLock() = default;
  SubmissionLock(const SubmissionLock&) = delete;
  SubmissionLock& operator=(const SubmissionLock&) = delete;

  enum class Attempt { taken, held_here, held_elsewhere };
  Attempt try_lock() noexcept {
    const void* const me = this_thread();
    const void* owner = nullptr;
    if (owner_.compare_exchange_strong(owner, me, std::memory_order_acquire)) return Attempt::taken;
    return owner == me ? Attempt::held_here : Attempt::held_elsewhere;
  }
  /// True when it was taken; false when this thread already holds it.
  bool lock() noexcept {
    const void* const me = this_thread();
    const void* owner = nullptr;
    if (owner_.compare_exchange_strong(owner, me, std::memory_order_acquire)) [[likely]]
      return true;
    if (owner == me) return false;
    lock_slowly(me);
    return true;
  }
  void unlock() noexcept {
    owner_.store(nullptr, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      owner_.notify_one();
  }

 private:
  static const void* this_thread() noexcept {
    static constinit thread_local char t_address __attribute__((tls_model("initial-exec"))) = 0;
    return &t_address;
  }
  [[gnu::cold, gnu::noinline]] void lock_slowly(const void* me) noexcept {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    const void* owner = nullptr;
    while (!owner_.compare_exchange_strong(owner, me, std::memory_order_seq_cst)) {
      owner_.wait(owner, std::memory_order_relaxed);
      owner = nullptr;
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::atomic<const void*> owner_{nullptr};
  std::atomic<std::uint32_t> waiters_{0};
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

/// For a submission that can be left out.
class TryToSubmit {
 public:
  explicit TryToSubmit(SubmissionLock& lock) noexcept : lock_(lock), attempt_(lock.try_lock()) {}
  ~TryToSubmit() {
    if (attempt_ == SubmissionLock::Attempt::taken) lock_.unlock();
  }
  TryToSubmit(const TryToSubmit&) = delete;
  TryToSubmit& operator=(const TryToSubmit&) = delete;

  bool may_submit() const noexcept { return attempt_ != SubmissionLock::Attempt::held_elsewhere; }

 private:
  SubmissionLock& lock_;
  const SubmissionLock::Attempt attempt_;
};

}  // namespace xpu::runtime
