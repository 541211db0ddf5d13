#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "memory/totals.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/memory/statistics.hpp"

namespace xpu::memory {

/// Whether memory can really be mapped, and taken away again.
Result<> probe_mapping(hal::MemoryProvider& memory);

/// What an allocator takes from the device and gives back, within a limit of its own: whether there is enough is never found out by trying
/// the driver. Thread-safe; calls the driver with no lock held.
class DeviceMemory {
 public:
  struct Sums {
    std::array<StatisticsCounter, kPoolRows> segments, reserved_bytes;
    StatisticsCounter oversize_segments;
    std::int64_t device_allocs = 0, device_frees = 0;  ///< Calls of the driver.
  };

  /// Segments of `oversize_bytes` and more are counted as such.
  DeviceMemory(hal::MemoryProvider& provider, std::uint64_t total_bytes, std::size_t oversize_bytes) noexcept;

  /// The granularity of mapping: at least 2 MiB, so that pages are not small change.
  std::size_t page_bytes() const noexcept { return page_bytes_; }
  std::uint64_t total_bytes() const noexcept { return total_bytes_; }
  /// At most so much is taken from now on. What is taken already stays.
  void set_limit(std::uint64_t bytes) noexcept { limit_bytes_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
  /// What the device says, and an estimate where it says nothing.
  hal::MemoryInfo info() const;
  std::uint64_t reserved_bytes() const noexcept { return reserved_bytes_.load(std::memory_order_relaxed); }

  /// Addresses without memory.
  Result<void*> reserve(std::size_t bytes) { return provider_.reserve(bytes); }
  void unreserve(void* address, std::size_t bytes) noexcept { provider_.unreserve(address, bytes); }
  /// Error out_of_device_memory beyond the limit.
  Result<> map(std::uint64_t address, std::size_t bytes, Pool pool) XPU_EXCLUDES(mutex_);
  void unmap(std::uint64_t address, std::size_t bytes, Pool pool) noexcept XPU_EXCLUDES(mutex_);
  Result<std::uint64_t> allocate_segment(std::size_t bytes, Pool pool) XPU_EXCLUDES(mutex_);
  void free_segment(std::uint64_t address, std::size_t bytes, Pool pool) noexcept XPU_EXCLUDES(mutex_);

  Sums sums() const XPU_EXCLUDES(mutex_);
  void reset_peaks() XPU_EXCLUDES(mutex_);
  void reset_accumulated() XPU_EXCLUDES(mutex_);

 private:
  Result<> take_budget(std::size_t bytes);
  void count(std::size_t bytes, Pool pool, bool is_segment, bool is_taken) XPU_EXCLUDES(mutex_);

  hal::MemoryProvider& provider_;
  const std::uint64_t total_bytes_;
  const std::size_t oversize_bytes_;
  const std::size_t page_bytes_;
  std::atomic<std::uint64_t> limit_bytes_;
  std::atomic<std::uint64_t> reserved_bytes_{0};
  mutable base::Mutex mutex_;
  Sums sums_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::memory
