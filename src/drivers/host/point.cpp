#include "drivers/host/point.hpp"

#include "drivers/host/futex.hpp"
#include "drivers/host/queue_state.hpp"

namespace xpu::drivers::host {

void Point::wait(std::uint64_t spin_ns) noexcept {
  if (spin_until([this] { return is_complete(); }, spin_ns)) return;
  while (true) {
    std::uint32_t seen = kPending;
    if (!word_.compare_exchange_strong(seen, kPendingWithSleeper, std::memory_order_acquire) && seen == kComplete) return;
    futex_wait(word_, kPendingWithSleeper);
  }
}

QueueState* Point::complete(std::uint64_t ticks) noexcept {
  ticks_ = ticks;
  QueueState* waiters = nullptr;
  std::uint32_t before = kPending;
  {
    const base::MutexLock lock(mutex_);
    before = word_.exchange(kComplete, std::memory_order_acq_rel);
    waiters = std::exchange(waiters_, nullptr);
  }
  if (before == kPendingWithSleeper) futex_wake(word_);
  return waiters;
}

bool Point::add_waiter(QueueState& queue) noexcept {
  const base::MutexLock lock(mutex_);
  if (is_complete()) return false;
  queue.next = nullptr;
  QueueState** link = &waiters_;
  while (*link != nullptr) link = &(*link)->next;
  *link = &queue;  // at the end: they are resumed in the order in which they came
  return true;
}

bool Point::remove_waiter(QueueState& queue) noexcept {
  const base::MutexLock lock(mutex_);
  for (QueueState** link = &waiters_; *link != nullptr; link = &(*link)->next) {
    if (*link == &queue) {
      *link = std::exchange(queue.next, nullptr);
      return true;
    }
  }
  return false;
}

PointPool::~PointPool() {
  while (free_ != nullptr) delete std::exchange(free_, free_->next_free_);
}

PointRef PointPool::take() {
  Point* point = nullptr;
  {
    const base::MutexLock lock(mutex_);
    if (free_ != nullptr) point = std::exchange(free_, free_->next_free_);
  }
  if (point == nullptr) point = new Point(*this);
  point->word_.store(Point::kPending, std::memory_order_relaxed);
  point->reference_count_.store(1, std::memory_order_relaxed);
  return PointRef(point);
}

void PointPool::give_back(Point* point) noexcept {
  const base::MutexLock lock(mutex_);
  point->next_free_ = free_;
  free_ = point;
}

}  // namespace xpu::drivers::host
