#pragma once

#include <cstdint>
#include <memory>

#include "xpu/base/export.hpp"

namespace xpu::memory {

class DeviceAllocator;

/// The name of a pool, unique in the process and never given again: {0, 0} is the memory that is in no pool of its own, {n, 0} a pool of a
/// graph, {0, n} any other one. As in PyTorch.
struct PoolId {
  std::uint64_t graph = 0, user = 0;
  bool operator==(const PoolId&) const = default;
};

struct PoolOptions {
  /// Work that is replayed later uses what is allocated here, also after it was freed: while the pool lives, its memory stays where it is
  /// and serves nobody else.
  bool is_for_graphs = false;
  /// When there is no other way, what is free in the pool's segments serves allocations of the same stream that name no pool.
  bool use_on_oom = false;
  /// A free block is handed out whole, however small the request: what goes with one segment stays together. Such a pool has segments, not
  /// expandable ones.
  bool no_split = false;
};

/// Memory of one device that is kept apart: see DeviceCachingAllocator::create_pool. One owner, which must not outlive the allocator.
class XPU_EXPORT DevicePool {
 public:
  /// What is free goes back to the device once the streams that could touch it are done with it, which is waited for. Blocks that are live
  /// stay valid; their memory goes back after they were freed, when the allocator next gives memory back.
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  PoolId id() const noexcept { return id_; }
  const PoolOptions& options() const noexcept { return options_; }

 private:
  friend class DeviceAllocator;
  friend class DeviceCachingAllocator;
  DevicePool(DeviceAllocator& allocator, std::uint32_t slot, PoolId id, const PoolOptions& options) noexcept
      : allocator_(allocator), slot_(slot), id_(id), options_(options) {}

  DeviceAllocator& allocator_;
  const std::uint32_t slot_;  // of the allocator's table
  const PoolId id_;
  const PoolOptions options_;
};

}  // namespace xpu::memory
