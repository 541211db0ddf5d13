#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "xpu/base/clock.hpp"

/// Sleeping on a word. Not std::atomic::wait: that has no time limit, and spins and yields for a while of its own before it sleeps.
namespace xpu::drivers::host {

inline constexpr std::uint64_t kNoDeadline = UINT64_MAX;

/// Sleeps while the word is `expected`, until `futex_wake` or the deadline (`now_ns()`); may return early for no reason.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t deadline_ns = kNoDeadline) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  timespec limit{};
  if (deadline_ns != kNoDeadline) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return;
    limit.tv_sec = static_cast<time_t>((deadline_ns - now) / 1'000'000'000u);
    limit.tv_nsec = static_cast<long>((deadline_ns - now) % 1'000'000'000u);
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, deadline_ns == kNoDeadline ? nullptr : &limit, nullptr, 0);
}

/// Wakes up to `count` threads that sleep on the word. The word may be gone by now: at worst somebody wakes early.
inline void futex_wake(std::atomic<std::uint32_t>& word, std::uint32_t count = INT_MAX) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, std::min<std::uint32_t>(count, INT_MAX), nullptr, nullptr, 0);
}

inline void relax_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Asks again and again for at most `limit_ns`; whether the answer became true.
template <typename Predicate>
bool spin_until(Predicate&& is_true, std::uint64_t limit_ns) noexcept {
  if (is_true()) return true;
  if (limit_ns == 0) return false;
  const std::uint64_t end_ns = now_ns() + limit_ns;
  do {
    for (int round = 0; round < 16; ++round) {
      relax_processor();
      if (is_true()) return true;
    }
  } while (now_ns() < end_ns);
  return false;
}

}  // namespace xpu::drivers::host
