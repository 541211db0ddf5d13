#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>

#include "base/mutex.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/memory/device_caching_allocator.hpp"
#include "xpu/memory/host_caching_allocator.hpp"

namespace xpu::runtime {

struct DeviceState;

/// One kind of memory of a driver's device as the allocators take it: what the driver does for them is nobody's operation, addresses are
/// remembered by where they lie, and when the driver may not be called any more, at exit, nothing is given and nothing goes back.
class MemorySource final : public hal::MemoryProvider {
 public:
  MemorySource(hal::MemoryProvider& driver, hal::MemoryKind kind, const DeviceState& device) noexcept
      : driver_(driver), kind_(kind), device_(device) {}

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) override;
  void free(void* address) noexcept override;
  Result<void*> reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Result<> map(void* address, std::size_t bytes) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  std::size_t granularity() const noexcept override { return driver_.granularity(); }
  Result<hal::MemoryInfo> info() override;

 private:
  hal::MemoryProvider& driver_;
  const hal::MemoryKind kind_;
  const DeviceState& device_;
};

/// The allocators of one device, made when they are first asked for; they live for ever. Thread-safe.
class DeviceMemory {
 public:
  /// `kind`: device or shared. Errors: unsupported when the opened device has no such memory; what is wrong with `XPU_MEMORY_CONF`.
  Result<memory::DeviceCachingAllocator*> device_allocator(DeviceState& device, hal::MemoryKind kind) XPU_EXCLUDES(mutex_);
  Result<memory::HostCachingAllocator*> host_allocator(DeviceState& device) XPU_EXCLUDES(mutex_);

  /// Null as long as nobody asked for it.
  memory::DeviceCachingAllocator* existing_device_allocator() const noexcept { return device_.load(std::memory_order_acquire); }

 private:
  base::Mutex mutex_;  // held while the driver is tried
  std::atomic<memory::DeviceCachingAllocator*> device_{nullptr}, shared_{nullptr};
  std::atomic<memory::HostCachingAllocator*> host_{nullptr};
};

}  // namespace xpu::runtime
