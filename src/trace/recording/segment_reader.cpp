#include "trace/recording/segment_reader.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "trace/recording/record_validator.hpp"

namespace xpu::trace {
namespace {

// The headers hold atomics, which the program writes through a mapping; here they are bytes of a file, read by pread. Each field is read
// once, into plain numbers.
template <typename T>
T field(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

ClockDomain domain_of(std::uint32_t number) {
  return number <= static_cast<std::uint32_t>(ClockDomain::device) ? static_cast<ClockDomain>(number) : ClockDomain::unknown;
}

SegmentState state_of(std::uint32_t number) {
  return number <= static_cast<std::uint32_t>(SegmentState::closed) ? static_cast<SegmentState>(number) : SegmentState::attached;
}

}  // namespace

Result<SegmentReader> SegmentReader::open(int fd) {
  SegmentReader reader;
  reader.file_ = FileHandle(fd);
  std::byte bytes[sizeof(SegmentHeader)];
  if (reader.file_.read_at(0, bytes) != sizeof(bytes))
    return Error{ErrorCode::invalid_argument, "the file is shorter than a segment's header"};
  if (field<std::uint64_t>(bytes, offsetof(SegmentHeader, magic)) != kSegmentMagic)
    return Error{ErrorCode::invalid_argument, "the file is not a segment"};
  const auto format = field<std::uint32_t>(bytes, offsetof(SegmentHeader, format));
  const auto chunk_bytes = field<std::uint32_t>(bytes, offsetof(SegmentHeader, chunk_bytes));
  if (format != kSegmentFormat || chunk_bytes != kChunkBytes) {
    return Error{ErrorCode::invalid_argument, "the segment has format " + std::to_string(format) + " with chunks of " +
                                                  std::to_string(chunk_bytes) + " bytes; this version reads format " +
                                                  std::to_string(kSegmentFormat) + " with " + std::to_string(kChunkBytes)};
  }

  ProcessInfo& process = reader.process_;
  process.pid = field<std::uint64_t>(bytes, offsetof(SegmentHeader, pid));
  process.start_ns = field<std::uint64_t>(bytes, offsetof(SegmentHeader, start_ns));
  process.domain = domain_of(field<std::uint32_t>(bytes, offsetof(SegmentHeader, domain)));
  process.state = state_of(field<std::uint32_t>(bytes, offsetof(SegmentHeader, state)));
  process.lost_before_any_chunk = field<std::uint64_t>(bytes, offsetof(SegmentHeader, lost_before_any_chunk));
  process.filtered = field<std::uint64_t>(bytes, offsetof(SegmentHeader, filtered));
  process.writer_count = field<std::uint32_t>(bytes, offsetof(SegmentHeader, writer_count));

  const auto counted = field<std::uint32_t>(bytes, offsetof(SegmentHeader, chunk_count));
  const std::uint64_t size = reader.file_.size();
  // A chunk that is cut off counts as there: what it holds may still be whole records.
  const std::uint64_t present = size > kSegmentHeaderBytes ? (size - kSegmentHeaderBytes + kChunkBytes - 1) / kChunkBytes : 0;
  reader.chunk_count_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(counted, present));
  reader.missing_chunks_ = counted - reader.chunk_count_;
  return reader;
}

SegmentChunk SegmentReader::chunk(std::uint32_t index) const {
  SegmentChunk chunk;
  std::byte bytes[kChunkHeaderBytes];
  if (file_.read_at(chunk_offset(index), bytes) != sizeof(bytes)) {
    chunk.verdict = SegmentChunk::Verdict::damaged;
    return chunk;
  }
  const auto state = field<std::uint32_t>(bytes, offsetof(ChunkHeader, state));
  const auto committed = field<std::uint64_t>(bytes, offsetof(ChunkHeader, committed));
  const auto losses = field<std::uint32_t>(bytes, offsetof(ChunkHeader, loss_count));
  if (field<std::uint32_t>(bytes, offsetof(ChunkHeader, magic)) != kChunkMagic || state > static_cast<std::uint32_t>(ChunkState::drained) ||
      committed > kChunkRecordsEnd - kChunkHeaderBytes || losses > kMaxLossSlots) {
    chunk.verdict = SegmentChunk::Verdict::damaged;
    return chunk;
  }
  if (state == static_cast<std::uint32_t>(ChunkState::free)) return chunk;
  chunk.verdict = SegmentChunk::Verdict::readable;
  chunk.key = {process_.pid, process_.start_ns, field<std::uint32_t>(bytes, offsetof(ChunkHeader, writer)),
               field<std::uint32_t>(bytes, offsetof(ChunkHeader, sequence))};
  chunk.committed = static_cast<std::uint32_t>(committed);
  chunk.losses = losses;
  chunk.filtered = field<std::uint64_t>(bytes, offsetof(ChunkHeader, filtered));
  return chunk;
}

SegmentReader::Reading SegmentReader::read(std::uint32_t index, const SegmentChunk& chunk, std::vector<std::byte>& out) const {
  out.clear();
  if (chunk.verdict != SegmentChunk::Verdict::readable) return Reading::damaged;

  // The loss records are read to behind the committed bytes, whether or not all of these are there.
  out.resize(chunk.committed + std::size_t{chunk.losses} * sizeof(LossRecord));
  const std::span<std::byte> records = std::span(out).first(chunk.committed), losses = std::span(out).subspan(chunk.committed);
  const std::size_t records_read = file_.read_at(chunk_offset(index) + kChunkHeaderBytes, records);
  const std::size_t losses_read = file_.read_at(chunk_offset(index) + kChunkRecordsEnd, losses);

  // What was read counts only if the chunk still had the same contents afterwards.
  const SegmentChunk after = this->chunk(index);
  if (after.verdict == SegmentChunk::Verdict::empty || (after.verdict == SegmentChunk::Verdict::readable && after.key != chunk.key)) {
    out.clear();
    return Reading::moved;
  }

  const std::size_t valid_records = valid_prefix(records.first(records_read)).bytes;
  std::size_t end = valid_records, valid_losses = 0;
  for (std::size_t at = chunk.committed; at + sizeof(LossRecord) <= chunk.committed + losses_read; at += sizeof(LossRecord)) {
    const auto header = field<RecordHeader>(out, at);
    if (header.kind != static_cast<std::uint16_t>(RecordKind::loss) || header.size != sizeof(LossRecord)) continue;
    std::memmove(out.data() + end, out.data() + at, sizeof(LossRecord));
    end += sizeof(LossRecord);
    ++valid_losses;
  }
  out.resize(end);
  const bool whole = valid_records == chunk.committed && valid_losses == chunk.losses;
  return whole ? Reading::whole : Reading::damaged;
}

}  // namespace xpu::trace
