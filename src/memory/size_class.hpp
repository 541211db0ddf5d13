#pragma once

#include <bit>
#include <cstddef>

/// Size classes of pinned memory: 64, 128, ... 512 bytes, then 8 for each doubling: 576, 640, ... 1024, 1152, 1280, ... A request of more
/// than 512 bytes leaves less than 1/8 of itself unused, a smaller one less than 64 bytes.
namespace xpu::memory {

inline constexpr std::size_t kLeastClassShift = 6;
inline constexpr std::size_t kClassesPerDoubling = 8;

/// Bytes of the blocks of a class; the classes count from 0.
constexpr std::size_t size_class_bytes(std::size_t size_class) noexcept {
  if (size_class < kClassesPerDoubling) return (size_class + 1) << kLeastClassShift;
  const std::size_t doubling = size_class / kClassesPerDoubling - 1, step = size_class % kClassesPerDoubling;
  return (kClassesPerDoubling + 1 + step) << (kLeastClassShift + doubling);
}

/// The first class whose blocks are large enough. Requires 0 < bytes <= 2^63.
constexpr std::size_t size_class_of(std::size_t bytes) noexcept {
  const std::size_t last = bytes - 1;
  if (last < kClassesPerDoubling << kLeastClassShift) return last >> kLeastClassShift;
  const auto shift = static_cast<std::size_t>(std::bit_width(last)) - std::bit_width(kClassesPerDoubling);
  return (shift - kLeastClassShift) * kClassesPerDoubling + (last >> shift);
}

}  // namespace xpu::memory
