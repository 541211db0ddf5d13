#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>

#include "xpu/memory/device_caching_allocator.hpp"

/// torch.xpu.MemPool: pools of a device's memory by PyTorch's numbers for them.
namespace xpu_torch {

/// A number that no other pool has: {0, n} for the program's own, {n, 0} for a graph's.
c10::MempoolId_t new_pool_id(bool is_of_user);

/// The pool from which this thread takes memory of the device; null: none.
const xpu::memory::DevicePool* thread_pool_of(int device) noexcept;

/// From now on this thread takes the device's memory from that pool, which is made at its first use. Errors where it does already.
void begin_allocate_to_pool(int device, c10::MempoolId_t id);
void end_allocate_to_pool(int device, c10::MempoolId_t id);
/// Every `begin_allocate_to_pool` is a use, and the object of Python's is one; the pool goes with the last.
void retain_pool(int device, c10::MempoolId_t id, const xpu::memory::PoolOptions& options);
void release_pool(int device, c10::MempoolId_t id);
std::size_t use_count_of_pool(c10::MempoolId_t id);
void empty_pool(c10::MempoolId_t id);
/// PyTorch's number for a pool of the allocator's; {0, 0} for memory that is in none.
c10::MempoolId_t id_of_pool(int device, const xpu::memory::PoolId& id);

}  // namespace xpu_torch
