#include "devices.hpp"

#include <array>
#include <atomic>

#include "check.hpp"

namespace xpu_torch {
namespace {

std::array<std::atomic<xpu::memory::DeviceCachingAllocator*>, kMostDevices> g_caching_allocators{};
std::atomic<xpu::memory::HostCachingAllocator*> g_pinned_allocator{nullptr};

}  // namespace

void raise(const xpu::Error& error) {
  switch (error.code) {
    case xpu::ErrorCode::out_of_device_memory:
    case xpu::ErrorCode::out_of_host_memory: TORCH_CHECK_WITH(OutOfMemoryError, false, error.message);
    case xpu::ErrorCode::unsupported: TORCH_CHECK_NOT_IMPLEMENTED(false, error.message);
    default: TORCH_CHECK(false, error.message);
  }
  __builtin_unreachable();
}

int device_count() noexcept {
  const xpu::Result<int> count = xpu::Device::count();
  return count ? std::min(*count, kMostDevices - 1) : 0;
}

int resolve_device(int index) noexcept { return index < 0 ? xpu::Device::current() : index; }

xpu::Stream current_stream(int device) { return check(xpu::Stream::current(device)); }

xpu::Stream to_xpu(const c10::Stream& stream) {
  TORCH_CHECK(stream.device_type() == kDeviceType, "expected a stream of ", kDeviceType, ", but got one of ", stream.device_type());
  return check(xpu::Stream::from_id(stream.id(), resolve_device(stream.device_index())));
}

c10::Stream to_torch(const xpu::Stream& stream) { return c10::Stream(c10::Stream::UNSAFE, device_of(stream.device()), stream.id()); }

xpu::memory::DeviceCachingAllocator& caching_allocator(int device) {
  device = resolve_device(device);
  if (device < kMostDevices) {
    if (auto* const known = g_caching_allocators[static_cast<std::size_t>(device)].load(std::memory_order_acquire)) return *known;
  }
  auto* const allocator = check(check(xpu::Device::get(device)).allocator());
  g_caching_allocators[static_cast<std::size_t>(device)].store(allocator, std::memory_order_release);
  return *allocator;
}

xpu::memory::HostCachingAllocator& pinned_allocator() {
  if (auto* const known = g_pinned_allocator.load(std::memory_order_acquire)) return *known;
  auto* const allocator = check(check(xpu::Device::get(0)).host_allocator());
  g_pinned_allocator.store(allocator, std::memory_order_release);
  return *allocator;
}

int device_of_block(const void* address) noexcept {
  for (int device = 0; device < kMostDevices; ++device) {
    const auto* const allocator = g_caching_allocators[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
    if (allocator != nullptr && allocator->requested_bytes_of(address)) return device;
    if (allocator == nullptr && device >= device_count()) break;
  }
  return -1;
}

int device_of_address(const void* address) {
  if (const int device = device_of_block(address); device >= 0) return device;
  for (int device = 0; device < device_count(); ++device) {
    for (const auto& segment : caching_allocator(device).snapshot().segments) {
      if (address_of(address) >= segment.address && address_of(address) - segment.address < segment.total_bytes) return device;
    }
  }
  return -1;
}

}  // namespace xpu_torch
