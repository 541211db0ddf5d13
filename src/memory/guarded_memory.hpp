#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::memory {

/// Memory for one block between two guards, aligned to the right.
struct GuardedRange {
  std::uint64_t reserved = 0, reserved_bytes = 0;  ///< With the guards.
  std::uint64_t mapped = 0, mapped_bytes = 0;
  std::uint64_t begin = 0, bytes = 0;

  std::uint64_t mapped_end() const noexcept { return mapped + mapped_bytes; }
};

/// Bytes round a block that somebody changed.
struct Damage {
  std::int64_t first_offset = 0;  ///< From the block's begin: negative in front of it.
  std::uint64_t changed_bytes = 0;
};

/// Error of the device's when it gives no memory; nothing has changed then. `alignment` is a power of two, at most the granularity.
Result<GuardedRange> map_guarded(hal::MemoryProvider& memory, std::size_t bytes, std::size_t alignment);
void unmap_guarded(hal::MemoryProvider& memory, const GuardedRange& range) noexcept;
void unreserve_guarded(hal::MemoryProvider& memory, const GuardedRange& range) noexcept;

/// Fills what is mapped and not the block. Only where this process may touch it.
void fill_slack(const GuardedRange& range) noexcept;
std::optional<Damage> find_damage(const GuardedRange& range) noexcept;

}  // namespace xpu::memory
