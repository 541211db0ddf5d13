#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/probe.hpp"
#include "trace/segment.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace {

/// What a dropped record would have said, for the loss area.
struct Dropped {
  std::uint32_t queue = 0;
  probe::LossCause cause = probe::LossCause::no_chunk;
  std::uint32_t flags = 0;  ///< Of the loss record.
  std::uint64_t first_operation = 0, last_operation = 0;
  std::uint64_t count = 1;
  std::uint32_t last_sequence = 0;
};

/// One thread's end of the recording: writes records into a chunk of its own. One owner, the thread.
///
/// Wait-free: `reserve` and `commit` take no lock, allocate nothing and call nothing, except at a chunk change (once in some 2,000
/// launches). Without a free chunk the present one is kept for counting what is dropped, always the newest.
class Writer {
 public:
  /// Called at a chunk change, with the new chunk in place, when strings and objects have to be written again.
  using WriteDefinitions = void (*)(Writer&);

  Writer(Segment& segment, std::uint32_t id, probe::Id thread_name, WriteDefinitions write_definitions) noexcept
      : segment_(segment), header_(segment.header()), id_(id), thread_name_(thread_name), write_definitions_(write_definitions) {}
  /// The thread ends: the recorder may have the chunk.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Segment& segment() const noexcept { return segment_; }
  std::uint32_t id() const noexcept { return id_; }
  bool has_chunk() const noexcept { return chunk_ != nullptr; }

  probe::OperationId next_operation() noexcept { return make_operation(id_, ++operations_); }

  /// Room for `bytes` (a multiple of 8, at most a chunk's) of whole records, or null: then nothing may be written and the caller says what
  /// was dropped. Takes the next chunk when the present one is full.
  std::byte* reserve(std::size_t bytes) noexcept {
    if (static_cast<std::size_t>(end_ - cursor_) >= bytes) [[likely]]
      return cursor_;
    return reserve_in_next_chunk(bytes);
  }
  /// Publishes what was written at `reserve`.
  void commit(std::size_t bytes) noexcept {
    cursor_ += bytes;
    committed_ += bytes;
    chunk_->committed.store(committed_, std::memory_order_release);
  }
  /// Both, for one record.
  template <typename Record>
  [[nodiscard]] bool append(const Record& record) noexcept {
    std::byte* place = reserve(sizeof record);
    if (place == nullptr) return false;
    std::memcpy(place, &record, sizeof record);
    commit(sizeof record);
    return true;
  }
  /// One string record, or several for a long text. False when not all of it found room.
  [[nodiscard]] bool append_string(probe::Id id, std::string_view text) noexcept;
  /// Whole records from `definitions`, as many as find room; false when some did not.
  [[nodiscard]] bool append_records(std::span<const std::byte> records) noexcept;

  /// Counts in the present chunk's loss area, or in the segment's header by a thread that has no chunk.
  void count_dropped(const Dropped& dropped) noexcept;
  void count_filtered() noexcept;

  /// The id of this geometry; `*is_new` says that its record has to be written before the operation's. Call `remember_geometry` once it is.
  std::uint32_t find_geometry(const probe::Geometry& geometry, bool* is_new) noexcept {
    *is_new = false;
    if (same(geometry, last_geometry_)) [[likely]]
      return last_geometry_id_;
    return find_older_geometry(geometry, is_new);
  }
  void remember_geometry(const probe::Geometry& geometry, std::uint32_t id) noexcept;

  /// The interned bytes of a fill pattern, without the lock of `intern` when it is the one of last time.
  probe::Id intern_pattern(std::string_view pattern) noexcept;

  /// The highest sequence number used on a queue: what a forked child must not count as its own.
  void note_sequence(std::uint32_t queue, std::uint32_t sequence) noexcept {
    QueueSequence& entry = sequences_[queue % kQueues];
    if (entry.queue != queue) [[unlikely]]
      replace_sequence(entry, queue);
    entry.sequence = sequence;
  }
  /// In a forked child: the chunk is the parent's and must not be touched. The writer is only fit to be destroyed.
  void abandon_chunk() noexcept { chunk_ = nullptr; }

  // Links of the list of living writers, guarded by its lock.
  Writer* previous = nullptr;
  Writer* next = nullptr;

 private:
  static constexpr std::size_t kGeometries = 256;
  static constexpr std::size_t kQueues = 64;
  static constexpr std::size_t kMaxPatternBytes = 128;
  struct KnownGeometry {
    probe::Geometry geometry;
    std::uint32_t id = 0;
  };
  struct QueueSequence {
    std::uint32_t queue = 0, sequence = 0;
  };
  using Words [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;

  static bool same(const probe::Geometry& a, const probe::Geometry& b) noexcept;
  std::uint32_t find_older_geometry(const probe::Geometry& geometry, bool* is_new) noexcept;
  void release_chunk() noexcept;
  std::byte* reserve_in_next_chunk(std::size_t bytes) noexcept;
  void write_thread() noexcept;
  void replace_sequence(QueueSequence& entry, std::uint32_t queue) noexcept;

  // What every record touches comes first, in one cache line.
  std::byte* cursor_ = nullptr;
  std::byte* end_ = nullptr;
  ChunkHeader* chunk_ = nullptr;
  std::uint64_t committed_ = 0;
  std::uint64_t operations_ = 0;
  Segment& segment_;
  SegmentHeader& header_;
  const std::uint32_t id_;
  std::uint32_t last_geometry_id_ = 0;
  probe::Geometry last_geometry_;
  QueueSequence sequences_[kQueues];

  std::uint32_t next_chunk_sequence_ = 0;
  const probe::Id thread_name_;
  bool thread_is_written_ = false;
  std::uint64_t retry_at_ns_ = 0;
  const WriteDefinitions write_definitions_;
  KnownGeometry geometries_[kGeometries];
  probe::Id pattern_id_ = 0;
  std::uint32_t pattern_bytes_ = 0;
  char pattern_[kMaxPatternBytes] = {};
};

inline bool Writer::same(const probe::Geometry& a, const probe::Geometry& b) noexcept {
  static_assert(sizeof(probe::Geometry) == 80);
  // Every launch asks; byte-wise comparison of a structure without padding, without a branch per field.
  const auto* left = reinterpret_cast<const std::byte*>(&a);
  const auto* right = reinterpret_cast<const std::byte*>(&b);
  Words difference = {0, 0};
  for (std::size_t at = 0; at < sizeof(probe::Geometry); at += sizeof(Words)) {
    Words x, y;
    std::memcpy(&x, left + at, sizeof x);
    std::memcpy(&y, right + at, sizeof y);
    difference |= x ^ y;
  }
  return (difference[0] | difference[1]) == 0;
}

}  // namespace xpu::trace
