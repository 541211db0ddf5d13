#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "memory/block_sizes.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {

/// A device allocator on a device that does not exist. The parameter: whether the device maps memory, so that segments are expandable.
class DeviceAllocatorFixture : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kCapacity = 200 * kMiB;

  Result<void*> try_allocate(std::size_t bytes, std::int64_t stream = 1) { return allocator_->allocate(bytes, progress_.stream(stream)); }
  void* allocate(std::size_t bytes, std::int64_t stream = 1) { return try_allocate(bytes, stream).value(); }
  void free(void* address) { allocator_->free(address).value(); }
  DeviceStatistics statistics() const { return allocator_->statistics(); }
  static std::uint64_t value(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
  SnapshotSegment segment_of(const void* address) const {
    for (const SnapshotSegment& segment : allocator_->snapshot().segments) {
      if (segment.address <= value(address) && value(address) < segment.address + segment.total_bytes) return segment;
    }
    return {};
  }

  FakeDeviceMemory memory_{kCapacity, GetParam()};
  ScriptedProgress progress_;
  std::unique_ptr<DeviceCachingAllocator> allocator_ = DeviceCachingAllocator::create(memory_, progress_).value();
};

inline std::string name_of_device(const ::testing::TestParamInfo<bool>& can_map) { return can_map.param ? "expandable" : "segments"; }

}  // namespace xpu::memory
