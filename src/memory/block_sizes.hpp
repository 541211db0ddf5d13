#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

/// Sizes that decide where a request goes; those of PyTorch, because programs reckon with them.
namespace xpu::memory {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
/// Every block is a multiple of it, and begins at one.
inline constexpr std::size_t kGranuleBytes = 512;
/// Requests of up to 1 MiB belong to the small pool.
inline constexpr std::size_t kSmallestLargeRequest = kMiB + 1;
inline constexpr std::size_t kSmallSegmentBytes = 2 * kMiB;
/// Of a request below kLeastExactSegmentBytes.
inline constexpr std::size_t kLargeSegmentBytes = 20 * kMiB;
inline constexpr std::size_t kLeastExactSegmentBytes = 10 * kMiB;
inline constexpr std::size_t kSegmentRoundingBytes = 2 * kMiB;
/// More cannot be addressed.
inline constexpr std::size_t kMostRequestBytes = std::size_t{1} << 46;

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) noexcept { return (bytes + multiple - 1) / multiple * multiple; }
/// Requires 0 < bytes <= kMostRequestBytes.
constexpr std::size_t block_bytes(std::size_t requested) noexcept { return (requested + kGranuleBytes - 1) & ~(kGranuleBytes - 1); }
constexpr bool is_small(std::size_t bytes) noexcept { return bytes < kSmallestLargeRequest; }
/// What is asked of the device when a block of that size is wanted and memory comes in segments.
constexpr std::size_t segment_bytes(std::size_t block) noexcept {
  if (is_small(block)) return kSmallSegmentBytes;
  return block < kLeastExactSegmentBytes ? kLargeSegmentBytes : round_up(block, kSegmentRoundingBytes);
}

/// Free blocks lie in bins by size: one for each multiple of a granule up to 1 MiB, 32 for each doubling above it. Bin 0 is none.
inline constexpr unsigned kExactBins = kMiB / kGranuleBytes + 1;
inline constexpr unsigned kBinsPerDoublingShift = 5;
inline constexpr unsigned kFirstDoublingShift = 20;
inline constexpr unsigned kLastDoublingShift = 47;
inline constexpr unsigned kBins = kExactBins + ((kLastDoublingShift - kFirstDoublingShift + 1) << kBinsPerDoublingShift);

constexpr unsigned bin_of(std::size_t bytes) noexcept {
  if (bytes <= kMiB) return static_cast<unsigned>(bytes / kGranuleBytes);
  const auto doubling = static_cast<unsigned>(std::bit_width(bytes)) - 1;
  const auto step = static_cast<unsigned>(bytes >> (doubling - kBinsPerDoublingShift)) & ((1u << kBinsPerDoublingShift) - 1);
  return kExactBins + ((doubling - kFirstDoublingShift) << kBinsPerDoublingShift) + step;
}

}  // namespace xpu::memory
