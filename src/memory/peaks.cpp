#include "memory/peaks.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace xpu::memory {
namespace {

/// One pool of one arena.
struct Holder {
  Arena* arena;
  Pool pool;
  std::array<std::int64_t, kMetrics> value, allowance;

  std::int64_t unused(std::size_t metric) const noexcept { return std::max<std::int64_t>(allowance[metric] - value[metric], 0); }
};

std::vector<Holder> look(const ArenaTable& arenas) {
  std::vector<Holder> all;
  all.reserve(2 * arenas.count());
  arenas.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    for (const Pool pool : {kSmallPool, kLargePool}) {
      Holder& holder = all.emplace_back(Holder{&arena, pool, {}, arena.totals().allowance()[pool]});
      for (std::size_t metric = 0; metric < kMetrics; ++metric) holder.value[metric] = arena.value(pool, metric);
    }
  });
  return all;
}

/// As `look` made them: two of each arena, in order.
void set_allowances(const std::vector<Holder>& all) {
  for (std::size_t index = 0; index < all.size(); index += 2) {
    const FutexLockGuard lock(all[index].arena->lock);
    all[index].arena->totals().set_allowance({all[index].allowance, all[index + 1].allowance});
  }
}

}  // namespace

void Peaks::look_at_all(const ArenaTable& arenas, const Arena& exceeding, Pool pool) {
  const base::MutexLock lock(mutex_);
  std::vector<Holder> all = look(arenas);
  for (std::size_t metric = 0; metric < kMetrics; ++metric) {
    std::array<std::int64_t, kPoolRows> unused{}, kept{};
    for (const Holder& holder : all) {
      unused[holder.pool] -= holder.value[metric];
      unused[kAllPools] -= holder.value[metric];
      if (holder.arena == &exceeding && holder.pool == pool) continue;
      // Half of it: giving all away would make the others come next.
      kept[holder.pool] += holder.unused(metric) / 2;
      kept[kAllPools] += holder.unused(metric) / 2;
    }
    for (std::size_t row = 0; row < kPoolRows; ++row) {
      std::int64_t& peak = peaks_[row][metric];
      peak = std::max(peak, -unused[row]);
      unused[row] += peak;
    }
    const bool may_keep =
        kept[kSmallPool] <= unused[kSmallPool] && kept[kLargePool] <= unused[kLargePool] && kept[kAllPools] <= unused[kAllPools];
    if (!may_keep) kept = {};
    for (Holder& holder : all) {
      const bool is_exceeding = holder.arena == &exceeding && holder.pool == pool;
      const std::int64_t given = is_exceeding ? std::min(unused[pool] - kept[pool], unused[kAllPools] - kept[kAllPools])
                                 : may_keep   ? holder.unused(metric) / 2
                                              : 0;
      holder.allowance[metric] = holder.value[metric] + given;
    }
  }
  set_allowances(all);
}

void Peaks::reset(const ArenaTable& arenas) {
  const base::MutexLock lock(mutex_);
  std::vector<Holder> all = look(arenas);
  peaks_ = {};
  for (Holder& holder : all) {
    holder.allowance = holder.value;
    for (std::size_t metric = 0; metric < kMetrics; ++metric) {
      peaks_[holder.pool][metric] += holder.value[metric];
      peaks_[kAllPools][metric] += holder.value[metric];
    }
  }
  set_allowances(all);
}

}  // namespace xpu::memory
