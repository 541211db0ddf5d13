#include "drivers/host/event.hpp"

#include <utility>

namespace xpu::drivers::host {

Result<> HostEvent::synchronize_blocking() {
  if (const PointRef point = pending()) point->wait(spin_ns_);
  return {};
}

Result<std::uint64_t> HostEvent::ticks() {
  is_complete();  // takes the tick out of the point
  return ticks_.load(std::memory_order_relaxed);
}

PointRef HostEvent::pending() const noexcept {
  if (!has_point_.load(std::memory_order_acquire)) return {};
  const base::MutexLock lock(mutex_);
  return point_ && !point_->is_complete() ? point_ : PointRef();
}

void HostEvent::capture(PointRef point) noexcept {
  const base::MutexLock lock(mutex_);
  point_ = std::move(point);
  has_point_.store(static_cast<bool>(point_), std::memory_order_release);
}

bool HostEvent::is_complete_slowly() noexcept {
  const base::MutexLock lock(mutex_);
  if (!point_) return true;
  if (!point_->is_complete()) return false;
  ticks_.store(point_->ticks(), std::memory_order_relaxed);
  point_ = {};
  has_point_.store(false, std::memory_order_release);
  return true;
}

}  // namespace xpu::drivers::host
