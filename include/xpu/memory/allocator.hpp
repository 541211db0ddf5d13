#pragma once

#include <cstddef>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/memory/statistics.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

/// What a program needs of an allocator of device memory, so that it can be another one: DeviceCachingAllocator, AsyncAllocator,
/// PluggableAllocator or GuardedAllocator. Each says what it does beyond this. Thread-safe.
class XPU_EXPORT Allocator {
 public:
  virtual ~Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Memory for work of this stream; null for 0 bytes. Error out_of_device_memory when there is none: all that is live stays as it is.
  virtual Result<void*> allocate(std::size_t bytes, const StreamRef& stream) = 0;
  /// Of `allocate`; null is nothing. Work that was submitted before may still use the memory, on the stream for which it was allocated and
  /// on those of `record_use`. Error invalid_argument for an address that is not the begin of a live block, freed twice included.
  virtual Result<> free(void* address) = 0;
  /// Work of another stream that was submitted, or will be before the block is freed, uses the block. False when the address is not the
  /// begin of a live block.
  virtual bool record_use(void* address, const StreamRef& stream) = 0;
  /// Gives back what is kept for later and nobody uses.
  virtual void empty_cache() = 0;

  virtual DeviceStatistics statistics() const = 0;
  /// The peaks are what is there now.
  virtual void reset_peak_statistics() = 0;
  /// What was allocated and freed is counted from now on.
  virtual void reset_accumulated_statistics() = 0;

 protected:
  Allocator() = default;
};

}  // namespace xpu::memory
