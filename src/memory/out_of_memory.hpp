#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xpu/hal/device.hpp"
#include "xpu/memory/snapshot.hpp"

namespace xpu::memory {

/// An allocation that failed when nothing was left to be taken back.
struct OutOfMemory {
  int device = 0;
  std::int64_t stream = 0;
  std::size_t requested_bytes = 0;
  std::size_t wanted_bytes = 0;  ///< What the device was to give for it.
  std::uint64_t limit_bytes = 0;
  hal::MemoryInfo info;
  std::string refusal;  ///< Of whoever refused last.
};

/// Says what was asked for and what is in use, in the order in which users of PyTorch know it, and in its last sentence what the allocation
/// failed for. All figures but the device's own are those of `now`.
std::string out_of_memory_text(const OutOfMemory& failed, const Snapshot& now);

}  // namespace xpu::memory
