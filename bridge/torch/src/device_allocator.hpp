#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <memory>

#include "xpu/memory/allocator.hpp"

namespace xpu_torch {

/// Device memory for PyTorch: the runtime's caching allocators, one of which each device has, under PyTorch's interface. Memory is for the
/// calling thread's current stream of its current device, and comes out of that thread's pool where it has one (pools.hpp). Thread-safe.
class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  /// Throws torch.OutOfMemoryError; 0 bytes are a null pointer.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;

  bool initialized() override;
  void emptyCache(c10::MempoolId_t pool) override;
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override;
};

/// The one that PyTorch has. Lives for ever.
DeviceAllocator& device_allocator();

/// Memory of this stream, not PyTorch's current one. Null for 0 bytes.
void* allocate_on(const xpu::memory::StreamRef& stream, int device, std::size_t bytes);
/// Of `allocate_on` and of DeviceAllocator::allocate; null is nothing.
void free_block(void* address) noexcept;

/// Functions of the program's own serve device memory from now on. Error once memory was allocated.
void replace_allocator(void* (*allocate)(std::size_t, int, void*), void (*free)(void*, std::size_t, int, void*));

}  // namespace xpu_torch
