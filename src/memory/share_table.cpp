#include "memory/share_table.hpp"

#include <algorithm>

namespace xpu::memory {

std::uint64_t ShareTable::open(const MemoryRun& run) {
  static constinit std::atomic<std::uint64_t> last_id{0};
  const base::MutexLock lock(mutex_);
  const auto [known, is_new] = ids_.try_emplace({run.begin, run.end}, 0);
  if (is_new) {
    known->second = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
    shares_[known->second] = {run, 0};
  }
  if (++shares_[known->second].count == 1) open_runs_.fetch_add(1, std::memory_order_relaxed);
  return known->second;
}

bool ShareTable::close(std::uint64_t id) {
  const base::MutexLock lock(mutex_);
  const auto share = shares_.find(id);
  if (share == shares_.end() || share->second.count == 0) return false;
  if (--share->second.count == 0) open_runs_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void ShareTable::forget(const MemoryRun& run) {
  const base::MutexLock lock(mutex_);
  for (auto known = ids_.begin(); known != ids_.end();) {
    const auto& [begin, end] = known->first;
    if (end <= run.begin || begin >= run.end) {
      ++known;
      continue;
    }
    shares_.erase(known->second);
    known = ids_.erase(known);
  }
}

MemoryRun ShareTable::highest_closed(const MemoryRun& run) const {
  const base::MutexLock lock(mutex_);
  MemoryRun closed = run;
  bool is_cut = true;
  while (is_cut && !closed.is_empty()) {
    is_cut = false;
    for (const auto& [id, share] : shares_) {
      if (share.count == 0 || share.run.begin >= closed.end || share.run.end < closed.end) continue;
      closed.end = share.run.begin;
      is_cut = true;
    }
  }
  for (const auto& [id, share] : shares_) {
    if (share.count != 0 && share.run.end <= closed.end) closed.begin = std::max(closed.begin, share.run.end);
  }
  return closed;
}

}  // namespace xpu::memory
