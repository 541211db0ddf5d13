#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/GPUTrace.h>

#include "device_type.hpp"
#include "xpu/memory/device_caching_allocator.hpp"
#include "xpu/memory/host_caching_allocator.hpp"
#include "xpu/runtime/device.hpp"
#include "xpu/runtime/stream.hpp"

/// The runtime's devices and streams under PyTorch's names for them. Errors become PyTorch's exceptions.
namespace xpu_torch {

/// PyTorch's device indices are 8 bits wide.
inline constexpr int kMostDevices = 128;

/// 0 where devices cannot be counted. Initialises nothing.
int device_count() noexcept;
/// A negative index is the current device.
int resolve_device(int index) noexcept;

xpu::Stream current_stream(int device = -1);
xpu::Stream to_xpu(const c10::Stream& stream);
c10::Stream to_torch(const xpu::Stream& stream);

/// The allocator of a device's memory; asked for once, then kept.
xpu::memory::DeviceCachingAllocator& caching_allocator(int device);
/// The one allocator of pinned memory: blocks are good for the streams of every device.
xpu::memory::HostCachingAllocator& pinned_allocator();
/// The device in whose memory a live block begins at this address; -1: none.
int device_of_block(const void* address) noexcept;
/// The same for any address in a device's memory, by looking through all of it.
int device_of_address(const void* address);

/// Waits for everything on all streams of the device.
void synchronize_device(int device);

/// Somebody who asked PyTorch to be told of what happens on devices (torch._C._activate_gpu_trace), or null.
inline const c10::impl::PyInterpreter* gpu_trace() { return c10::impl::GPUTrace::get_trace(); }
inline std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace xpu_torch
