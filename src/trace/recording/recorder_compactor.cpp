#include "trace/recording/recorder_compactor.hpp"

#include <algorithm>
#include <cstring>

#include "trace/recording/record_validator.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

void ChunkCompactor::Lane::append(const std::byte* record, std::size_t record_bytes) {
  if (room - size < record_bytes) {
    const std::size_t larger = std::max<std::size_t>(2 * room, 2 * kChunkBytes);
    auto moved = std::make_unique_for_overwrite<std::byte[]>(larger);
    if (size != 0) std::memcpy(moved.get(), bytes.get(), size);
    bytes = std::move(moved);
    room = larger;
  }
  std::memcpy(bytes.get() + size, record, record_bytes);
  size += record_bytes;
}

ChunkCompactor::Contents ChunkCompactor::take(const ChunkHeader& chunk) {
  Contents contents;
  const std::uint64_t claimed = chunk.committed.load(std::memory_order_acquire);
  const std::size_t committed = static_cast<std::size_t>(std::min<std::uint64_t>(claimed, kChunkRecordsEnd - kChunkHeaderBytes));
  const std::size_t losses = std::min<std::size_t>(chunk.loss_count.load(std::memory_order_acquire), kMaxLossSlots);
  contents.writer = chunk.writer;
  contents.sequence = chunk.sequence;
  contents.filtered = chunk.filtered.load(std::memory_order_relaxed);

  const auto* base = reinterpret_cast<const std::byte*>(&chunk);
  copy_.assign(base + kChunkHeaderBytes, base + kChunkHeaderBytes + committed);
  const std::size_t whole = valid_prefix(copy_).bytes;
  contents.operations = split(std::span(copy_).first(whole));
  contents.unread_bytes = committed - whole;

  for (std::size_t slot = 0; slot < losses; ++slot) {
    LossRecord loss;
    std::memcpy(&loss, base + kChunkRecordsEnd + slot * sizeof loss, sizeof loss);
    if (loss.header.kind != static_cast<std::uint16_t>(RecordKind::loss) || loss.header.size != sizeof loss) {
      contents.unread_bytes += sizeof loss;
      continue;
    }
    lane_of(loss.header.kind).append(reinterpret_cast<const std::byte*>(&loss), sizeof loss);
  }
  return contents;
}

std::uint64_t ChunkCompactor::split(std::span<const std::byte> records) {
  std::uint64_t operations = 0;
  for (std::size_t offset = 0; offset < records.size();) {
    RecordHeader header;
    std::memcpy(&header, records.data() + offset, sizeof header);
    lane_of(header.kind).append(records.data() + offset, header.size);
    if (header.kind == static_cast<std::uint16_t>(RecordKind::operation_submitted)) ++operations;
    offset += header.size;
  }
  return operations;
}

void ChunkCompactor::encode(std::uint32_t process, CompactBatch& batch) {
  for (std::size_t kind = 0; kind < kCommonKinds; ++kind) encode_lane(process, static_cast<std::uint16_t>(kind), common_[kind], batch);
  for (auto& [kind, lane] : rare_) encode_lane(process, kind, lane, batch);
  rare_.clear();
}

void ChunkCompactor::encode_lane(std::uint32_t process, std::uint16_t kind, Lane& lane, CompactBatch& batch) {
  constexpr std::size_t kBlockBytes = std::size_t{8} << 20;
  for (std::size_t start = 0; start < lane.size;) {
    std::size_t end = start;
    for (std::uint32_t count = 0; end < lane.size && count < kMaxBlockRecords && end - start < kBlockBytes; ++count) {
      std::uint16_t size = 0;
      std::memcpy(&size, lane.bytes.get() + end + offsetof(RecordHeader, size), sizeof size);
      end += size;
    }
    batch.add(process, kind, {lane.bytes.get() + start, end - start}, encoder_);
    start = end;
  }
  lane.size = 0;
}

}  // namespace xpu::trace
