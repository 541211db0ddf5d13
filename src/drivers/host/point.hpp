#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/mutex.hpp"

namespace xpu::drivers::host {

class PointPool;
class QueueState;

/// One recording of an event: a point in the order of a queue, complete for good once the queue has reached it. An event that is recorded
/// again gets another point, so whoever waits keeps the one of its time. Counted, and recycled in the pool that it came from. Thread-safe.
class Point {
 public:
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  bool is_complete() const noexcept { return word_.load(std::memory_order_acquire) == kComplete; }
  /// Requires is_complete().
  std::uint64_t ticks() const noexcept { return ticks_; }

  /// Returns when it is complete; `spin_ns` is how long to ask before sleeping.
  void wait(std::uint64_t spin_ns) noexcept;

  /// Once per recording. The queues that wait for it, linked by `QueueState::next`: the caller has to resume each of them.
  [[nodiscard]] QueueState* complete(std::uint64_t ticks) noexcept XPU_EXCLUDES(mutex_);

  /// False when the point is complete. Otherwise the right to run the queue belongs to the point from now on, and the caller must not touch
  /// the queue any more.
  [[nodiscard]] bool add_waiter(QueueState& queue) noexcept XPU_EXCLUDES(mutex_);
  /// True: the queue was waiting, and the right to run it is the caller's.
  [[nodiscard]] bool remove_waiter(QueueState& queue) noexcept XPU_EXCLUDES(mutex_);

 private:
  friend class PointPool;
  friend class PointRef;
  static constexpr std::uint32_t kPending = 0, kPendingWithSleeper = 1, kComplete = 2;

  explicit Point(PointPool& pool) noexcept : pool_(pool) {}

  PointPool& pool_;
  std::atomic<std::uint32_t> reference_count_{0};
  std::atomic<std::uint32_t> word_{kComplete};
  std::uint64_t ticks_ = 0;  // written before word_ says complete
  base::Mutex mutex_;
  QueueState* waiters_ XPU_GUARDED_BY(mutex_) = nullptr;
  Point* next_free_ = nullptr;  // of the pool
};

/// A counted pointer to a point, or null.
class PointRef {
 public:
  PointRef() noexcept = default;
  PointRef(const PointRef& other) noexcept : point_(other.point_) {
    if (point_ != nullptr) point_->reference_count_.fetch_add(1, std::memory_order_relaxed);
  }
  PointRef(PointRef&& other) noexcept : point_(std::exchange(other.point_, nullptr)) {}
  PointRef& operator=(PointRef other) noexcept {
    std::swap(point_, other.point_);
    return *this;
  }
  ~PointRef();

  Point* operator->() const noexcept { return point_; }
  Point* get() const noexcept { return point_; }
  explicit operator bool() const noexcept { return point_ != nullptr; }

 private:
  friend class PointPool;
  explicit PointRef(Point* point) noexcept : point_(point) {}
  Point* point_ = nullptr;
};

/// Where points come from and return to: recording an event allocates nothing once as many points exist as are in flight. Thread-safe.
/// Outlives its points.
class PointPool {
 public:
  PointPool() = default;
  ~PointPool();
  PointPool(const PointPool&) = delete;
  PointPool& operator=(const PointPool&) = delete;

  /// A pending point.
  PointRef take() XPU_EXCLUDES(mutex_);

 private:
  friend class PointRef;
  void give_back(Point* point) noexcept XPU_EXCLUDES(mutex_);

  base::Mutex mutex_;
  Point* free_ XPU_GUARDED_BY(mutex_) = nullptr;
};

inline PointRef::~PointRef() {
  if (point_ != nullptr && point_->reference_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) point_->pool_.give_back(point_);
}

}  // namespace xpu::drivers::host
