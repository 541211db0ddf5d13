#include "trace/segment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::trace {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

Error system_error(const std::string& what) {
  const int number = errno;
  return Error{ErrorCode::unavailable, fmt::format("{}: {}", what, std::strerror(number)), number};
}

/// Renames one spare to `claimed_name`. False when there is none at the moment.
bool rename_a_spare(int folder, const char* claimed_name) {
  const int listing = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing < 0) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listing), closedir);
  if (entries == nullptr) {
    close(listing);
    return false;
  }
  while (const dirent* entry = readdir(entries.get())) {
    unsigned number = 0;
    int end = 0;
    if (std::sscanf(entry->d_name, "spare-%u.seg%n", &number, &end) != 1 || end == 0 || entry->d_name[end] != '\0') continue;
    // Another process may be quicker; then its name is gone and the next one is tried.
    if (renameat(folder, entry->d_name, folder, claimed_name) == 0) return true;
  }
  return false;
}

constexpr std::uint32_t kMostChunksInMemory = 16'384;

void sleep_one_millisecond() {
  const timespec wait{0, 1'000'000};
  nanosleep(&wait, nullptr);
}

}  // namespace

Result<Segment*> Segment::claim(const std::string& folder, std::uint64_t max_live_bytes, unsigned wait_ms) {
  const FileDescriptor directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.get() < 0) return system_error(fmt::format("cannot open the recording's folder {}", folder));

  for (unsigned waited_ms = 0;; ++waited_ms) {
    // The name is new in every round: a start that is a little late would be no harm, one that existed would.
    const std::uint64_t start_ns = now_ns(probe::clock_domain());
    const std::string name = fmt::format("{}-{}.seg", getpid(), start_ns);
    if (rename_a_spare(directory.get(), name.c_str())) {
      XPU_TRY_ASSIGN(Segment * segment, open_claimed(directory.get(), name.c_str(), max_live_bytes));
      SegmentHeader& header = segment->header();
      header.pid = static_cast<std::uint64_t>(getpid());
      header.start_ns = start_ns;
      header.domain = static_cast<std::uint32_t>(probe::clock_domain());
      header.state.store(static_cast<std::uint32_t>(SegmentState::attached), std::memory_order_release);
      return segment;
    }
    if (waited_ms == wait_ms) break;
    sleep_one_millisecond();
  }
  return Error{ErrorCode::unavailable, fmt::format("{} had no spare segment within {} ms; is its recorder alive?", folder, wait_ms)};
}

Result<Segment*> Segment::open_claimed(int folder, const char* name, std::uint64_t max_live_bytes) {
  const FileDescriptor file(openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0) return system_error(fmt::format("cannot open segment {}", name));
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return system_error(fmt::format("cannot examine segment {}", name));
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || static_cast<std::uint64_t>(status.st_size) < segment_bytes(1)) {
    return Error{ErrorCode::invalid_argument, fmt::format("segment {} is not a file of ours with at least one chunk", name)};
  }

  // Mapped once for the largest size that the recorder may grow it to, so that growing needs nothing here. Pages beyond the end of the
  // file cannot be touched (SIGBUS): `chunk_count` says how far the file reaches.
  const std::uint64_t quarter = std::min<std::uint64_t>(max_live_bytes / 4 / kChunkBytes, std::uint64_t{1} << 20);
  auto chunks = static_cast<std::uint32_t>(std::max<std::uint64_t>(quarter, kFirstChunks));
  void* base = mmap(nullptr, segment_bytes(chunks), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED && chunks > kFirstChunks) {  // a limit on address space
    chunks = kFirstChunks;
    base = mmap(nullptr, segment_bytes(chunks), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  }
  if (base == MAP_FAILED) return system_error(fmt::format("cannot map segment {}", name));

  const auto* header = static_cast<const SegmentHeader*>(base);
  const std::uint64_t existing = header->chunk_count.load(std::memory_order_acquire);
  if (header->magic != kSegmentMagic || header->format != kSegmentFormat || header->chunk_bytes != kChunkBytes ||
      static_cast<std::uint64_t>(status.st_size) < kSegmentHeaderBytes + existing * kChunkBytes) {
    munmap(base, segment_bytes(chunks));
    return Error{ErrorCode::invalid_argument, fmt::format("segment {} is not of format {}", name, kSegmentFormat)};
  }
  return keep(base, chunks, false);
}

Result<Segment*> Segment::create_in_memory() {
  // Only addresses are taken: sixteen thousand chunks are room for some sixty million records. Less where a limit on them is in the way.
  void* base = MAP_FAILED;
  std::uint32_t chunks = 4 * kMostChunksInMemory;
  while (base == MAP_FAILED && chunks > kFirstChunks) {
    chunks /= 4;
    base = mmap(nullptr, segment_bytes(chunks), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (base == MAP_FAILED) return system_error("cannot map memory for records");
  auto& header = *static_cast<SegmentHeader*>(base);
  header.magic = kSegmentMagic;
  header.format = kSegmentFormat;
  header.chunk_bytes = kChunkBytes;
  header.pid = static_cast<std::uint64_t>(getpid());
  header.start_ns = now_ns(probe::clock_domain());
  header.domain = static_cast<std::uint32_t>(probe::clock_domain());
  header.state.store(static_cast<std::uint32_t>(SegmentState::attached), std::memory_order_relaxed);
  return keep(base, chunks, true);
}

Result<Segment*> Segment::keep(void* base, std::uint32_t mapped_chunks, bool is_in_memory) {
  auto* segment = new (std::nothrow) Segment(static_cast<std::byte*>(base), mapped_chunks, is_in_memory);
  if (segment == nullptr) {
    munmap(base, segment_bytes(mapped_chunks));
    return Error{ErrorCode::out_of_host_memory, "no memory for a segment"};
  }
  // What a capture is told anyway need not be written.
  if (is_in_memory) segment->definitions_missing.store(false, std::memory_order_relaxed);
  segment->older_ = newest_.exchange(segment);
  return segment;
}

ChunkHeader* Segment::take_free_chunk(std::uint32_t first, std::uint32_t end) noexcept {
  for (std::uint32_t index = first; index < end; ++index) {
    ChunkHeader& candidate = chunk(index);
    auto expected = static_cast<std::uint32_t>(ChunkState::free);
    if (candidate.state.load(std::memory_order_relaxed) != expected) continue;
    if (candidate.state.compare_exchange_strong(expected, static_cast<std::uint32_t>(ChunkState::open), std::memory_order_acquire,
                                                std::memory_order_relaxed)) {
      search_from_.store(index + 1, std::memory_order_relaxed);
      return &candidate;
    }
  }
  return nullptr;
}

bool Segment::make_chunk(std::uint32_t* count) noexcept {
  // Memory that was never written is zero, which is a free chunk.
  while (*count < mapped_chunks_) {
    if (header_->chunk_count.compare_exchange_weak(*count, *count + 1, std::memory_order_acq_rel)) {
      ++*count;
      return true;
    }
  }
  return false;
}

/// In memory. Thousands of full chunks may wait in front of the first free one, so the search begins behind them.
ChunkHeader* Segment::take_within_limit() noexcept {
  if (chunks_in_use_.fetch_add(1, std::memory_order_relaxed) < chunk_limit_.load(std::memory_order_relaxed)) {
    std::uint32_t count = header_->chunk_count.load(std::memory_order_acquire);
    const std::uint32_t first = std::min(search_from_.load(std::memory_order_relaxed), count);
    ChunkHeader* taken = take_free_chunk(first, count);
    if (taken == nullptr && first != 0) taken = take_free_chunk(0, first);
    while (taken == nullptr && make_chunk(&count)) taken = take_free_chunk(count - 1, count);
    if (taken != nullptr) return taken;
  }
  chunks_in_use_.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

ChunkHeader* Segment::take_chunk(std::uint32_t writer, std::uint32_t sequence, std::uint64_t now_ns) noexcept {
  // Always the lowest free one: the chunks that were recycled last are the ones whose pages and cache lines are warm, and chunks that are
  // not needed are never touched.
  ChunkHeader* taken = is_in_memory_ ? take_within_limit() : take_free_chunk(0, chunk_count());
  if (taken == nullptr) return nullptr;

  // Whoever reads after a crash believes `committed` only, so it is nothing before the names are right.
  taken->committed.store(0, std::memory_order_relaxed);
  taken->loss_count.store(0, std::memory_order_relaxed);
  taken->filtered.store(0, std::memory_order_relaxed);
  taken->magic = kChunkMagic;
  taken->writer = writer;
  taken->sequence = sequence;
  taken->first_ns = now_ns;
  header_->chunks_taken.fetch_add(1, std::memory_order_relaxed);
  return taken;
}

void Segment::hand_over_full(ChunkHeader& chunk) noexcept {
  const FullChunkHandler handler = full_chunk_handler_.load(std::memory_order_acquire);
  if (handler == nullptr) return mark_full(chunk);
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&chunk) - base_);
  handler(*this, static_cast<std::uint32_t>((offset - kSegmentHeaderBytes) / kChunkBytes));
}

void Segment::set_chunk_limit(std::uint64_t chunks) noexcept {
  chunk_limit_.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, mapped_chunks_)), std::memory_order_relaxed);
}

void Segment::free_chunk(std::uint32_t index) noexcept {
  ChunkHeader& full = chunk(index);
  // Before it can be taken: a reader that finds it open must not believe the old bytes.
  full.committed.store(0, std::memory_order_relaxed);
  full.loss_count.store(0, std::memory_order_relaxed);
  full.filtered.store(0, std::memory_order_relaxed);
  full.state.store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
  chunks_in_use_.fetch_sub(1, std::memory_order_relaxed);
  std::uint32_t from = search_from_.load(std::memory_order_relaxed);
  while (index < from && !search_from_.compare_exchange_weak(from, index, std::memory_order_relaxed)) {
  }
}

void Segment::give_back_free_chunks(std::uint32_t first) noexcept {
  for (std::uint32_t index = first; index < chunk_count(); ++index) {
    ChunkHeader& candidate = chunk(index);
    auto expected = static_cast<std::uint32_t>(ChunkState::free);
    // As if it were taken, until its page is zero, which is free again.
    if (candidate.state.compare_exchange_strong(expected, static_cast<std::uint32_t>(ChunkState::drained), std::memory_order_acquire)) {
      madvise(&candidate, kChunkBytes, MADV_DONTNEED);
    }
  }
}

void Segment::close() noexcept {
  auto attached = static_cast<std::uint32_t>(SegmentState::attached);
  header_->state.compare_exchange_strong(attached, static_cast<std::uint32_t>(SegmentState::closed), std::memory_order_acq_rel);
}

void Segment::switch_off(OffReason reason) noexcept {
  header_->off_reason.store(static_cast<std::uint32_t>(reason), std::memory_order_relaxed);
  header_->paused.store(1, std::memory_order_relaxed);  // the hot path looks at this alone
  header_->state.store(static_cast<std::uint32_t>(SegmentState::off), std::memory_order_release);
}

}  // namespace xpu::trace
