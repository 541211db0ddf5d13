#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "base/mutex.hpp"

namespace xpu::memory {

/// Addresses [begin, end).
struct MemoryRun {
  std::uint64_t begin = 0, end = 0;
  bool is_empty() const noexcept { return end <= begin; }
};

/// The runs of memory that were shared, and how often. Runs may overlap. Thread-safe; a run is shared under the lock of its arena, so that
/// whoever has that lock knows.
class ShareTable {
 public:
  /// Once more; returns its number.
  std::uint64_t open(const MemoryRun& run) XPU_EXCLUDES(mutex_);
  /// False when the run of that number is not open.
  bool close(std::uint64_t id) XPU_EXCLUDES(mutex_);
  /// The device has got this memory: the numbers of runs in it are over.
  void forget(const MemoryRun& run) XPU_EXCLUDES(mutex_);

  bool has_open() const noexcept { return open_runs_.load(std::memory_order_relaxed) != 0; }
  /// The part of the run without an open one that lies highest; empty when there is none. Looks at all open runs.
  MemoryRun highest_closed(const MemoryRun& run) const XPU_EXCLUDES(mutex_);

 private:
  struct Share {
    MemoryRun run;
    std::uint64_t count = 0;
  };

  std::atomic<std::uint64_t> open_runs_{0};
  mutable base::Mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> ids_ XPU_GUARDED_BY(mutex_);  // by begin and end
  std::map<std::uint64_t, Share> shares_ XPU_GUARDED_BY(mutex_);                                 // by number; also those that are closed
};

}  // namespace xpu::memory
