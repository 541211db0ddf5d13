#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/mutex.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/memory/allocator.hpp"
#include "xpu/memory/device_caching_allocator.hpp"
#include "xpu/memory/guarded_allocator.hpp"
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

/// Publishes what is allocated from a caching allocator, by a buffer or by whoever else asks it.
class MemoryPublisher final : public memory::AllocationListener {
 public:
  MemoryPublisher(DeviceState& device, hal::MemoryKind kind) noexcept : device_(device), kind_(kind) {}
  void allocated(const void* address, std::size_t bytes) noexcept override;
  void freeing(const void* address, std::size_t bytes) noexcept override;

 private:
  DeviceState& device_;
  const hal::MemoryKind kind_;
};

/// The allocators of one device, made when they are first asked for; they live for ever. Thread-safe. Errors of what makes one: unsupported
/// when the opened device has no such memory; what is wrong with `XPU_MEMORY_CONF` or `XPU_MEMORY_DEBUG`.
class DeviceMemory {
 public:
  /// `kind`: device or shared.
  Result<memory::DeviceCachingAllocator*> caching_allocator(DeviceState& device, hal::MemoryKind kind) XPU_EXCLUDES(mutex_);
  /// Null when nobody asked for it yet.
  memory::DeviceCachingAllocator* known_caching_allocator(hal::MemoryKind kind) const noexcept {
    return (kind == hal::MemoryKind::shared ? shared_ : device_).load(std::memory_order_acquire);
  }
  Result<memory::HostCachingAllocator*> host_allocator(DeviceState& device) XPU_EXCLUDES(mutex_);
  /// What buffers of this kind come from: the caching allocator, or what takes its place.
  Result<memory::Allocator*> buffer_allocator(DeviceState& device, hal::MemoryKind kind) {
    if (memory::Allocator* known = buffer_place(kind).load(std::memory_order_acquire)) [[likely]]
      return known;
    return make_buffer_allocator(device, kind);
  }
  /// What a buffer has from an allocator that does not publish it: the buffer does. Not of what `caching_allocator` gives.
  void publish_buffer(const DeviceState& device, hal::MemoryKind kind, const void* address, std::size_t bytes) noexcept;
  /// Before it is freed.
  void publish_end_of_buffer(const DeviceState& device, hal::MemoryKind kind, const void* address, std::size_t bytes) noexcept;
  /// What the program has of this device, as it asked for, wherever it comes from.
  std::uint64_t allocated_bytes() const noexcept;
  /// Error failed_precondition when buffers of device memory come from an allocator already.
  Result<> replace(std::shared_ptr<memory::Allocator> allocator) XPU_EXCLUDES(mutex_);

  /// In a forked child. Takes no lock.
  void close(const char* why) noexcept;
  /// What is allocated on standard error, if that is wanted.
  void list_live_blocks(int device) const;

 private:
  std::atomic<memory::Allocator*>& buffer_place(hal::MemoryKind kind) noexcept {
    return kind == hal::MemoryKind::shared ? shared_buffers_ : device_buffers_;
  }
  Result<memory::Allocator*> make_buffer_allocator(DeviceState& device, hal::MemoryKind kind) XPU_EXCLUDES(mutex_);
  bool is_published(hal::MemoryKind kind) const noexcept;

  base::Mutex mutex_;  // held while the driver is tried
  std::atomic<memory::DeviceCachingAllocator*> device_{nullptr}, shared_{nullptr};
  std::atomic<memory::HostCachingAllocator*> host_{nullptr};
  std::atomic<memory::GuardedAllocator*> guarded_{nullptr};  // of device memory
  std::atomic<memory::Allocator*> device_buffers_{nullptr}, shared_buffers_{nullptr};
  std::atomic<std::uint64_t> other_bytes_{0};  // of buffers from any other than the caching ones, which know themselves
};

}  // namespace xpu::runtime
