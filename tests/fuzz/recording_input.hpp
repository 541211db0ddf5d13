#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

/// The files of a recording as one input: a list of {u8 which file, u32 bytes, the bytes}, the last one may be cut short.
namespace xpu::fuzz {

/// Every file that an input can have, relative to a folder: a finished recording, and what lies in a live folder of the same name.
inline constexpr std::array<const char*, 5> kRecordingFiles = {"a.xpu", "a.xpu.live/manifest.json", "a.xpu.live/compacted.part",
                                                               "a.xpu.live/41-410.seg", "a.xpu.live/42-420.seg"};
/// This one and those after it are segments, whose bytes are pieces (pieces.hpp).
inline constexpr std::size_t kFirstSegment = 3;

inline constexpr std::size_t kFileHeaderBytes = 5;

inline void add_file(std::vector<std::byte>& input, std::size_t which, std::span<const std::byte> contents) {
  const auto number = static_cast<std::uint8_t>(which);
  const auto bytes = static_cast<std::uint32_t>(contents.size());
  const std::size_t before = input.size();
  input.resize(before + kFileHeaderBytes + contents.size());
  std::memcpy(&input[before], &number, sizeof(number));
  std::memcpy(&input[before + sizeof(number)], &bytes, sizeof(bytes));
  if (!contents.empty()) std::memcpy(&input[before + kFileHeaderBytes], contents.data(), contents.size());
}

/// Calls `visit(which, contents)` for each file of the input; `which` is an index into kRecordingFiles.
template <typename Visit>
void for_each_file(std::span<const std::byte> input, Visit&& visit) {
  while (input.size() >= kFileHeaderBytes) {
    std::uint8_t number = 0;
    std::uint32_t bytes = 0;
    std::memcpy(&number, input.data(), sizeof(number));
    std::memcpy(&bytes, input.data() + sizeof(number), sizeof(bytes));
    input = input.subspan(kFileHeaderBytes);
    const std::size_t length = std::min<std::size_t>(bytes, input.size());
    visit(number % kRecordingFiles.size(), input.first(length));
    input = input.subspan(length);
  }
}

}  // namespace xpu::fuzz
