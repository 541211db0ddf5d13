#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "interceptors/opencl/host_clock_search.hpp"
#include "interceptors/opencl/opencl_headers.hpp"

namespace xpu::interceptors::opencl {

/// One command whose calls were timed more closely, to learn about the device's clock.
struct WatchedCommand {
  HostMoment enter;           ///< Just before the driver was called.
  std::uint64_t exit_ns = 0;  ///< When it returned.
};

/// Publishes what a device's clock showed when, by the first of three methods that works:
///   1. the driver's own timer (clGetDeviceAndHostTimer), read between two host times;
///   2. a host clock, when every watched command fits it;
///   3. watched commands themselves: the driver stamps QUEUED inside the submitting call.
/// While it is not known whether a host clock fits, readings are kept and published once it is. Any thread.
class DeviceClock {
 public:
  constexpr DeviceClock() noexcept = default;
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// Once, before the device is known to any other thread. `has_timer`: the driver's version has clGetDeviceAndHostTimer.
  void open(cl_device_id device, probe::Id id, bool has_timer, std::uint64_t tick_ns) noexcept;

  /// A reading at the first command (later calls do nothing but a load).
  void on_use() noexcept {
    if (!is_used_.exchange(true, std::memory_order_relaxed)) read();
  }
  bool is_used() const noexcept { return is_used_.load(std::memory_order_relaxed); }
  /// A reading now: while the device is in use, and at the end. May call the driver.
  void read() noexcept XPU_EXCLUDES(mutex_);
  /// A reading if the last one is older than kDueNs, and nobody is reading: for whoever sees the device in use. The bound of a time grows
  /// with the distance to the nearest reading, and the harvester alone comes late on a machine whose cores are all taken.
  void read_if_due() noexcept XPU_EXCLUDES(mutex_) {
    if (is_used() && is_due(now_ns())) read_unless_locked();
  }
  bool is_due(std::uint64_t now_ns) const noexcept { return now_ns - last_read_ns_.load(std::memory_order_relaxed) >= kDueNs; }
  /// A watched command ended, and is known to have.
  void observe(const WatchedCommand& command, std::uint64_t queued_ticks, std::uint64_t end_ticks) noexcept XPU_EXCLUDES(mutex_);
  /// The host clock that the device's clock is, when that is known.
  ClockDomain domain() const noexcept { return domain_.load(std::memory_order_relaxed); }

  /// In a forked child, which may never use the device: many drivers hang there, so nobody asks before it does.
  void forget_use_after_fork() noexcept { is_used_.store(false, std::memory_order_relaxed); }
  void lock_before_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void unlock_after_fork() noexcept XPU_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  enum class Method : std::uint8_t { undecided, timer, searching, host_clock, commands };
  static constexpr std::size_t kMaxKept = 128;
  static constexpr std::uint64_t kDueNs = 50'000'000;
  static constexpr int kTries = 5;

  struct Bracket {
    std::uint64_t before_ns, ticks, after_ns;
  };

  void read_unless_locked() noexcept XPU_EXCLUDES(mutex_);
  void read_now() noexcept XPU_REQUIRES(mutex_);
  /// Published and returned; after_ns is 0 when the driver has no answer.
  Bracket read_timer() noexcept XPU_REQUIRES(mutex_);
  void read_host_clock() noexcept XPU_REQUIRES(mutex_);
  void check_timer(const WatchedCommand& command, std::uint64_t queued_ticks, std::uint64_t end_ticks) noexcept XPU_REQUIRES(mutex_);
  void search(const WatchedCommand& command, std::uint64_t queued_ticks, std::uint64_t end_ticks) noexcept XPU_REQUIRES(mutex_);
  void use_host_clock() noexcept XPU_REQUIRES(mutex_);
  void use_commands() noexcept XPU_REQUIRES(mutex_);
  void keep_moment() noexcept XPU_REQUIRES(mutex_);
  void keep_bracket(const WatchedCommand& command, std::uint64_t queued_ticks) noexcept XPU_REQUIRES(mutex_);
  void publish(std::uint64_t before_ns, std::uint64_t ticks, std::uint64_t after_ns, probe::ClockMethod method) noexcept
      XPU_REQUIRES(mutex_);

  /// What was learnt while the method was not decided, the oldest first; when there is too much, every second goes.
  template <typename Element>
  struct Kept {
    Element elements[kMaxKept];
    std::size_t count = 0;

    void add(const Element& element) noexcept {
      if (count == kMaxKept) {
        for (std::size_t index = 0; index < kMaxKept / 2; ++index) elements[index] = elements[2 * index];
        count = kMaxKept / 2;
      }
      elements[count++] = element;
    }
  };

  base::Mutex mutex_;
  cl_device_id device_ = nullptr;
  probe::Id id_ = 0;
  std::uint64_t tick_ns_ XPU_GUARDED_BY(mutex_) = 1;  // the step in which the driver's stamps move
  bool has_timer_ = false;
  std::atomic<bool> is_used_{false};
  std::atomic<std::uint64_t> last_read_ns_{0};
  std::atomic<ClockDomain> domain_{ClockDomain::unknown};
  Method method_ XPU_GUARDED_BY(mutex_) = Method::undecided;
  HostClockSearch search_ XPU_GUARDED_BY(mutex_);
  std::uint32_t timer_checks_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint32_t timer_failures_ XPU_GUARDED_BY(mutex_) = 0;
  Kept<HostMoment> moments_ XPU_GUARDED_BY(mutex_) = {};
  Kept<Bracket> brackets_ XPU_GUARDED_BY(mutex_) = {};
};

}  // namespace xpu::interceptors::opencl
