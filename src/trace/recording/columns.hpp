#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "xpu/base/result.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

/// How a block of records of one kind is stored. The numbers are written to recordings.
enum class BlockEncoding : std::uint16_t {
  raw = 0,           ///< The records as they were written.
  raw_deflated = 1,  ///< The same, as one zlib stream.
  columns = 2,       ///< Field by field (docs/formats.md section 2); only kinds of a fixed size that this version knows.
};

/// Bounds of one block, for the writer and for readers of hostile files alike.
inline constexpr std::uint32_t kMaxBlockRecords = 65'536;
inline constexpr std::uint32_t kMaxBlockBytes = 64u << 20;

/// What must be known about a block to read it.
struct BlockFacts {
  std::uint16_t kind = 0;  ///< RecordKind of every record of the block; may be one that this version does not know.
  BlockEncoding encoding = BlockEncoding::raw;
  std::uint32_t records = 0;    ///< At most kMaxBlockRecords.
  std::uint32_t raw_bytes = 0;  ///< Of the decoded records together, at most kMaxBlockBytes.
};

/// Bytes of a record that is stored as columns, 0 for kinds that never are (texts, lists, unknown kinds).
std::size_t column_record_bytes(std::uint16_t kind) noexcept;

/// Turns records of one kind into a block. Holds its working memory (about 2 MiB), so keep one. One owner at a time.
class BlockEncoder {
 public:
  BlockEncoder();
  ~BlockEncoder();
  BlockEncoder(BlockEncoder&&) noexcept;
  BlockEncoder& operator=(BlockEncoder&&) noexcept;

  /// Appends the block's stored bytes to `out`. `records`: whole records of `kind` one after the other, within the bounds above; bit for
  /// bit what the decoder gives back. Never fails: what does not fit into columns is stored as it is.
  BlockFacts encode(std::uint16_t kind, std::span<const std::byte> records, std::vector<std::byte>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The way back. Holds its working memory, so keep one per thread. One owner at a time.
class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(BlockDecoder&&) noexcept;
  BlockDecoder& operator=(BlockDecoder&&) noexcept;

  /// Replaces `out` by the block's records: exactly `facts.records` of them, each with kind `facts.kind` and a size that is a multiple of 8
  /// and inside the block, `facts.raw_bytes` together. Any bytes are safe. Error: invalid_argument (the block is damaged; `out` is then
  /// empty).
  Result<> decode(const BlockFacts& facts, std::span<const std::byte> stored, std::vector<std::byte>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::trace
