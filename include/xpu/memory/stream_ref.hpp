#pragma once

#include <cstdint>

namespace xpu::memory {

/// The stream for which memory is wanted, or on which it is used, as an allocator sees it. The caller keeps `queue` usable for as long as
/// the allocator holds memory that the stream may be using; `id` never means another stream later.
struct StreamRef {
  /// Unique among all streams that use the device's memory. Memory belongs to a stream by this number, never by the queue's address.
  std::int64_t id = 0;
  void* queue = nullptr;         ///< What `hal::QueueProgress` knows it by.
  bool is_capturing = false;     ///< Its work becomes part of a graph: it is neither asked how far it has come nor made to wait.
  void* native_queue = nullptr;  ///< The driver's own, for PluggableAllocator and whoever else knows that.
};

}  // namespace xpu::memory
