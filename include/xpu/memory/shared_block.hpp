#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::memory {

/// A live block as somebody sees it who gets the memory of its segment, for instance another process: see DeviceCachingAllocator::share.
struct SharedBlock {
  void* segment = nullptr;        ///< What the driver exports: a segment, or the pages of an expandable one that hold the block.
  std::size_t segment_bytes = 0;  ///< All of it has memory.
  std::size_t offset_bytes = 0;   ///< Of the block in it.
  /// Unique in the process. The same for the same `segment` and `segment_bytes` as long as that memory is not given back to the device;
  /// what later lies at these addresses has another one, so that what was opened by this number is not taken for it.
  std::uint64_t segment_id = 0;
};

}  // namespace xpu::memory
