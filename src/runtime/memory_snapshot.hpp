#pragma once

#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::runtime {

/// What the profiler asks for by PROFILE_MEMORY (`base/memory_snapshot.hpp`) comes from the caching allocators of this process's devices:
/// those that there are, and those that are made while it is noted. Once; before the runtime accepts its first call.
void register_memory_snapshots() noexcept;
/// A new allocator, before its first allocation. It takes locks of the allocator.
void note_new_allocator(memory::DeviceCachingAllocator& allocator) noexcept;

}  // namespace xpu::runtime
