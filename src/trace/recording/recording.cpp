#include "xpu/trace/recording/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "trace/recording/compact_file.hpp"
#include "trace/recording/file_handle.hpp"
#include "trace/recording/manifest.hpp"
#include "trace/recording/record_validator.hpp"
#include "trace/recording/recording_path.hpp"
#include "trace/recording/segment_reader.hpp"

namespace xpu::trace {
namespace {

constexpr std::size_t kMaxNamedSegments = 3;

/// What a walk over the segments could not deliver.
struct ChunkDamage {
  std::uint32_t chunks = 0, damaged = 0, missing = 0, moved = 0;
};

std::string read_text(const FileHandle& file, std::size_t limit) {
  std::string text(std::min<std::uint64_t>(file.size(), limit), '\0');
  text.resize(file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

bool wanted(std::span<const RecordKind> kinds, std::uint16_t kind) {
  return kinds.empty() || std::find(kinds.begin(), kinds.end(), static_cast<RecordKind>(kind)) != kinds.end();
}

}  // namespace

struct Recording::Impl {
  struct Segment {
    std::string path;
    std::size_t process = 0;
  };

  std::string path;
  bool live = false;
  Manifest manifest;
  std::vector<ProcessInfo> processes;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> process_by_start;  // pid and start
  std::uint64_t bytes = 0;

  std::optional<CompactFile> compact;           // a live folder may have none yet
  std::vector<std::size_t> process_of_compact;  // index in compact->processes() -> index in processes
  FileHandle growing;                           // of a live folder: outlives the file's name, which changes when the recorder finishes it
  std::vector<Segment> segments;

  std::string damage;
  std::vector<std::string> problems;         // whole clauses, found when the recording was opened
  std::set<std::uint64_t> damaged_sections;  // by offset; found while reading, in spite of their checksums
  ChunkDamage chunk_damage;

  Result<> open_file();
  Result<> open_folder();
  void take_manifest(const std::string& text);
  void take_compacted();
  void take_segments();
  std::size_t process_index(const ProcessInfo& process) const;
  std::size_t add_process(const ProcessInfo& process);
  bool consumed(const ChunkKey& key) const;
  void follow_growth();
  template <typename Visit>
  void walk_segments(Visit&& visit);
  void walk_sections(std::span<const RecordKind> kinds, const Visitor& visit);
  void describe_damage();
};

Result<> Recording::Impl::open_file() {
  FileHandle file = FileHandle::open_regular(path.c_str());
  if (!file) return Error{ErrorCode::invalid_argument, fmt::format("{} cannot be read: {}", path, std::strerror(errno)), errno};
  auto opened = CompactFile::open(file.release());
  if (!opened) return Error{opened.error().code, fmt::format("{}: {}", path, opened.error().message)};
  compact = *std::move(opened);
  bytes = compact->file_bytes();
  if (!compact->finished()) problems.push_back("the end of the file is missing");
  if (!compact->manifest().empty()) take_manifest(compact->manifest());
  take_compacted();
  for (std::size_t index = 0; index < process_of_compact.size(); ++index) {
    processes[process_of_compact[index]].filtered += compact->processes()[index].chunks_filtered;
  }
  return {};
}

Result<> Recording::Impl::open_folder() {
  if (!is_live_folder(path)) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} is not a recording: the folder holds no {}, no {} and no *{}", path,
                                                          kManifestName, kCompactedName, kSegmentSuffix)};
  }
  live = true;
  // Only the recorder puts files there, so a link is a stranger's and is not followed.
  if (const FileHandle file = FileHandle::open_regular((path + "/" + kManifestName).c_str(), O_NOFOLLOW)) {
    bytes += file.size();
    take_manifest(read_text(file, kMaxManifestBytes));
  } else {
    problems.push_back(fmt::format("{} is missing", kManifestName));
  }
  growing = FileHandle::open_regular((path + "/" + kCompactedName).c_str(), O_NOFOLLOW);
  if (growing) {
    auto opened = CompactFile::open(growing.duplicate());
    if (opened) {
      compact = *std::move(opened);
      bytes += compact->file_bytes();
      take_compacted();
    } else if (growing.size() != 0) {
      problems.push_back(fmt::format("{} could not be read ({})", kCompactedName, opened.error().message));
    }
  }
  take_segments();
  return {};
}

void Recording::Impl::take_manifest(const std::string& text) {
  auto parsed = manifest_from_json(text);
  if (parsed) {
    manifest = *std::move(parsed);
  } else {
    problems.push_back(fmt::format("the manifest could not be read ({})", parsed.error().message));
  }
}

void Recording::Impl::take_compacted() {
  std::uint64_t unread_bytes = 0;
  for (const CompactProcess& process : compact->processes()) {
    process_of_compact.push_back(add_process(process.info));
    unread_bytes += process.unread_bytes;
  }
  if (unread_bytes != 0) problems.push_back(fmt::format("{} bytes that a program wrote were not records", unread_bytes));
}

void Recording::Impl::take_segments() {
  std::vector<std::string> unreadable;
  std::set<std::size_t> with_segment;
  for (const std::string& segment : segment_paths(path)) {
    const auto reject = [&](const std::string& reason) {
      unreadable.push_back(fmt::format("{} ({})", std::filesystem::path(segment).filename().string(), reason));
    };
    FileHandle file = FileHandle::open_regular(segment.c_str(), O_NOFOLLOW);
    if (!file) {
      reject(std::strerror(errno));
      continue;
    }
    bytes += file.size();
    const auto reader = SegmentReader::open(file.release());
    if (!reader) {
      reject(reader.error().message);
      continue;
    }
    const ProcessInfo& header = reader->process();
    if (header.state == SegmentState::spare) continue;
    const std::size_t index = add_process(header);
    if (!with_segment.insert(index).second) {
      reject("it repeats another process");
      continue;
    }
    processes[index] = header;
    segments.push_back({segment, index});
  }
  if (!unreadable.empty()) {
    const std::size_t named = std::min(unreadable.size(), kMaxNamedSegments);
    const std::string more = unreadable.size() > named ? fmt::format(" and {} more", unreadable.size() - named) : "";
    problems.push_back(fmt::format("could not read {}{}",
                                   fmt::join(unreadable.begin(), unreadable.begin() + static_cast<std::ptrdiff_t>(named), ", "), more));
  }

  for (std::size_t index = 0; index < process_of_compact.size(); ++index) {
    processes[process_of_compact[index]].filtered += compact->processes()[index].chunks_filtered;
  }
  walk_segments(
      [&](std::size_t process, const SegmentChunk& chunk, std::span<const std::byte>) { processes[process].filtered += chunk.filtered; });
}

/// processes.size() when it is not among them.
std::size_t Recording::Impl::process_index(const ProcessInfo& process) const {
  const auto found = process_by_start.find({process.pid, process.start_ns});
  return found == process_by_start.end() ? processes.size() : found->second;
}

std::size_t Recording::Impl::add_process(const ProcessInfo& process) {
  const auto [found, added] = process_by_start.emplace(std::pair{process.pid, process.start_ns}, processes.size());
  if (added) processes.push_back(process);
  return found->second;
}

bool Recording::Impl::consumed(const ChunkKey& key) const {
  return compact && std::binary_search(compact->consumed_chunks().begin(), compact->consumed_chunks().end(), key);
}

// The recorder may be at work: chunks that were in a segment when the recording was opened may be in the compacted file now.
void Recording::Impl::follow_growth() {
  if (!growing || growing.size() == (compact ? compact->file_bytes() : 0)) return;
  auto opened = CompactFile::open(growing.duplicate());
  if (!opened) return;
  compact = *std::move(opened);
  process_of_compact.clear();
  for (const CompactProcess& process : compact->processes()) {
    process_of_compact.push_back(process_index(process.info));  // what came later is not delivered: processes() stays as it is
  }
}

template <typename Visit>
void Recording::Impl::walk_segments(Visit&& visit) {
  chunk_damage = ChunkDamage{};
  std::vector<std::byte> records;
  for (const Segment& segment : segments) {
    FileHandle file = FileHandle::open_regular(segment.path.c_str(), O_NOFOLLOW);
    if (!file) continue;  // its process ended and all of it is in the compacted file
    const auto reader = SegmentReader::open(file.release());
    if (!reader) continue;
    chunk_damage.chunks += reader->chunk_count() + reader->missing_chunks();
    chunk_damage.missing += reader->missing_chunks();
    for (std::uint32_t index = 0; index < reader->chunk_count(); ++index) {
      const SegmentChunk chunk = reader->chunk(index);
      if (chunk.verdict == SegmentChunk::Verdict::damaged) ++chunk_damage.damaged;
      if (chunk.verdict != SegmentChunk::Verdict::readable || consumed(chunk.key)) continue;
      const SegmentReader::Reading reading = reader->read(index, chunk, records);
      if (reading == SegmentReader::Reading::damaged) ++chunk_damage.damaged;
      if (reading == SegmentReader::Reading::moved) {
        ++chunk_damage.moved;
        continue;
      }
      visit(segment.process, chunk, std::span<const std::byte>(records));
    }
  }
}

void Recording::Impl::walk_sections(std::span<const RecordKind> kinds, const Visitor& visit) {
  if (!compact) return;
  BlockDecoder decoder;
  std::vector<std::byte> records;
  for (const CompactSection& section : compact->sections()) {
    const std::size_t process = process_of_compact[section.process];
    if (process == processes.size() || !wanted(kinds, section.facts.kind)) continue;
    if (!compact->read(section, decoder, records)) {
      damaged_sections.insert(section.offset);
      continue;
    }
    const std::size_t valid = valid_prefix(records).bytes;
    if (valid != records.size()) damaged_sections.insert(section.offset);
    if (valid != 0) visit(process, std::span<const std::byte>(records).first(valid));
  }
}

void Recording::Impl::describe_damage() {
  std::vector<std::string> clauses;
  if (compact && !compact->damage().empty()) clauses.push_back(compact->damage());
  clauses.insert(clauses.end(), problems.begin(), problems.end());
  if (!damaged_sections.empty()) {
    clauses.push_back(fmt::format("{} of {} blocks hold bytes that are not records", damaged_sections.size(), compact->sections().size()));
  }
  if (chunk_damage.damaged != 0)
    clauses.push_back(fmt::format("{} of {} chunks hold bytes that are not records", chunk_damage.damaged, chunk_damage.chunks));
  if (chunk_damage.missing != 0) clauses.push_back(fmt::format("{} of {} chunks are missing", chunk_damage.missing, chunk_damage.chunks));
  if (chunk_damage.moved != 0) {
    clauses.push_back(
        fmt::format("{} chunks were compacted while they were read, so their records are left out this time", chunk_damage.moved));
  }
  damage = fmt::format("{}", fmt::join(clauses, "; "));
}

Result<Recording> Recording::open(const std::string& path) {
  const std::vector<std::string> candidates = recording_candidates(path);
  std::optional<Error> first_error;
  for (const std::string& candidate : candidates) {
    std::error_code error;
    const auto type = std::filesystem::status(candidate, error).type();
    if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none) continue;
    auto impl = std::make_unique<Impl>();
    impl->path = candidate;
    const Result<> opened = type == std::filesystem::file_type::directory ? impl->open_folder() : impl->open_file();
    if (opened) {
      impl->describe_damage();
      return Recording(std::move(impl));
    }
    if (!first_error) first_error = opened.error();
  }
  if (first_error) return *std::move(first_error);
  return Error{ErrorCode::not_found, fmt::format("there is no recording {} (looked for {})", path, fmt::join(candidates, ", "))};
}

Recording::Recording(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recording::~Recording() = default;
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;

const std::string& Recording::path() const noexcept { return impl_->path; }
const Manifest& Recording::manifest() const noexcept { return impl_->manifest; }
bool Recording::finished() const noexcept { return !impl_->live && impl_->compact->finished(); }
const std::string& Recording::damage() const noexcept { return impl_->damage; }
const std::vector<ProcessInfo>& Recording::processes() const noexcept { return impl_->processes; }
std::uint64_t Recording::file_bytes() const noexcept { return impl_->bytes; }

Result<> Recording::for_each_batch(const Visitor& visit) const { return for_each_batch({}, visit); }

Result<> Recording::for_each_batch(std::span<const RecordKind> kinds, const Visitor& visit) const {
  // Segments first: between the snapshot of the compacted file and them the recorder should have little time to move chunks.
  impl_->follow_growth();
  impl_->walk_segments([&](std::size_t process, const SegmentChunk&, std::span<const std::byte> records) {
    if (!records.empty()) visit(process, records);
  });
  impl_->walk_sections(kinds, visit);
  impl_->describe_damage();
  return {};
}

}  // namespace xpu::trace
