#pragma once

#include <cstdint>

#include "base/mutex.hpp"
#include "memory/counter.hpp"

namespace xpu::memory {

/// Live blocks that are too large to be split, over all arenas. There are few of them. Thread-safe; under any lock of an arena.
class OversizeCount {
 public:
  void add(int direction) XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    if (direction > 0) {
      memory::add(counter_, 1);
    } else {
      subtract(counter_, 1);
    }
  }
  StatisticsCounter value() const XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    return counter_;
  }
  void reset_peak() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    memory::reset_peak(counter_);
  }
  void reset_accumulated() XPU_EXCLUDES(mutex_) {
    const base::MutexLock lock(mutex_);
    memory::reset_accumulated(counter_);
  }

 private:
  mutable base::Mutex mutex_;
  StatisticsCounter counter_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::memory
