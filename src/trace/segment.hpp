#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"

namespace xpu::trace {

/// One claimed segment file, mapped for as long as the process lives: threads keep pointers into it, so it is never unmapped and never
/// destroyed. Thread-safe once claimed.
class Segment {
 public:
  /// Takes a spare segment of the live folder by renaming it, waiting up to `wait_ms` for the recorder to provide one, and writes who has
  /// it. `max_live_bytes` is the recording's limit, of which the recorder gives at most a quarter to one process.
  static Result<Segment*> claim(const std::string& folder, std::uint64_t max_live_bytes, unsigned wait_ms);
  /// One that lies in this process's memory alone, for captures within it: `take_chunk` makes chunks as they are needed, up to
  /// `set_chunk_limit` (none at first). Pages are taken when they are first written.
  static Result<Segment*> create_in_memory();

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentHeader& header() const noexcept { return *header_; }
  bool is_off() const noexcept { return header_->state.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(SegmentState::off); }
  bool is_paused() const noexcept { return header_->paused.load(std::memory_order_relaxed) != 0; }

  /// A free chunk, now open and empty and the caller's own, or null when there is none. Lock-free.
  ChunkHeader* take_chunk(std::uint32_t writer, std::uint32_t sequence, std::uint64_t now_ns) noexcept;

  bool is_in_memory() const noexcept { return is_in_memory_; }
  /// Those that exist and are mapped.
  std::uint32_t chunk_count() const noexcept { return std::min(header_->chunk_count.load(std::memory_order_acquire), mapped_chunks_); }
  ChunkHeader& chunk(std::uint32_t index) noexcept { return *reinterpret_cast<ChunkHeader*>(base_ + chunk_offset(index)); }

  // ---- In memory only; one thread at a time, while others take chunks.
  /// How many chunks may be in use, those that nobody freed yet among them.
  void set_chunk_limit(std::uint64_t chunks) noexcept;
  std::uint32_t chunks_in_use() const noexcept { return chunks_in_use_.load(std::memory_order_relaxed); }
  /// Whether `take_chunk` is worth a try; any thread. False in a file, where only a search tells.
  bool is_known_to_have_room() const noexcept { return is_in_memory_ && chunks_in_use() < chunk_limit_.load(std::memory_order_relaxed); }
  /// A full one may be written again.
  void free_chunk(std::uint32_t index) noexcept;
  /// Gives the memory of free chunks from this one on back to the system.
  void give_back_free_chunks(std::uint32_t first) noexcept;

  /// Called by a thread with the chunk that it has filled, in place of `mark_full`, which it has to call: from then on the recorder may
  /// recycle the chunk. Null: nobody wants to know.
  using FullChunkHandler = void (*)(Segment& segment, std::uint32_t index) noexcept;
  void set_full_chunk_handler(FullChunkHandler handler) noexcept { full_chunk_handler_.store(handler, std::memory_order_release); }
  void hand_over_full(ChunkHeader& chunk) noexcept;
  static void mark_full(ChunkHeader& chunk) noexcept {
    chunk.state.store(static_cast<std::uint32_t>(ChunkState::full), std::memory_order_release);
  }

  /// The process leaves in good order. What is written afterwards (by late static destructors) still counts.
  void close() noexcept;
  /// Nothing more will be written.
  void switch_off(OffReason reason) noexcept;

  /// Set when strings or objects could not be written for want of a chunk: whoever gets the next chunk writes all of them again.
  std::atomic<bool> definitions_missing{true};

 private:
  Segment(std::byte* base, std::uint32_t mapped_chunks, bool is_in_memory)
      : base_(base), header_(reinterpret_cast<SegmentHeader*>(base)), mapped_chunks_(mapped_chunks), is_in_memory_(is_in_memory) {}
  static Result<Segment*> keep(void* base, std::uint32_t mapped_chunks, bool is_in_memory);
  ChunkHeader* take_free_chunk(std::uint32_t first, std::uint32_t end) noexcept;
  ChunkHeader* take_within_limit() noexcept;
  bool make_chunk(std::uint32_t* count) noexcept;
  static Result<Segment*> open_claimed(int folder, const char* name, std::uint64_t max_live_bytes);

  /// All segments of the process, so that none looks leaked: the newest one and what it replaced.
  static constinit inline std::atomic<Segment*> newest_{nullptr};
  Segment* older_ = nullptr;

  std::byte* const base_;
  SegmentHeader* const header_;
  const std::uint32_t mapped_chunks_;
  const bool is_in_memory_;
  std::atomic<std::uint32_t> chunk_limit_{0};
  std::atomic<std::uint32_t> chunks_in_use_{0};
  std::atomic<FullChunkHandler> full_chunk_handler_{nullptr};
  /// Below it there is probably no free chunk.
  std::atomic<std::uint32_t> search_from_{0};
};

}  // namespace xpu::trace
