#include "trace/test_support/live_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace xpu::trace::test_support {
namespace {

constexpr std::uint32_t kMaxChunks = 512;

void write_spare(const std::string& path, std::uint32_t chunks) {
  // Under another name first: a process that is waiting claims it the moment that it is called a spare.
  const std::string unfinished = path + ".part";
  const int file = open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0) << unfinished;
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(segment_bytes(chunks))), 0);
  void* mapped = mmap(nullptr, kSegmentHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* header = static_cast<SegmentHeader*>(mapped);
  header->magic = kSegmentMagic;
  header->format = kSegmentFormat;
  header->chunk_bytes = kChunkBytes;
  header->chunk_count = chunks;
  munmap(mapped, kSegmentHeaderBytes);
  close(file);
  ASSERT_EQ(rename(unfinished.c_str(), path.c_str()), 0);
}

}  // namespace

SegmentView::SegmentView(const std::string& path) : path_(path), mapped_bytes_(segment_bytes(kMaxChunks)) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_GE(file, 0) << path;
  void* mapped = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  base_ = static_cast<std::byte*>(mapped);
}

SegmentView::~SegmentView() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

SegmentView::SegmentView(SegmentView&& other) noexcept
    : path_(std::move(other.path_)), base_(std::exchange(other.base_, nullptr)), mapped_bytes_(other.mapped_bytes_) {}

std::vector<std::uint32_t> SegmentView::chunks_in_state(ChunkState state) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t index = 0; index < chunk_count(); ++index) {
    if (chunk(index).state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(state)) found.push_back(index);
  }
  return found;
}

void SegmentView::append_records(std::uint32_t index, std::vector<CopiedRecord>& records) const {
  if (chunk(index).magic != kChunkMagic) return;
  const std::byte* at = base_ + chunk_offset(index) + kChunkHeaderBytes;
  const std::byte* const end = at + chunk(index).committed.load(std::memory_order_acquire);
  while (at < end) {
    const auto* header = reinterpret_cast<const RecordHeader*>(at);
    ASSERT_GE(header->size, sizeof(RecordHeader));
    ASSERT_EQ(header->size % 8, 0);
    ASSERT_LE(header->size, end - at) << "the last record of chunk " << index << " is not whole";
    records.push_back({{at, at + header->size}});
    at += header->size;
  }
}

std::vector<CopiedRecord> SegmentView::records() const {
  std::vector<CopiedRecord> all;
  for (std::uint32_t index = 0; index < chunk_count(); ++index) append_records(index, all);
  return all;
}

std::vector<CopiedRecord> SegmentView::records(RecordKind kind) const {
  std::vector<CopiedRecord> all = records();
  std::erase_if(all, [&](const CopiedRecord& record) { return record.kind() != kind; });
  return all;
}

std::vector<LossRecord> SegmentView::loss_slots() const {
  std::vector<LossRecord> slots;
  for (std::uint32_t index = 0; index < chunk_count(); ++index) {
    if (chunk(index).magic != kChunkMagic) continue;
    const auto* area = reinterpret_cast<const LossRecord*>(base_ + chunk_offset(index) + kChunkRecordsEnd);
    for (std::uint32_t slot = 0; slot < chunk(index).loss_count.load(); ++slot) slots.push_back(area[slot]);
  }
  return slots;
}

std::uint64_t SegmentView::filtered() const {
  std::uint64_t count = header().filtered.load();
  for (std::uint32_t index = 0; index < chunk_count(); ++index) {
    if (chunk(index).magic == kChunkMagic) count += chunk(index).filtered.load();
  }
  return count;
}

std::size_t SegmentView::recycle(std::vector<CopiedRecord>* drained) const {
  const std::vector<std::uint32_t> full = chunks_in_state(ChunkState::full);
  for (const std::uint32_t index : full) {
    if (drained != nullptr) append_records(index, *drained);
    chunk(index).committed.store(0);
    chunk(index).loss_count.store(0);
    chunk(index).state.store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
  }
  return full.size();
}

void SegmentView::grow(std::uint32_t chunks) {
  ASSERT_LE(chunks, kMaxChunks);
  ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(segment_bytes(chunks))), 0);
  header().chunk_count.store(chunks, std::memory_order_release);
}

OptionsBlock make_options(RecordMode mode) {
  OptionsBlock options{};
  options.magic = kOptionsMagic;
  options.format = kSegmentFormat;
  options.mode = static_cast<std::uint32_t>(mode);
  options.max_live_bytes = std::uint64_t{1} << 30;
  options.recorder_pid = static_cast<std::uint64_t>(getpid());
  return options;
}

LiveFolder::LiveFolder(std::uint32_t chunks_per_segment, std::uint32_t spares, const OptionsBlock* options) {
  std::string pattern = (std::filesystem::temp_directory_path() / "xpu-test-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  path_ = pattern + "/a.xpu.live";
  std::filesystem::create_directory(path_);
  const OptionsBlock block = options != nullptr ? *options : make_options();
  std::ofstream(path_ + "/options", std::ios::binary).write(reinterpret_cast<const char*>(&block), sizeof block);
  for (std::uint32_t i = 0; i < spares; ++i) add_spare(chunks_per_segment);
}

LiveFolder::~LiveFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(std::filesystem::path(path_).parent_path(), ignored);
}

void LiveFolder::add_spare(std::uint32_t chunks) { write_spare(fmt::format("{}/spare-{}.seg", path_, next_spare_++), chunks); }

std::vector<std::string> LiveFolder::claimed_paths() const {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".seg") && !name.starts_with("spare-")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::size_t LiveFolder::spare_count() const {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().starts_with("spare-")) ++count;
  }
  return count;
}

SegmentView LiveFolder::segment() const {
  const std::vector<std::string> paths = claimed_paths();
  EXPECT_EQ(paths.size(), 1u);
  return SegmentView(paths.at(0));
}

SegmentView LiveFolder::segment_of(std::uint64_t pid) const {
  const std::string start = fmt::format("{}/{}-", path_, pid);
  for (const std::string& path : claimed_paths()) {
    if (path.starts_with(start)) return SegmentView(path);
  }
  throw std::runtime_error(fmt::format("process {} has no segment", pid));
}

}  // namespace xpu::trace::test_support
