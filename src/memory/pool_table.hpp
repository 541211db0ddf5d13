#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/memory/pool.hpp"

namespace xpu::memory {

/// The number of a pool in its allocator, part of the key of its arenas. 0 is what is in no pool of its own.
using PoolSlot = std::uint32_t;

/// The pools of one allocator. Arenas live for ever, so a number is given again: once its pool was released and nothing in it is in use.
/// What is free in it then belongs to the new pool. Thread-safe.
class PoolTable {
 public:
  struct Entry {
    PoolId id;
    PoolOptions options;
    bool is_released = false;
  };

  /// `is_idle(PoolSlot)`: whether nothing in a pool that was released is in use any more. Called without the table's lock.
  template <typename IsIdle>
  PoolSlot add(const PoolId& id, const PoolOptions& options, IsIdle&& is_idle) XPU_EXCLUDES(mutex_) {
    const std::size_t count = all().size();
    for (PoolSlot slot = 1; slot < count; ++slot) {
      if (!claim(slot, options)) continue;
      const bool is_ours = is_idle(slot);
      const base::MutexLock lock(mutex_);
      if (is_ours) {
        entries_[slot] = {id, options, false};
        return slot;
      }
      entries_[slot].is_released = true;
    }
    const base::MutexLock lock(mutex_);
    entries_.push_back({id, options, false});
    return static_cast<PoolSlot>(entries_.size() - 1);
  }
  void release(PoolSlot slot) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    entries_[slot].is_released = true;
  }
  Entry at(PoolSlot slot) const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return entries_[slot];
  }
  std::vector<Entry> all() const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return entries_;
  }

 private:
  /// Whether it was released and may be given again, and is now the caller's.
  bool claim(PoolSlot slot, const PoolOptions& options) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    Entry& entry = entries_[slot];
    // Its arenas are of one kind.
    if (!entry.is_released || entry.options.no_split != options.no_split) return false;
    entry.is_released = false;
    return true;
  }

  mutable base::Mutex mutex_;
  std::vector<Entry> entries_ XPU_GUARDED_BY(mutex_){Entry{}};
};

}  // namespace xpu::memory
