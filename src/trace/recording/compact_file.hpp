#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/recording/columns.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/recording.hpp"

/// The compacted file: `compacted.part` in a live folder while it grows, NAME.xpu once it is finished (docs/formats.md section 2).
///
///     file   = "XPUREC01" u32 version u32 0, frame*, [trailer]
///     frame  = header {magic, type, payload bytes, directory bytes, directory checksum, header checksum}, directory, payload
///     batch  : directory {processes, consumed chunks, sections}, payload = blocks. The unit of writing: whole or not there.
///     manifest: payload = JSON.   table: a directory of every section of the file, and where the manifest is.
///     trailer = {where the table is, checksum}: the last thing written; a file without it was not finished and is read frame by frame.
namespace xpu::trace {

inline constexpr const char* kCompactedName = "compacted.part";

/// Names a chunk's contents for ever. What was compacted once is never read from a segment again.
struct ChunkKey {
  std::uint64_t pid = 0;
  std::uint64_t start_ns = 0;
  std::uint32_t writer = 0;
  std::uint32_t sequence = 0;
  auto operator<=>(const ChunkKey&) const = default;
};

/// A process as the compacted file knows it.
struct CompactProcess {
  ProcessInfo info;  ///< As its segment's header said when the last batch was written; `filtered` is the header's figure alone.
  std::uint64_t chunks_filtered = 0;  ///< Sum of the `filtered` of the chunks consumed so far; add it to `info.filtered`.
  std::uint64_t unread_bytes = 0;     ///< Committed bytes of consumed chunks that held no whole record: a defect of the program's side.
};

/// A block in the file.
struct CompactSection {
  BlockFacts facts;
  std::uint32_t process = 0;  ///< Index into the processes of the same directory (CompactFile: of `processes()`).
  std::uint64_t offset = 0;   ///< In the file.
  std::uint32_t stored_bytes = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of the stored bytes.
};

/// A compacted file opened for reading. Any bytes are safe: what is intact is offered, the rest described. Reads by pread only, so a file
/// that shrinks under the reader is damage and not a signal. Const calls may run concurrently, each with its own decoder.
class CompactFile {
 public:
  /// Takes `fd` over (also on error). Reads the whole file once to verify its checksums. Error: invalid_argument (not such a file).
  static Result<CompactFile> open(int fd);
  static Result<CompactFile> from_bytes(std::vector<std::byte> bytes);
  ~CompactFile();
  CompactFile(CompactFile&&) noexcept;
  CompactFile& operator=(CompactFile&&) noexcept;

  /// The table at the end is there and right.
  bool finished() const noexcept;
  /// JSON; empty when the file holds none.
  const std::string& manifest() const noexcept;
  const std::vector<CompactProcess>& processes() const noexcept;
  /// Intact sections, in the order of writing.
  const std::vector<CompactSection>& sections() const noexcept;
  /// Sorted. What segments still hold of them is a repetition.
  const std::vector<ChunkKey>& consumed_chunks() const noexcept;
  /// One sentence about what could not be read, empty when everything was.
  const std::string& damage() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// Replaces `out` by the section's records. Error: invalid_argument (damaged in spite of its checksum), unavailable (cannot be read any
  /// more).
  Result<> read(const CompactSection& section, BlockDecoder& decoder, std::vector<std::byte>& out) const;

 private:
  struct Impl;
  explicit CompactFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Chunks that a batch took in.
struct ConsumedChunk {
  std::uint32_t process = 0;  ///< Index into the batch's processes.
  std::uint32_t writer = 0;
  std::uint32_t sequence = 0;
};

/// A batch in the making: blocks in memory until `CompactWriter::append` puts them into the file in one write.
struct CompactBatch {
  std::vector<CompactProcess> processes;
  std::vector<ConsumedChunk> chunks;
  std::vector<CompactSection> sections;  ///< `offset` counts from the start of `payload` here.
  std::vector<std::byte> payload;

  bool empty() const noexcept { return processes.empty() && chunks.empty() && sections.empty(); }
  void clear() noexcept;
  /// Encodes records of one kind and process and appends them as a section.
  void add(std::uint32_t process, std::uint16_t kind, std::span<const std::byte> records, BlockEncoder& encoder);
};

/// Writes a compacted file. One owner at a time.
class CompactWriter {
 public:
  CompactWriter() = default;
  ~CompactWriter();
  CompactWriter(const CompactWriter&) = delete;
  CompactWriter& operator=(const CompactWriter&) = delete;

  /// Takes over `fd`, an empty file open for writing, and writes the file's header.
  Result<> start(int fd);

  /// After success the batch is in the file as a whole. After an error the file ends where it ended before, and the same batch may be tried
  /// again. Error: unavailable, with the reason (no space, file-size limit, I/O error).
  Result<> append(const CompactBatch& batch);

  /// Manifest, table, trailer. Nothing can be appended afterwards. Errors as `append`; may be tried again.
  Result<> finish(std::string_view manifest_json);

  /// Bytes of whole frames so far.
  std::uint64_t bytes() const noexcept { return end_; }

 private:
  Result<> write_at_end(std::span<const std::byte> bytes);
  std::uint32_t process_index(const CompactProcess& process);

  int fd_ = -1;
  std::uint64_t end_ = 0;
  std::vector<CompactProcess> processes_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> index_;  // pid and start -> processes_
  std::vector<ConsumedChunk> chunks_;
  std::vector<CompactSection> sections_;
  std::vector<std::byte> buffer_;
};

}  // namespace xpu::trace
