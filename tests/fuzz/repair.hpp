#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "trace/recording/compact_format.hpp"

namespace xpu::fuzz {

/// Makes the checksums of a compacted file right again, as far as its frames can be followed. Without it every changed byte would be
/// stopped by a checksum, and what lies behind would never be tried; a hostile file has right checksums, too.
class ChecksumRepair {
 public:
  explicit ChecksumRepair(std::span<std::byte> file) : file_(file) {}

  void run() {
    for (std::size_t at = sizeof(trace::DiskFileHeader); room(at, sizeof(trace::DiskFrameHeader)) && frames_ < kMaxFrames; ++frames_) {
      auto frame = get<trace::DiskFrameHeader>(at);
      if (frame.magic != trace::kFrameMagic) break;
      const std::size_t directory = at + sizeof(frame);
      if (!room(directory, frame.directory_bytes)) break;
      const std::size_t payload = directory + frame.directory_bytes;
      const bool is_table = frame.type == static_cast<std::uint32_t>(trace::FrameType::table);
      repair_directory(directory, frame.directory_bytes, is_table ? 0 : payload);
      frame.directory_checksum = trace::checksum_of(file_.subspan(directory, frame.directory_bytes));
      frame.checksum = trace::own_checksum(frame);
      put(at, frame);
      if (!room(payload, frame.payload_bytes)) break;
      at = payload + static_cast<std::size_t>(frame.payload_bytes);
    }
    if (file_.size() >= sizeof(trace::DiskTrailer)) {
      const std::size_t at = file_.size() - sizeof(trace::DiskTrailer);
      auto trailer = get<trace::DiskTrailer>(at);
      trailer.checksum = trace::own_checksum(trailer);
      if (trailer.magic == trace::kTrailerMagic) put(at, trailer);
    }
  }

 private:
  static constexpr int kMaxFrames = 1'000;

  bool room(std::size_t at, std::uint64_t bytes) const { return at <= file_.size() && bytes <= file_.size() - at; }
  template <typename Structure>
  Structure get(std::size_t at) const {
    Structure structure;
    std::memcpy(&structure, file_.data() + at, sizeof(structure));
    return structure;
  }
  template <typename Structure>
  void put(std::size_t at, const Structure& structure) {
    std::memcpy(file_.data() + at, &structure, sizeof(structure));
  }

  void repair_directory(std::size_t at, std::size_t bytes, std::size_t base) {
    if (bytes < sizeof(trace::DiskDirectoryHeader)) return;
    auto header = get<trace::DiskDirectoryHeader>(at);
    if (room(static_cast<std::size_t>(header.manifest_offset), header.manifest_bytes)) {
      header.manifest_checksum = trace::checksum_of(file_.subspan(static_cast<std::size_t>(header.manifest_offset), header.manifest_bytes));
      put(at, header);
    }
    const std::uint64_t before = sizeof(header) + std::uint64_t{header.processes} * sizeof(trace::DiskProcess) +
                                 std::uint64_t{header.chunks} * sizeof(trace::DiskChunk);
    for (std::uint64_t index = 0; index < header.sections; ++index) {
      const std::uint64_t place = before + index * sizeof(trace::DiskSection);
      if (place + sizeof(trace::DiskSection) > bytes) return;
      auto section = get<trace::DiskSection>(at + static_cast<std::size_t>(place));
      const std::uint64_t offset = base + section.offset;
      if (offset < section.offset || offset > file_.size() || !room(static_cast<std::size_t>(offset), section.stored_bytes)) continue;
      section.checksum = trace::checksum_of(file_.subspan(static_cast<std::size_t>(offset), section.stored_bytes));
      put(at + static_cast<std::size_t>(place), section);
    }
  }

  std::span<std::byte> file_;
  int frames_ = 0;
};

}  // namespace xpu::fuzz
