#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "memory/arena_table.hpp"
#include "memory/totals.hpp"

namespace xpu::memory {

/// The highest values that sums over all arenas had; see `Totals`. Exact as long as one thread allocates at a time; what other threads do
/// in the very moment in which the arenas are looked at, one after another, may be missing.
class Peaks {
 public:
  /// Looks at all arenas because this one exceeds an allowance, and gives it what the others do not need soon. With no arena's lock held.
  void look_at_all(const ArenaTable& arenas, const Arena& exceeding) XPU_EXCLUDES(mutex_);
  /// The peaks are what is there now.
  void reset(const ArenaTable& arenas) XPU_EXCLUDES(mutex_);
  /// After somebody saw these sums: what streams are done with grows what is free without an allocation that would ask.
  MetricTable<std::int64_t> values(const MetricTable<std::int64_t>& seen) XPU_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  MetricTable<std::int64_t> peaks_ XPU_GUARDED_BY(mutex_){};
};

}  // namespace xpu::memory
