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
      : segment_(segment),
        header_(segment.header()),
        last_operation_(make_operation(id, 0)),
        id_(id),
        epoch_(segment.header().epoch.load(std::memory_order_relaxed)),
        thread_name_(thread_name),
        write_definitions_(write_definitions) {}
  /// The thread ends: the recorder may have the chunk.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Segment& segment() const noexcept { return segment_; }
  std::uint32_t id() const noexcept { return id_; }
  const SegmentHeader& header() const noexcept { return header_; }

  probe::OperationId next_operation() noexcept { return ++last_operation_; }

  /// Somebody reads who has not seen what this thread wrote so far (`SegmentHeader::epoch`).
  bool has_new_reader() const noexcept { return epoch_ != header_.epoch.load(std::memory_order_relaxed); }
  /// Tells that reader who this thread is; geometries are written again when they are next used.
  void introduce_to_reader() noexcept;

  /// Room for `bytes` (a multiple of 8, at most a chunk's) of whole records, or null: then nothing may be written and the caller says what
  /// was dropped. Takes the next chunk when the present one is full.
  std::byte* reserve(std::size_t bytes) noexcept { return has_room(bytes) ? cursor_ : reserve_in_next_chunk(bytes); }
  /// Whether `reserve` would not even have to change the chunk.
  bool has_room(std::size_t bytes) const noexcept { return static_cast<std::size_t>(end_ - cursor_) >= bytes; }
  /// What `reserve` returns when there is room.
  std::byte* cursor() const noexcept { return cursor_; }
  /// Publishes what was written at `reserve`.
  void commit(std::size_t bytes) noexcept {
    cursor_ += bytes;
    const auto committed = static_cast<std::size_t>(cursor_ - reinterpret_cast<std::byte*>(chunk_)) - kChunkHeaderBytes;
    chunk_->committed.store(committed, std::memory_order_release);
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
  std::uint32_t find_geometry(const probe::Geometry& geometry, bool* is_new) noexcept;
  /// The same for the one of last time; 0 when it is another one.
  std::uint32_t find_last_geometry(const probe::Geometry& geometry) const noexcept {
    return same(geometry, last_geometry_) ? last_geometry_id_ : 0;
  }
  void remember_geometry(const probe::Geometry& geometry, std::uint32_t id) noexcept;

  /// The interned bytes of a fill pattern, without the lock of `intern` when it is the one of last time.
  probe::Id intern_pattern(std::string_view pattern) noexcept;

  /// The highest sequence number used on a queue: what a forked child must not count as its own.
  void note_sequence(std::uint32_t queue, std::uint32_t sequence) noexcept {
    if (last_queue_.queue != queue) change_queue(queue);
    last_queue_.sequence = sequence;
  }
  /// For the queue of last time; false, and nothing is noted, when it is another one.
  bool note_sequence_quickly(std::uint32_t queue, std::uint32_t sequence) noexcept {
    if (last_queue_.queue != queue) return false;
    last_queue_.sequence = sequence;
    return true;
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
  static bool same(const probe::Geometry& a, const probe::Geometry& b) noexcept;
  void release_chunk() noexcept;
  std::byte* reserve_in_next_chunk(std::size_t bytes) noexcept;
  bool write_thread() noexcept;
  void write_cost_of_chunk(std::uint64_t begin_ns) noexcept;
  void change_queue(std::uint32_t queue) noexcept;

  // What every record touches comes first, in one cache line.
  std::byte* cursor_ = nullptr;
  std::byte* end_ = nullptr;
  ChunkHeader* chunk_ = nullptr;
  Segment& segment_;
  SegmentHeader& header_;
  std::uint64_t last_operation_;  // writer id and counter
  const std::uint32_t id_;
  std::uint32_t epoch_;
  std::uint32_t last_geometry_id_ = 0;
  probe::Geometry last_geometry_;
  QueueSequence last_queue_;

  std::uint32_t next_chunk_sequence_ = 0;
  const probe::Id thread_name_;
  bool thread_is_written_ = false;
  std::uint64_t retry_at_ns_ = 0;
  const WriteDefinitions write_definitions_;
  QueueSequence other_queues_[kQueues];
  KnownGeometry geometries_[kGeometries];
  probe::Id pattern_id_ = 0;
  std::uint32_t pattern_bytes_ = 0;
  char pattern_[kMaxPatternBytes] = {};
};

inline bool Writer::same(const probe::Geometry& a, const probe::Geometry& b) noexcept {
  // Every launch asks, so no branch per field. What lies beyond the dimensions has fixed values.
  std::uint64_t difference = a.dimensions ^ b.dimensions;
  difference |= (a.global[0] ^ b.global[0]) | (a.local[0] ^ b.local[0]) | (a.offset[0] ^ b.offset[0]);
  if (a.dimensions > 1) difference |= (a.global[1] ^ b.global[1]) | (a.local[1] ^ b.local[1]) | (a.offset[1] ^ b.offset[1]);
  if (a.dimensions > 2) difference |= (a.global[2] ^ b.global[2]) | (a.local[2] ^ b.local[2]) | (a.offset[2] ^ b.offset[2]);
  return difference == 0;
}

}  // namespace xpu::trace
