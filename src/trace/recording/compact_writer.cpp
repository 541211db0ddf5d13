#include <unistd.h>

#include <cerrno>

#include "trace/recording/compact_file.hpp"
#include "trace/recording/compact_format.hpp"
#include "trace/recording/storage.hpp"

namespace xpu::trace {
namespace {

void pad(std::vector<std::byte>& bytes) { bytes.resize((bytes.size() + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment); }

void put_frame(std::vector<std::byte>& out, FrameType type, std::span<const std::byte> directory, std::span<const std::byte> payload) {
  DiskFrameHeader header{};
  header.magic = kFrameMagic;
  header.type = static_cast<std::uint32_t>(type);
  header.payload_bytes = (payload.size() + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
  header.directory_bytes = static_cast<std::uint32_t>(directory.size());
  header.directory_checksum = checksum_of(directory);
  header.checksum = own_checksum(header);
  put(out, header);
  out.insert(out.end(), directory.begin(), directory.end());
  out.insert(out.end(), payload.begin(), payload.end());
  pad(out);
}

}  // namespace

void CompactBatch::clear() noexcept {
  processes.clear();
  chunks.clear();
  sections.clear();
  payload.clear();
}

void CompactBatch::add(std::uint32_t process, std::uint16_t kind, std::span<const std::byte> records, BlockEncoder& encoder) {
  CompactSection section;
  section.offset = payload.size();
  section.facts = encoder.encode(kind, records, payload);
  section.process = process;
  section.stored_bytes = static_cast<std::uint32_t>(payload.size() - section.offset);
  section.checksum = checksum_of(std::span(payload).subspan(section.offset));
  sections.push_back(section);
}

CompactWriter::~CompactWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> CompactWriter::start(int fd) {
  fd_ = fd;
  buffer_.clear();
  put(buffer_, DiskFileHeader{kCompactMagic, kCompactVersion, 0});
  return write_at_end(buffer_);
}

Result<> CompactWriter::write_at_end(std::span<const std::byte> bytes) {
  Result<> written = write_all_at(fd_, bytes, end_, kCompactedName);
  if (written) {
    end_ += bytes.size();
    return written;
  }
  // Half a frame is no harm to a reader, so a failure here changes nothing.
  while (::ftruncate(fd_, static_cast<off_t>(end_)) != 0 && errno == EINTR) {
  }
  return written;
}

std::uint32_t CompactWriter::process_index(const CompactProcess& process) {
  const auto [known, is_new] = index_.try_emplace({process.info.pid, process.info.start_ns}, static_cast<std::uint32_t>(processes_.size()));
  if (is_new) {
    processes_.push_back(process);
  } else {
    processes_[known->second] = process;
  }
  return known->second;
}

Result<> CompactWriter::append(const CompactBatch& batch) {
  std::vector<std::byte> directory;
  put_directory(directory, batch.processes, batch.chunks, batch.sections, DiskDirectoryHeader{});
  buffer_.clear();
  put_frame(buffer_, FrameType::batch, directory, batch.payload);
  const std::uint64_t payload = end_ + sizeof(DiskFrameHeader) + directory.size();
  XPU_TRY(write_at_end(buffer_));

  std::vector<std::uint32_t> indices;
  for (const CompactProcess& process : batch.processes) indices.push_back(process_index(process));
  for (ConsumedChunk chunk : batch.chunks) {
    chunk.process = indices[chunk.process];
    chunks_.push_back(chunk);
  }
  for (CompactSection section : batch.sections) {
    section.offset += payload;
    section.process = indices[section.process];
    sections_.push_back(section);
  }
  return {};
}

Result<> CompactWriter::finish(std::string_view manifest_json) {
  const auto text = std::as_bytes(std::span(manifest_json));
  buffer_.clear();
  put_frame(buffer_, FrameType::manifest, {}, text);

  DiskDirectoryHeader header{};
  header.manifest_offset = end_ + sizeof(DiskFrameHeader);
  header.manifest_bytes = static_cast<std::uint32_t>(text.size());
  header.manifest_checksum = checksum_of(text);
  std::vector<std::byte> directory;
  put_directory(directory, processes_, chunks_, sections_, header);
  DiskTrailer trailer{kTrailerMagic, end_ + buffer_.size(), 0, 0};
  trailer.checksum = own_checksum(trailer);
  put_frame(buffer_, FrameType::table, directory, {});
  put(buffer_, trailer);
  return write_at_end(buffer_);
}

}  // namespace xpu::trace
