#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/recording/compact_file.hpp"
#include "trace/recording/file_handle.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {

/// A chunk of a segment as its header describes it.
struct SegmentChunk {
  enum class Verdict : std::uint8_t {
    empty,     ///< Free, or not there any more.
    readable,  ///< Holds records.
    damaged,   ///< The header cannot be right.
  };
  Verdict verdict = Verdict::empty;
  ChunkKey key;
  std::uint32_t committed = 0;  ///< Bytes.
  std::uint32_t losses = 0;     ///< Loss records in the chunk's loss area.
  std::uint64_t filtered = 0;   ///< Operations.
};

/// A segment file, read while its process may still be writing into it and the recorder recycling its chunks. Any bytes are safe. One owner
/// at a time.
class SegmentReader {
 public:
  /// Takes `fd` over (also on error). Error: invalid_argument (not a segment, or of another version).
  static Result<SegmentReader> open(int fd);

  /// As the segment's header said when it was opened; `filtered` is the header's own figure, without its chunks'.
  const ProcessInfo& process() const noexcept { return process_; }
  /// Chunks that the header counts and that the file holds, and how many it lacks.
  std::uint32_t chunk_count() const noexcept { return chunk_count_; }
  std::uint32_t missing_chunks() const noexcept { return missing_chunks_; }

  SegmentChunk chunk(std::uint32_t index) const;

  enum class Reading : std::uint8_t {
    whole,
    damaged,  ///< Bytes that are no record were left out.
    moved,    ///< The recorder took the chunk away meanwhile; nothing is delivered.
  };
  /// Replaces `out` by the chunk's whole records, its loss records last.
  Reading read(std::uint32_t index, const SegmentChunk& chunk, std::vector<std::byte>& out) const;

 private:
  SegmentReader() = default;

  FileHandle file_;
  ProcessInfo process_;
  std::uint32_t chunk_count_ = 0, missing_chunks_ = 0;
};

}  // namespace xpu::trace
