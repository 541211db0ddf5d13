#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/base/result.hpp"

namespace xpu::drivers::host {

class QueueState;

/// The threads of a driver, "xpu-host-0" and so on, with all signals blocked. None is started before it is needed. Thread-safe.
///
/// A worker has one of two roles at a time. As *runner* it takes the queue that has waited longest among those of the highest priority and
/// runs a bounded batch of its operations; up to `runners` at once. As *helper* it takes chunks of a loop that a runner is in; up to
/// `processors - 1` at once. Helpers come on top of the runners: however many work-groups of one kernel wait for another queue's kernel,
/// that one finds a thread. A runner never depends on helpers: it takes chunks itself until there are none.
class WorkerPool : public std::enable_shared_from_this<WorkerPool> {
 public:
  WorkerPool(std::uint32_t runners, std::uint32_t processors);
  ~WorkerPool();

  /// Starts the first worker when there is none yet; error out_of_host_memory when the system refuses. Afterwards there is always one.
  Result<> ensure_started() noexcept XPU_EXCLUDES(mutex_) {
    return has_started_.load(std::memory_order_acquire) ? Result<>() : start_first();
  }
  /// No queue is in flight any more: the workers end. Waits for them, unless it is one of them that calls.
  void stop() noexcept XPU_EXCLUDES(mutex_);

  /// The caller's right to run the queue goes to a worker.
  void schedule(QueueState& queue) noexcept XPU_EXCLUDES(mutex_);
  /// The same by a worker that looks for work next.
  void put_back(QueueState& queue) noexcept XPU_EXCLUDES(mutex_);
  /// Whether a runner of a queue of this priority, after so many operations of it, should put it back for the sake of others.
  bool should_yield(std::uint32_t priority_level, std::uint32_t operations) const noexcept {
    const std::uint32_t waiting = waiting_levels_.load(std::memory_order_relaxed);
    if (waiting == 0) [[likely]] {
      return false;
    }
    const std::uint32_t before = (1u << priority_level) - 1, same = 1u << priority_level;
    return (waiting & before) != 0 || ((waiting & same) != 0 && operations >= kBatch);
  }

  /// Calls `body(first, last)` for parts of [0, count) that cover it once, on this thread and on helpers, at least `least` at a time, and
  /// returns after the last one. `body` does not throw.
  template <typename Body>
  void spread(std::uint64_t count, std::uint64_t least, Body&& body) noexcept {
    const std::uint64_t participants = most_helpers_ + 1;
    const std::uint64_t chunk = std::max({count / (participants * kChunksPerThread), least, std::uint64_t{1}});
    if (most_helpers_ == 0 || count <= chunk) return body(std::uint64_t{0}, count);
    Loop loop;
    loop.count = count;
    loop.chunk = chunk;
    loop.body = &body;
    loop.call = [](void* held, std::uint64_t first, std::uint64_t last) {
      (*static_cast<std::remove_reference_t<Body>*>(held))(first, last);
    };
    run_loop(loop);
  }

 private:
  static constexpr std::uint32_t kBatch = 16;
  static constexpr std::uint32_t kLevels = 3;
  static constexpr std::uint64_t kChunksPerThread = 4;
  static constexpr std::uint64_t kSpinNs = 50'000;

  /// A loop in progress; on its runner's stack.
  struct Loop {
    std::uint64_t count = 0, chunk = 1;
    void* body = nullptr;
    void (*call)(void* body, std::uint64_t first, std::uint64_t last) = nullptr;
    std::atomic<std::uint64_t> next{0};
    // Under the pool's lock; `helpers` is also watched by the runner without it.
    std::uint64_t wanted_helpers = 0;
    std::atomic<std::uint32_t> helpers{0};
    bool is_listed = false;
    Loop* newer = nullptr;

    bool is_exhausted() const noexcept { return next.load(std::memory_order_relaxed) >= count; }
    void take_chunks() noexcept;
  };
  struct ReadyList {
    QueueState* first = nullptr;
    QueueState* last = nullptr;
  };

  Result<> start_first() noexcept XPU_EXCLUDES(mutex_);
  bool start_worker() noexcept XPU_REQUIRES(mutex_);
  void work() noexcept XPU_EXCLUDES(mutex_);
  void wait_for_work(bool may_spin) noexcept XPU_REQUIRES(mutex_);

  void add_ready(QueueState& queue) noexcept XPU_REQUIRES(mutex_);
  QueueState* take_ready() noexcept XPU_REQUIRES(mutex_);
  /// There is more to do than a moment ago: how many sleepers the caller has to wake once it has let go of the lock.
  std::uint32_t announce() noexcept XPU_REQUIRES(mutex_);

  void run_loop(Loop& loop) noexcept XPU_EXCLUDES(mutex_);
  Loop* join_loop() noexcept XPU_REQUIRES(mutex_);
  void leave_loop(Loop& loop) noexcept XPU_REQUIRES(mutex_);
  void unlist(Loop& loop) noexcept XPU_REQUIRES(mutex_);

  const std::uint32_t most_runners_;
  const std::uint32_t most_helpers_;
  const std::uint32_t most_spinning_;

  std::atomic<bool> has_started_{false};
  std::atomic<std::uint32_t> waiting_levels_{0};  // bit n: a queue of level n is ready; written under the lock
  std::atomic<std::uint32_t> news_{0};            // changes with every announcement: what idle workers watch and sleep on
  std::atomic<std::uint32_t> departures_{0};      // changes when the last helper leaves a loop
  std::atomic<std::uint32_t> watchers_{0};        // runners that sleep on departures_

  base::Mutex mutex_;
  ReadyList ready_[kLevels] XPU_GUARDED_BY(mutex_);
  std::uint32_t ready_count_ XPU_GUARDED_BY(mutex_) = 0;
  Loop* loops_ XPU_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t open_places_ XPU_GUARDED_BY(mutex_) = 0;  // helpers that listed loops would take beside those that they have
  std::uint32_t runners_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint32_t helpers_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint32_t spinning_ XPU_GUARDED_BY(mutex_) = 0;
  std::uint32_t sleeping_ XPU_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ XPU_GUARDED_BY(mutex_) = false;
  std::vector<pthread_t> threads_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::drivers::host
