#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.hpp"
#include "drivers/host/driver_state.hpp"
#include "drivers/host/point.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::host {

/// While the recorded point is complete, the event holds its tick and no point: recording on an idle queue and asking afterwards take no
/// lock.
class HostEvent final : public hal::Event {
 public:
  HostEvent(std::shared_ptr<DriverState> driver, const hal::EventOptions& options) noexcept
      : driver_(std::move(driver)), is_timed_(options.timed), spin_ns_(options.blocking ? 0 : driver_->spin_ns) {}

  Result<bool> query() override { return is_complete(); }
  Result<> synchronize_blocking() override;
  Result<std::uint64_t> ticks() override;
  void* native_handle() const noexcept override { return const_cast<HostEvent*>(this); }

  bool is_timed() const noexcept { return is_timed_; }
  bool is_complete() noexcept { return !has_point_.load(std::memory_order_acquire) || is_complete_slowly(); }
  /// The captured point, or null when it is complete.
  PointRef pending() const noexcept XPU_EXCLUDES(mutex_);

  /// Captures a point that is complete.
  void capture_complete(std::uint64_t ticks) noexcept {
    if (has_point_.load(std::memory_order_acquire)) [[unlikely]] {
      capture({});
    }
    ticks_.store(ticks, std::memory_order_relaxed);
  }
  void capture(PointRef point) noexcept XPU_EXCLUDES(mutex_);

 private:
  bool is_complete_slowly() noexcept XPU_EXCLUDES(mutex_);

  const std::shared_ptr<DriverState> driver_;  // keeps the pool of the points
  const bool is_timed_;
  const std::uint64_t spin_ns_;
  std::atomic<bool> has_point_{false};  // written under the lock
  std::atomic<std::uint64_t> ticks_{0};
  mutable base::Mutex mutex_;
  PointRef point_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::drivers::host
