#pragma once

#include <cstdint>
#include <vector>

#include "xpu/memory/history.hpp"
#include "xpu/memory/pool.hpp"

namespace xpu::memory {

enum class SnapshotBlockState : std::uint8_t {
  active_allocated,
  active_pending_free,  ///< Freed, but a stream may still use it.
  inactive,
};
struct SnapshotBlock {
  std::uint64_t address = 0, size_bytes = 0, requested_bytes = 0;
  SnapshotBlockState state = SnapshotBlockState::inactive;
  StackId stack = 0;  ///< Where a live block was allocated, when that was recorded.
};

/// A run of memory without a gap that was taken from the device: a segment, or mapped pages of an expandable one.
struct SnapshotSegment {
  std::uint64_t address = 0, total_bytes = 0;
  std::uint64_t allocated_bytes = 0, active_bytes = 0, requested_bytes = 0;  ///< Sums over its blocks.
  std::int64_t stream = 0;
  PoolId pool;
  bool is_small = false, is_expandable = false;
  std::vector<SnapshotBlock> blocks;  ///< By address; they tile the segment.
};

/// All memory that an allocator holds, by address.
struct Snapshot {
  std::vector<SnapshotSegment> segments;
};

}  // namespace xpu::memory
