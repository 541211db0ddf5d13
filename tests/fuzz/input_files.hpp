#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace xpu::fuzz {

/// A whole recording as one input: files one after the other, each {u8 which of kInputFiles, u32 bytes, the bytes}; segments as pieces.
inline constexpr std::array<const char*, 7> kInputFiles = {"a.xpu",
                                                           "a.xpu.live/manifest.json",
                                                           "a.xpu.live/compacted.part",
                                                           "a.xpu.live/41-410.seg",
                                                           "a.xpu.live/42-420.seg",
                                                           "a.xpu.live/43-430.seg",
                                                           "a.xpu.live/spare-0.seg"};
inline constexpr std::size_t kFirstSegment = 3;
inline constexpr std::size_t kFileHeaderBytes = 5;

inline void add_file(std::vector<std::byte>& input, std::size_t which, std::span<const std::byte> contents) {
  const auto bytes = static_cast<std::uint32_t>(contents.size());
  const std::size_t before = input.size();
  input.resize(before + kFileHeaderBytes + bytes);
  input[before] = static_cast<std::byte>(which);
  std::memcpy(&input[before + 1], &bytes, sizeof(bytes));
  if (bytes != 0) std::memcpy(&input[before + kFileHeaderBytes], contents.data(), bytes);
}

/// Calls `visit(which, contents)` for each; a length beyond the end is cut.
template <typename Visit>
void for_each_file(std::span<const std::byte> input, Visit&& visit) {
  while (input.size() > kFileHeaderBytes) {
    const std::size_t which = static_cast<std::size_t>(input[0]) % kInputFiles.size();
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, input.data() + 1, sizeof(bytes));
    input = input.subspan(kFileHeaderBytes);
    const std::size_t length = bytes < input.size() ? bytes : input.size();
    visit(which, input.first(length));
    input = input.subspan(length);
  }
}

}  // namespace xpu::fuzz
