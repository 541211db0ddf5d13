#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

/// Sparse files as short inputs. A segment is a quarter of a megabyte of zeros round a few records, which no fuzzer would find; as an input
/// it is a list of pieces {u32 offset, u16 bytes, the bytes}, at whose first contradiction the list ends.
namespace xpu::fuzz {

inline constexpr std::uint32_t kMaxFileBytes = 4u << 20;
inline constexpr std::size_t kPieceHeaderBytes = 6;

/// Splits where at least 32 bytes are zero.
inline std::vector<std::byte> to_pieces(std::span<const std::byte> file) {
  constexpr std::size_t kGap = 32, kMaxPiece = 0xffff;
  std::vector<std::byte> pieces;
  for (std::size_t at = 0; at < file.size();) {
    if (file[at] == std::byte{0}) {
      ++at;
      continue;
    }
    std::size_t end = at + 1, zeros = 0;
    while (end < file.size() && zeros < kGap && end - at < kMaxPiece) zeros = file[end++] == std::byte{0} ? zeros + 1 : 0;
    const auto offset = static_cast<std::uint32_t>(at);
    const auto bytes = static_cast<std::uint16_t>(end - zeros - at);
    const std::size_t before = pieces.size();
    pieces.resize(before + kPieceHeaderBytes + bytes);
    std::memcpy(&pieces[before], &offset, sizeof(offset));
    std::memcpy(&pieces[before + sizeof(offset)], &bytes, sizeof(bytes));
    std::memcpy(&pieces[before + kPieceHeaderBytes], &file[at], bytes);
    at = end;
  }
  return pieces;
}

/// Writes the file that the pieces describe, ending with the last of them; whole chunks when `round_up_to` is given.
inline void write_pieces(int fd, std::span<const std::byte> pieces, std::uint32_t first_block = 0, std::uint32_t round_up_to = 1) {
  std::uint32_t size = 0;
  while (pieces.size() >= kPieceHeaderBytes) {
    std::uint32_t offset = 0;
    std::uint16_t bytes = 0;
    std::memcpy(&offset, pieces.data(), sizeof(offset));
    std::memcpy(&bytes, pieces.data() + sizeof(offset), sizeof(bytes));
    pieces = pieces.subspan(kPieceHeaderBytes);
    const std::size_t length = std::min<std::size_t>(bytes, pieces.size());
    offset %= kMaxFileBytes;
    if (::pwrite(fd, pieces.data(), length, offset) != static_cast<ssize_t>(length)) return;
    size = std::max(size, offset + static_cast<std::uint32_t>(length));
    pieces = pieces.subspan(length);
  }
  if (size > first_block) size = first_block + (size - first_block + round_up_to - 1) / round_up_to * round_up_to;
  if (::ftruncate(fd, size) != 0) return;
}

}  // namespace xpu::fuzz
