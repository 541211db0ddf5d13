#include "trace/recording/recorder_segment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

namespace xpu::trace {
namespace {

// As many chunks as leave three quarters of the free storage to the compacted file, to other segments and to the program.
std::uint32_t affordable_chunks(int fd, std::uint32_t wanted) noexcept {
  struct statvfs status{};
  if (::fstatvfs(fd, &status) != 0) return wanted;
  const std::uint64_t quarter = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize / 4 / kChunkBytes;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, quarter));
}

}  // namespace

Result<RecorderSegment> RecorderSegment::create_spare(int folder, std::uint32_t number, std::uint32_t chunks, bool paused) {
  RecorderSegment segment;
  segment.name_ = fmt::format("spare-{}.seg", number);
  const std::string unfinished = fmt::format("spare-{}.new", number);
  ::unlinkat(folder, unfinished.c_str(), 0);
  XPU_TRY_ASSIGN(segment.file_, create_file_at(folder, unfinished));
  const int fd = segment.file_.get();
  const auto fail = [&](Error error) {
    ::unlinkat(folder, unfinished.c_str(), 0);
    return error;
  };

  std::uint32_t fitting = std::max(affordable_chunks(fd, chunks), kFewestChunks);
  for (;; fitting = std::max(fitting / 2, kFewestChunks)) {
    Result<> allocated = allocate_storage(fd, 0, segment_bytes(fitting), segment.name_);
    if (allocated) break;
    if (fitting == kFewestChunks) return fail(std::move(allocated).error());
    // What a failed try did allocate would be missing for the next.
    if (::ftruncate(fd, 0) != 0) return fail(storage_error("shorten", segment.name_, errno));
  }

  struct stat status{};
  if (!segment.map(fitting) || ::fstat(fd, &status) != 0) return fail(storage_error("map", segment.name_, errno));
  segment.device_ = status.st_dev;
  segment.inode_ = status.st_ino;
  auto* header = new (segment.base_) SegmentHeader{};
  header->magic = kSegmentMagic;
  header->format = kSegmentFormat;
  header->chunk_bytes = kChunkBytes;
  header->paused.store(paused ? 1 : 0, std::memory_order_relaxed);
  segment.prepare_chunks(0, fitting);
  header->chunk_count.store(fitting, std::memory_order_release);
  segment.chunks_ = fitting;
  if (::renameat(folder, unfinished.c_str(), folder, segment.name_.c_str()) != 0)
    return fail(storage_error("rename", segment.name_, errno));
  return segment;
}

RecorderSegment::~RecorderSegment() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
}

RecorderSegment::RecorderSegment(RecorderSegment&& other) noexcept
    : file_(std::move(other.file_)),
      name_(std::move(other.name_)),
      base_(std::exchange(other.base_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      chunks_(other.chunks_),
      released_(std::move(other.released_)),
      device_(other.device_),
      inode_(other.inode_) {}

RecorderSegment& RecorderSegment::operator=(RecorderSegment&& other) noexcept {
  file_ = std::move(other.file_);
  name_ = std::move(other.name_);
  std::swap(base_, other.base_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  chunks_ = other.chunks_;
  released_ = std::move(other.released_);
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

bool RecorderSegment::map(std::uint32_t chunks) noexcept {
  const std::size_t bytes = segment_bytes(chunks);
  void* mapped = base_ == nullptr ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0)
                                  : ::mremap(base_, mapped_bytes_, bytes, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(mapped);
  mapped_bytes_ = bytes;
  return true;
}

void RecorderSegment::prepare_chunks(std::uint32_t first, std::uint32_t last) noexcept {
  for (std::uint32_t index = first; index < last; ++index) {
    auto* header = new (base_ + chunk_offset(index)) ChunkHeader{};
    header->magic = kChunkMagic;
  }
}

bool RecorderSegment::is_named(int folder, const std::string& name) const noexcept {
  struct stat status{};
  return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

std::string RecorderSegment::find_name(int folder) const {
  const int listing = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing < 0) return {};
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(listing), ::closedir);
  if (entries == nullptr) {
    ::close(listing);
    return {};
  }
  while (const dirent* entry = ::readdir(entries.get())) {
    if (entry->d_ino == inode_ && is_named(folder, entry->d_name)) return entry->d_name;
  }
  return {};
}

std::uint32_t RecorderSegment::grow(std::uint32_t chunks) {
  chunks = affordable_chunks(file_.get(), chunks);
  for (; chunks != 0; chunks /= 2) {
    if (allocate_storage(file_.get(), bytes(), std::size_t{chunks} * kChunkBytes, name_)) break;
    // Chunks up to the published count stay; only what the failed try left behind them goes.
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes())) != 0) return 0;
  }
  if (chunks == 0 || !map(chunks_ + chunks)) return 0;
  prepare_chunks(chunks_, chunks_ + chunks);
  chunks_ += chunks;
  header().chunk_count.store(chunks_, std::memory_order_release);
  return chunks;
}

void RecorderSegment::recycle(std::uint32_t index) noexcept {
  ChunkHeader& header = chunk(index);
  // Empty before it is free: a program that is killed just after it took the chunk has not yet written anything here.
  header.committed.store(0, std::memory_order_relaxed);
  header.loss_count.store(0, std::memory_order_relaxed);
  header.filtered.store(0, std::memory_order_relaxed);
  header.state.store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
}

bool RecorderSegment::release_storage() noexcept {
  bool any = false;
  released_.resize(chunks_, false);
  for (std::uint32_t index = 0; index < chunks_; ++index) {
    const auto state = static_cast<ChunkState>(chunk(index).state.load(std::memory_order_acquire));
    if (released_[index] || (state != ChunkState::free && state != ChunkState::drained)) continue;
    // All but the page with the header, which readers look at.
    constexpr off_t kHeaderPage = 4096;
    if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(chunk_offset(index)) + kHeaderPage,
                    static_cast<off_t>(kChunkBytes) - kHeaderPage) != 0) {
      return any;
    }
    released_[index] = true;
    any = true;
  }
  return any;
}

}  // namespace xpu::trace
