#include "trace/recording/compact_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "trace/recording/compact_format.hpp"
#include "trace/recording/manifest.hpp"
#include "trace/recording/storage.hpp"

namespace xpu::trace {
namespace {

constexpr std::size_t kSearchBytes = std::size_t{1} << 20;

}  // namespace

struct CompactFile::Impl {
  UniqueFd fd;
  std::vector<std::byte> memory;  // instead of a file
  std::uint64_t size = 0;

  bool finished = false;
  std::string manifest;
  std::vector<CompactProcess> processes;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> process_index;
  std::vector<CompactSection> sections;
  std::vector<ChunkKey> chunks;
  std::string damage;

  std::vector<std::byte> buffer;
  std::size_t damaged_sections = 0;
  std::uint64_t skipped_bytes = 0;

  bool read_at(std::uint64_t offset, std::span<std::byte> out) const {
    if (offset > size || out.size() > size - offset) return false;
    if (fd) return read_all_at(fd.get(), out, offset);
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return true;
  }

  template <typename Structure>
  bool read_structure(std::uint64_t offset, Structure& out) const {
    return read_at(offset, std::as_writable_bytes(std::span(&out, 1)));
  }

  // `bytes` was checked against the file's size by the caller, so a hostile length allocates nothing.
  bool read_buffer(std::uint64_t offset, std::uint64_t bytes) {
    if (offset > size || bytes > size - offset) return false;
    buffer.resize(bytes);
    return read_at(offset, buffer);
  }

  struct Frame {
    DiskFrameHeader header{};
    std::uint64_t payload = 0;  // where it begins
    std::uint64_t end = 0;
  };

  // A frame header at `offset`, right in itself; the frame may end beyond the file.
  bool read_frame(std::uint64_t offset, Frame& frame) const {
    if (!read_structure(offset, frame.header) || frame.header.magic != kFrameMagic || frame.header.checksum != own_checksum(frame.header))
      return false;
    frame.payload = offset + sizeof(DiskFrameHeader) + frame.header.directory_bytes;
    if (frame.header.payload_bytes % kFrameAlignment != 0 || frame.header.directory_bytes % kFrameAlignment != 0 ||
        frame.header.payload_bytes > UINT64_MAX - frame.payload) {
      return false;
    }
    frame.end = frame.payload + frame.header.payload_bytes;
    return true;
  }

  bool read_directory(std::uint64_t offset, const Frame& frame, std::uint64_t first, std::uint64_t last, Directory& out) {
    return read_buffer(offset + sizeof(DiskFrameHeader), frame.header.directory_bytes) &&
           checksum_of(buffer) == frame.header.directory_checksum && parse_directory(buffer, first, last, out);
  }

  bool is_intact(const CompactSection& section) {
    return read_buffer(section.offset, section.stored_bytes) && checksum_of(buffer) == section.checksum;
  }

  std::uint32_t add_process(const CompactProcess& process) {
    const auto [known, is_new] =
        process_index.try_emplace({process.info.pid, process.info.start_ns}, static_cast<std::uint32_t>(processes.size()));
    if (is_new) {
      processes.push_back(process);
    } else {
      processes[known->second] = process;
    }
    return known->second;
  }

  // Takes a directory's contents over; `payload` is what its offsets count from.
  void adopt(const Directory& directory, std::uint64_t payload) {
    std::vector<std::uint32_t> indices;
    for (const CompactProcess& process : directory.processes) indices.push_back(add_process(process));
    for (const ConsumedChunk& chunk : directory.chunks) {
      const ProcessInfo& process = directory.processes[chunk.process].info;
      chunks.push_back({process.pid, process.start_ns, chunk.writer, chunk.sequence});
    }
    for (CompactSection section : directory.sections) {
      section.offset += payload;
      section.process = indices[section.process];
      if (is_intact(section)) {
        sections.push_back(section);
      } else {
        ++damaged_sections;
      }
    }
  }

  bool read_table() {
    DiskTrailer trailer{};
    if (size < sizeof(DiskFileHeader) + sizeof trailer || !read_structure(size - sizeof trailer, trailer) ||
        trailer.magic != kTrailerMagic || trailer.checksum != own_checksum(trailer)) {
      return false;
    }
    Frame frame;
    Directory directory;
    if (!read_frame(trailer.table_offset, frame) || frame.header.type != static_cast<std::uint32_t>(FrameType::table) ||
        !read_directory(trailer.table_offset, frame, sizeof(DiskFileHeader), trailer.table_offset, directory)) {
      return false;
    }
    adopt(directory, 0);
    if (directory.manifest_bytes <= kMaxManifestBytes && read_buffer(directory.manifest_offset, directory.manifest_bytes) &&
        checksum_of(buffer) == directory.manifest_checksum) {
      manifest.assign(reinterpret_cast<const char*>(buffer.data()), buffer.size());
    }
    return true;
  }

  // The last batch of a file that was never finished may have been under way when the machine stopped: its length is there before its bytes
  // are. Its chunks then still lie in the segments, so it counts as a whole or not at all.
  bool is_whole(const Directory& directory, const Frame& frame) {
    if (frame.end != size) return true;
    return std::all_of(directory.sections.begin(), directory.sections.end(), [&](CompactSection section) {
      section.offset += frame.payload;
      return is_intact(section);
    });
  }

  // True when the frame was there as a whole, useful or not.
  bool read_one_frame(std::uint64_t offset, Frame& frame) {
    if (!read_frame(offset, frame) || frame.end > size) return false;
    if (frame.header.type == static_cast<std::uint32_t>(FrameType::manifest)) {
      if (frame.header.payload_bytes <= kMaxManifestBytes && read_buffer(frame.payload, frame.header.payload_bytes)) {
        manifest.assign(reinterpret_cast<const char*>(buffer.data()), buffer.size());
        manifest.resize(manifest.find_last_not_of('\0') + 1);  // padding
      }
      return true;
    }
    // A table repeats what the batches said.
    if (frame.header.type != static_cast<std::uint32_t>(FrameType::batch)) return true;
    Directory directory;
    if (!read_directory(offset, frame, 0, frame.header.payload_bytes, directory) || !is_whole(directory, frame)) return false;
    adopt(directory, frame.payload);
    return true;
  }

  // The next place where a frame header stands, or the end of the file.
  std::uint64_t find_frame(std::uint64_t offset) {
    for (; offset < size; offset += kSearchBytes) {
      const std::uint64_t piece = std::min<std::uint64_t>(kSearchBytes, size - offset);
      if (!read_buffer(offset, piece)) break;
      for (std::uint64_t index = 0; index + sizeof kFrameMagic <= piece; index += kFrameAlignment) {
        std::uint32_t magic = 0;
        std::memcpy(&magic, buffer.data() + index, sizeof magic);
        Frame frame;
        if (magic == kFrameMagic && read_frame(offset + index, frame)) return offset + index;
      }
    }
    return size;
  }

  void read_frames() {
    for (std::uint64_t offset = sizeof(DiskFileHeader); offset < size;) {
      Frame frame;
      if (read_one_frame(offset, frame)) {
        offset = frame.end;
        continue;
      }
      const std::uint64_t next = find_frame(offset + kFrameAlignment);
      skipped_bytes += next - offset;
      offset = next;
    }
  }

  Result<> load() {
    DiskFileHeader header{};
    if (!read_structure(0, header) || header.magic != kCompactMagic)
      return Error{ErrorCode::invalid_argument, "not a recording: it does not begin as one"};
    if (header.version > kCompactVersion) {
      return Error{ErrorCode::unsupported,
                   fmt::format("the recording has format version {}, this libxpu reads up to version {}", header.version, kCompactVersion)};
    }
    finished = read_table();
    if (!finished) read_frames();
    std::sort(chunks.begin(), chunks.end());
    if (damaged_sections != 0) {
      damage = fmt::format("{} of {} blocks are damaged and were left out", damaged_sections, damaged_sections + sections.size());
    }
    if (skipped_bytes != 0)
      damage += fmt::format("{}{} bytes hold no whole batch and were skipped", damage.empty() ? "" : "; ", skipped_bytes);
    buffer = {};
    return {};
  }
};

CompactFile::CompactFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompactFile::~CompactFile() = default;
CompactFile::CompactFile(CompactFile&&) noexcept = default;
CompactFile& CompactFile::operator=(CompactFile&&) noexcept = default;

Result<CompactFile> CompactFile::open(int fd) {
  auto impl = std::make_unique<Impl>();
  impl->fd.reset(fd);
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Error{ErrorCode::invalid_argument, "not a recording: not a regular file"};
  impl->size = static_cast<std::uint64_t>(status.st_size);
  XPU_TRY(impl->load());
  return CompactFile(std::move(impl));
}

Result<CompactFile> CompactFile::from_bytes(std::vector<std::byte> bytes) {
  auto impl = std::make_unique<Impl>();
  impl->size = bytes.size();
  impl->memory = std::move(bytes);
  XPU_TRY(impl->load());
  return CompactFile(std::move(impl));
}

bool CompactFile::finished() const noexcept { return impl_->finished; }
const std::string& CompactFile::manifest() const noexcept { return impl_->manifest; }
const std::vector<CompactProcess>& CompactFile::processes() const noexcept { return impl_->processes; }
const std::vector<CompactSection>& CompactFile::sections() const noexcept { return impl_->sections; }
const std::vector<ChunkKey>& CompactFile::consumed_chunks() const noexcept { return impl_->chunks; }
const std::string& CompactFile::damage() const noexcept { return impl_->damage; }
std::uint64_t CompactFile::file_bytes() const noexcept { return impl_->size; }

Result<> CompactFile::read(const CompactSection& section, BlockDecoder& decoder, std::vector<std::byte>& out) const {
  out.clear();
  if (section.offset > impl_->size || section.stored_bytes > impl_->size - section.offset) {
    return Error{ErrorCode::invalid_argument, "a block lies outside the recording"};
  }
  const auto stored = std::make_unique_for_overwrite<std::byte[]>(section.stored_bytes);
  const std::span<std::byte> bytes(stored.get(), section.stored_bytes);
  if (!impl_->read_at(section.offset, bytes)) return Error{ErrorCode::unavailable, "a block of the recording cannot be read any more"};
  return decoder.decode(section.facts, bytes, out);
}

}  // namespace xpu::trace
