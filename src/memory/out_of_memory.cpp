#include "memory/out_of_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace xpu::memory {
namespace {

struct Sums {
  std::uint64_t reserved = 0, allocated = 0, active = 0, allocated_in_pools = 0;
  std::uint64_t largest_free = 0, largest_free_of_stream = 0;
};

Sums sum(const Snapshot& now, std::int64_t stream) {
  Sums sums;
  for (const SnapshotSegment& segment : now.segments) {
    sums.reserved += segment.total_bytes;
    sums.allocated += segment.allocated_bytes;
    sums.active += segment.active_bytes;
    if (segment.pool != PoolId{}) sums.allocated_in_pools += segment.allocated_bytes;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state != SnapshotBlockState::inactive) continue;
      sums.largest_free = std::max(sums.largest_free, block.size_bytes);
      if (segment.stream == stream) sums.largest_free_of_stream = std::max(sums.largest_free_of_stream, block.size_bytes);
    }
  }
  return sums;
}

/// With two decimals, as PyTorch writes sizes in this message.
std::string size_text(std::uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  if (bytes <= 1024) return fmt::format("{} bytes", bytes);
  if (bytes <= std::uint64_t{1} << 20) return fmt::format("{:.2f} KiB", amount / 1024);
  if (bytes <= std::uint64_t{1} << 30) return fmt::format("{:.2f} MiB", amount / (1 << 20));
  return fmt::format("{:.2f} GiB", amount / (1 << 30));
}

std::string reason(const OutOfMemory& failed, const Sums& sums) {
  if (failed.requested_bytes > failed.limit_bytes) {
    return fmt::format("The request alone is more than the {} that may be taken.", size_text(failed.limit_bytes));
  }
  if (sums.reserved + failed.wanted_bytes <= failed.limit_bytes) return fmt::format("The device gave no more: {}.", failed.refusal);
  return fmt::format(
      "It takes {} more, and {} of the {} that may be taken are reserved; the largest free block of its stream has {}, of any stream {}.",
      size_text(failed.wanted_bytes), size_text(sums.reserved), size_text(failed.limit_bytes), size_text(sums.largest_free_of_stream),
      size_text(sums.largest_free));
}

}  // namespace

std::string out_of_memory_text(const OutOfMemory& failed, const Snapshot& now) {
  const Sums sums = sum(now, failed.stream);
  std::string text = fmt::format("XPU out of memory. Tried to allocate {}. GPU {} has a total capacity of {} of which {} is free{}. ",
                                 size_text(failed.requested_bytes), failed.device, size_text(failed.info.total_bytes),
                                 size_text(failed.info.free_bytes), failed.info.is_measured ? "" : " (estimated)");
  if (failed.limit_bytes < failed.info.total_bytes) text += fmt::format("{} allowed; ", size_text(failed.limit_bytes));
  text += fmt::format("Of the allocated memory {} is allocated by the program", size_text(sums.allocated));
  if (sums.allocated_in_pools != 0) text += fmt::format(" ({} of it in private pools)", size_text(sums.allocated_in_pools));
  if (sums.active != sums.allocated) {
    text += fmt::format(", {} was freed by it and may still be in use by streams", size_text(sums.active - sums.allocated));
  }
  text += fmt::format(", and {} is reserved but unallocated. Please use `empty_cache` to release all unoccupied cached memory. ",
                      size_text(sums.reserved - sums.active));
  return text + reason(failed, sums);
}

}  // namespace xpu::memory
