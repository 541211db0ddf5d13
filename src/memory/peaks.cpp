#include "memory/peaks.hpp"

#include <algorithm>
#include <vector>

namespace xpu::memory {
namespace {

struct Holder {
  Arena* arena;
  MetricTable<std::int64_t> value, allowance;

  std::int64_t unused(std::size_t row, std::size_t metric) const noexcept {
    return std::max<std::int64_t>(allowance[row][metric] - value[row][metric], 0);
  }
};

std::vector<Holder> look(const ArenaTable& arenas) {
  std::vector<Holder> all;
  all.reserve(arenas.count());
  arenas.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    arena.take_remote_frees();
    Holder& holder = all.emplace_back(Holder{&arena, {}, arena.totals().allowance()});
    for (std::size_t row = 0; row < kPoolRows; ++row) {
      for (std::size_t metric = 0; metric < kMetrics; ++metric) holder.value[row][metric] = arena.value(row, metric);
    }
  });
  return all;
}

void set_allowances(const std::vector<Holder>& all) {
  for (const Holder& holder : all) {
    const FutexLockGuard lock(holder.arena->lock);
    holder.arena->totals().set_allowance(holder.allowance);
  }
}

}  // namespace

void Peaks::look_at_all(const ArenaTable& arenas, const Arena& exceeding) {
  const base::MutexLock lock(mutex_);
  std::vector<Holder> all = look(arenas);
  for (std::size_t row = 0; row < kPoolRows; ++row) {
    for (std::size_t metric = 0; metric < kMetrics; ++metric) {
      std::int64_t total = 0, kept = 0;
      for (const Holder& holder : all) {
        total += holder.value[row][metric];
        // Half of it: giving all away would make the others come next.
        if (holder.arena != &exceeding) kept += holder.unused(row, metric) / 2;
      }
      std::int64_t& peak = peaks_[row][metric];
      peak = std::max(peak, total);
      const bool may_keep = kept <= peak - total;
      for (Holder& holder : all) {
        const std::int64_t given = holder.arena == &exceeding ? peak - total - (may_keep ? kept : 0)
                                   : may_keep                 ? holder.unused(row, metric) / 2
                                                              : 0;
        holder.allowance[row][metric] = holder.value[row][metric] + given;
      }
    }
  }
  set_allowances(all);
}

MetricTable<std::int64_t> Peaks::values(const MetricTable<std::int64_t>& seen) {
  const base::MutexLock lock(mutex_);
  for (std::size_t row = 0; row < kPoolRows; ++row) {
    for (std::size_t metric = 0; metric < kMetrics; ++metric) peaks_[row][metric] = std::max(peaks_[row][metric], seen[row][metric]);
  }
  return peaks_;
}

void Peaks::reset(const ArenaTable& arenas) {
  const base::MutexLock lock(mutex_);
  std::vector<Holder> all = look(arenas);
  peaks_ = {};
  for (Holder& holder : all) {
    holder.allowance = holder.value;
    for (std::size_t row = 0; row < kPoolRows; ++row) {
      for (std::size_t metric = 0; metric < kMetrics; ++metric) peaks_[row][metric] += holder.value[row][metric];
    }
  }
  set_allowances(all);
}

}  // namespace xpu::memory
