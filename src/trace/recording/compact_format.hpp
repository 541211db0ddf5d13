#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/recording/compact_file.hpp"

/// The compacted file on disk (docs/formats.md section 2), little-endian; and the directory, which batches and the table share.
namespace xpu::trace {

inline constexpr std::uint64_t kCompactMagic = 0x3130434552555058;  // "XPUREC01"
inline constexpr std::uint64_t kTrailerMagic = 0x31444e4552555058;  // "XPUREND1"
inline constexpr std::uint32_t kFrameMagic = 0x4d524658;            // "XFRM"
inline constexpr std::uint32_t kCompactVersion = 1;
/// Frames begin at multiples of this, so that a reader who lost the thread finds the next one.
inline constexpr std::size_t kFrameAlignment = 8;

enum class FrameType : std::uint32_t { batch = 1, manifest = 2, table = 3 };

struct DiskFileHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved;
};

struct DiskFrameHeader {
  std::uint32_t magic;
  std::uint32_t type;
  std::uint64_t payload_bytes;  ///< After the directory; a multiple of kFrameAlignment.
  std::uint32_t directory_bytes;
  std::uint32_t directory_checksum;
  std::uint32_t reserved;
  std::uint32_t checksum;  ///< CRC-32 of all before.
};

struct DiskDirectoryHeader {
  std::uint32_t processes, chunks, sections;
  std::uint32_t manifest_checksum;
  std::uint64_t manifest_offset;  ///< In a table; of the text.
  std::uint32_t manifest_bytes;
  std::uint32_t reserved;
};

struct DiskProcess {
  std::uint64_t pid, start_ns;
  std::uint32_t domain, state, writer_count, reserved;
  std::uint64_t lost_before_any_chunk, filtered, chunks_filtered, unread_bytes;
};

struct DiskChunk {
  std::uint32_t process, writer, sequence, reserved;
};

struct DiskSection {
  std::uint64_t offset;  ///< From the payload's start in a batch, from the file's in a table.
  std::uint32_t stored_bytes, raw_bytes, records, checksum;
  std::uint16_t kind, encoding;
  std::uint32_t process;
};

struct DiskTrailer {
  std::uint64_t magic;
  std::uint64_t table_offset;
  std::uint32_t reserved;
  std::uint32_t checksum;  ///< CRC-32 of all before.
};

static_assert(sizeof(DiskFileHeader) == 16 && sizeof(DiskFrameHeader) == 32 && sizeof(DiskDirectoryHeader) == 32);
static_assert(sizeof(DiskProcess) == 64 && sizeof(DiskChunk) == 16 && sizeof(DiskSection) == 32 && sizeof(DiskTrailer) == 24);

/// CRC-32 as zlib computes it; `before` continues an earlier one.
std::uint32_t checksum_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;
/// Of a structure whose last four bytes are its own checksum.
template <typename Structure>
std::uint32_t own_checksum(const Structure& structure) noexcept {
  return checksum_of(std::as_bytes(std::span(&structure, 1)).first(sizeof(Structure) - sizeof(std::uint32_t)));
}

/// Appends the bytes of a structure.
template <typename Structure>
void put(std::vector<std::byte>& out, const Structure& structure) {
  const auto bytes = std::as_bytes(std::span(&structure, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// What a batch or a table says about the file.
struct Directory {
  std::vector<CompactProcess> processes;
  std::vector<ConsumedChunk> chunks;
  std::vector<CompactSection> sections;
  std::uint64_t manifest_offset = 0;
  std::uint32_t manifest_bytes = 0;
  std::uint32_t manifest_checksum = 0;
};

/// Appends it to `out`.
void put_directory(std::vector<std::byte>& out, std::span<const CompactProcess> processes, std::span<const ConsumedChunk> chunks,
                   std::span<const CompactSection> sections, const DiskDirectoryHeader& manifest);

/// False unless the bytes are one whole directory, its indices are right, and its sections lie in [first, last), in order and apart.
bool parse_directory(std::span<const std::byte> bytes, std::uint64_t first, std::uint64_t last, Directory& out);

}  // namespace xpu::trace
