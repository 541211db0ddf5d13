#include "trace/recording/compact_format.hpp"

#include <zlib.h>

#include <cstring>

namespace xpu::trace {
namespace {

// Requires that it is there.
template <typename Structure>
Structure take(std::span<const std::byte>& bytes) noexcept {
  Structure structure;
  std::memcpy(&structure, bytes.data(), sizeof structure);
  bytes = bytes.subspan(sizeof structure);
  return structure;
}

CompactProcess from_disk(const DiskProcess& disk) noexcept {
  CompactProcess process;
  process.info.pid = disk.pid;
  process.info.start_ns = disk.start_ns;
  process.info.domain =
      disk.domain <= static_cast<std::uint32_t>(ClockDomain::device) ? static_cast<ClockDomain>(disk.domain) : ClockDomain::unknown;
  process.info.state =
      disk.state <= static_cast<std::uint32_t>(SegmentState::closed) ? static_cast<SegmentState>(disk.state) : SegmentState::attached;
  process.info.lost_before_any_chunk = disk.lost_before_any_chunk;
  process.info.filtered = disk.filtered;
  process.info.writer_count = disk.writer_count;
  process.chunks_filtered = disk.chunks_filtered;
  process.unread_bytes = disk.unread_bytes;
  return process;
}

DiskProcess to_disk(const CompactProcess& process) noexcept {
  DiskProcess disk{};
  disk.pid = process.info.pid;
  disk.start_ns = process.info.start_ns;
  disk.domain = static_cast<std::uint32_t>(process.info.domain);
  disk.state = static_cast<std::uint32_t>(process.info.state);
  disk.writer_count = process.info.writer_count;
  disk.lost_before_any_chunk = process.info.lost_before_any_chunk;
  disk.filtered = process.info.filtered;
  disk.chunks_filtered = process.chunks_filtered;
  disk.unread_bytes = process.unread_bytes;
  return disk;
}

DiskSection to_disk(const CompactSection& section) noexcept {
  DiskSection disk{};
  disk.offset = section.offset;
  disk.stored_bytes = section.stored_bytes;
  disk.raw_bytes = section.facts.raw_bytes;
  disk.records = section.facts.records;
  disk.checksum = section.checksum;
  disk.kind = section.facts.kind;
  disk.encoding = static_cast<std::uint16_t>(section.facts.encoding);
  disk.process = section.process;
  return disk;
}

CompactSection from_disk(const DiskSection& disk) noexcept {
  CompactSection section;
  section.facts.kind = disk.kind;
  section.facts.encoding = static_cast<BlockEncoding>(disk.encoding);
  section.facts.records = disk.records;
  section.facts.raw_bytes = disk.raw_bytes;
  section.process = disk.process;
  section.offset = disk.offset;
  section.stored_bytes = disk.stored_bytes;
  section.checksum = disk.checksum;
  return section;
}

}  // namespace

std::uint32_t checksum_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void put_directory(std::vector<std::byte>& out, std::span<const CompactProcess> processes, std::span<const ConsumedChunk> chunks,
                   std::span<const CompactSection> sections, const DiskDirectoryHeader& manifest) {
  DiskDirectoryHeader header = manifest;
  header.processes = static_cast<std::uint32_t>(processes.size());
  header.chunks = static_cast<std::uint32_t>(chunks.size());
  header.sections = static_cast<std::uint32_t>(sections.size());
  put(out, header);
  for (const CompactProcess& process : processes) put(out, to_disk(process));
  for (const ConsumedChunk& chunk : chunks) put(out, DiskChunk{chunk.process, chunk.writer, chunk.sequence, 0});
  for (const CompactSection& section : sections) put(out, to_disk(section));
}

bool parse_directory(std::span<const std::byte> bytes, std::uint64_t first, std::uint64_t last, Directory& out) {
  if (bytes.size() < sizeof(DiskDirectoryHeader)) return false;
  const auto header = take<DiskDirectoryHeader>(bytes);
  const std::uint64_t expected = std::uint64_t{header.processes} * sizeof(DiskProcess) + std::uint64_t{header.chunks} * sizeof(DiskChunk) +
                                 std::uint64_t{header.sections} * sizeof(DiskSection);
  if (bytes.size() != expected) return false;

  out.manifest_offset = header.manifest_offset;
  out.manifest_bytes = header.manifest_bytes;
  out.manifest_checksum = header.manifest_checksum;
  for (std::uint32_t index = 0; index < header.processes; ++index) out.processes.push_back(from_disk(take<DiskProcess>(bytes)));
  for (std::uint32_t index = 0; index < header.chunks; ++index) {
    const auto disk = take<DiskChunk>(bytes);
    if (disk.process >= header.processes) return false;
    out.chunks.push_back({disk.process, disk.writer, disk.sequence});
  }
  // In order and apart: a small hostile file cannot make a reader go over the same bytes again and again.
  std::uint64_t end = first;
  for (std::uint32_t index = 0; index < header.sections; ++index) {
    const CompactSection section = from_disk(take<DiskSection>(bytes));
    if (section.process >= header.processes || section.offset < end || section.offset > last ||
        section.stored_bytes > last - section.offset)
      return false;
    end = section.offset + section.stored_bytes;
    out.sections.push_back(section);
  }
  return true;
}

}  // namespace xpu::trace
