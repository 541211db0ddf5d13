#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "memory/block_sizes.hpp"
#include "memory/counter.hpp"
#include "xpu/memory/statistics.hpp"

namespace xpu::memory {

/// The statistics of an allocator without arenas: counted call by call, under a lock. Thread-safe.
class CallStatistics {
 public:
  void note_allocated(std::size_t requested_bytes, std::size_t bytes) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    change(&DeviceStatistics::allocation, bytes, 1);
    change(&DeviceStatistics::allocated_bytes, bytes, signed_of(bytes));
    change(&DeviceStatistics::requested_bytes, bytes, signed_of(requested_bytes));
    change(&DeviceStatistics::active, bytes, 1);
    change(&DeviceStatistics::active_bytes, bytes, signed_of(bytes));
  }
  void note_freed(std::size_t requested_bytes, std::size_t bytes) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    change(&DeviceStatistics::allocation, bytes, -1);
    change(&DeviceStatistics::allocated_bytes, bytes, -signed_of(bytes));
    change(&DeviceStatistics::requested_bytes, bytes, -signed_of(requested_bytes));
  }
  /// No stream uses a block any more that was freed.
  void note_completed(std::size_t bytes) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    change(&DeviceStatistics::active, bytes, -1);
    change(&DeviceStatistics::active_bytes, bytes, -signed_of(bytes));
  }
  /// `bytes` of the block decide the row, `reserved_bytes` were taken from the device for it.
  void note_taken(std::size_t bytes, std::size_t reserved_bytes) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    change(&DeviceStatistics::segment, bytes, 1);
    change(&DeviceStatistics::reserved_bytes, bytes, signed_of(reserved_bytes));
    ++sums_.num_device_alloc;
  }
  void note_given_back(std::size_t bytes, std::size_t reserved_bytes) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    change(&DeviceStatistics::segment, bytes, -1);
    change(&DeviceStatistics::reserved_bytes, bytes, -signed_of(reserved_bytes));
    ++sums_.num_device_free;
  }
  void note_retry() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    ++sums_.num_alloc_retries;
  }
  void note_out_of_memory() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    ++sums_.num_ooms;
  }

  DeviceStatistics value() const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return sums_;
  }
  void reset_peaks() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    for_each_counter([](StatisticsCounter& counter) { memory::reset_peak(counter); });
  }
  void reset_accumulated() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    for_each_counter([](StatisticsCounter& counter) { memory::reset_accumulated(counter); });
    sums_.num_alloc_retries = sums_.num_ooms = 0;
  }

 private:
  using Metric = StatisticsByPool DeviceStatistics::*;
  static constexpr std::array<Metric, 7> kMetrics = {&DeviceStatistics::allocation,     &DeviceStatistics::segment,
                                                     &DeviceStatistics::active,         &DeviceStatistics::allocated_bytes,
                                                     &DeviceStatistics::reserved_bytes, &DeviceStatistics::active_bytes,
                                                     &DeviceStatistics::requested_bytes};

  static std::int64_t signed_of(std::size_t bytes) noexcept { return static_cast<std::int64_t>(bytes); }
  void change(Metric metric, std::size_t block_bytes, std::int64_t amount) XPU_REQUIRES(mutex_) {
    StatisticsByPool& rows = sums_.*metric;
    for (StatisticsCounter* const counter : {&rows.all, is_small(block_bytes) ? &rows.small_pool : &rows.large_pool}) {
      if (amount >= 0) {
        add(*counter, amount);
      } else {
        subtract(*counter, -amount);
      }
    }
  }
  template <typename Visit>
  void for_each_counter(Visit&& visit) XPU_REQUIRES(mutex_) {
    for (const Metric metric : kMetrics) {
      StatisticsByPool& rows = sums_.*metric;
      for (StatisticsCounter* const counter : {&rows.all, &rows.small_pool, &rows.large_pool}) visit(*counter);
    }
  }

  mutable base::Mutex mutex_;
  DeviceStatistics sums_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::memory
