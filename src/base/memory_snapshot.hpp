#pragma once

#include <string>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

/// A picture of a process's memory for those who may not know what allocates it: the profiler asks, the runtime registered itself.
namespace xpu::base {

/// Functions of whoever owns allocators. Thread-safe; called with no lock held that an allocation takes.
struct MemorySnapshotProvider {
  /// From now on what happens to memory is noted, `with_stacks` with where the call came from. Error failed_precondition when that is so
  /// already, unavailable in a forked child.
  Result<> (*begin)(bool with_stacks);
  /// Writes what memory there is, and what was noted of it, to a file that tools for PyTorch's memory snapshots read; then everything is as
  /// it was before `begin`, whether or not the file could be written. Error failed_precondition without `begin`, else of the file.
  Result<> (*end)(const std::string& path);
  /// Everything is as before, and nothing was written. Nothing to do without `begin`.
  void (*cancel)() noexcept;
};

/// One per process, for its life; the first stays. `provider` must stay as well.
XPU_EXPORT void register_memory_snapshots(const MemorySnapshotProvider* provider) noexcept;
/// Null as long as nobody has.
XPU_EXPORT const MemorySnapshotProvider* memory_snapshots() noexcept;

}  // namespace xpu::base
