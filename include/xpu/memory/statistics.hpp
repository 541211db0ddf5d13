#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "xpu/base/export.hpp"

namespace xpu::memory {

/// One sum. `peak`, and `allocated` and `freed`, all that was ever added and taken away, count since they were last reset.
struct StatisticsCounter {
  std::int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  bool operator==(const StatisticsCounter&) const = default;
};

/// The same sum for all memory and for that of the two pools: requests of up to 1 MiB, and larger ones.
struct StatisticsByPool {
  StatisticsCounter all, small_pool, large_pool;
  bool operator==(const StatisticsByPool&) const = default;
};

/// What `torch.xpu.memory_stats` knows, by the same names: 122 numbers, all of them always there.
struct DeviceStatistics {
  StatisticsByPool allocation, segment, active, inactive_split;
  StatisticsByPool allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  StatisticsCounter oversize_allocations, oversize_segments;
  std::int64_t num_alloc_retries = 0;     ///< Allocations that took memory back from the cache before they succeeded or failed.
  std::int64_t num_ooms = 0;              ///< Allocations that failed for want of memory.
  std::int64_t num_sync_all_streams = 0;  ///< Allocations that waited for streams whose work held memory back.
  std::int64_t num_device_alloc = 0, num_device_free = 0;  ///< Calls of the driver that take or give memory.
  std::int64_t max_split_size = -1;                        ///< The option, -1 = none.

  /// Calls `visit` with "allocated_bytes.all.current" and so on, sorted by key.
  XPU_EXPORT void for_each(const std::function<void(std::string_view key, std::int64_t value)>& visit) const;
  bool operator==(const DeviceStatistics&) const = default;
};

}  // namespace xpu::memory
