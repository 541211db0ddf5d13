#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/recording/storage.hpp"
#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"

namespace xpu::trace {

/// A segment file as the recorder has it: made, mapped, grown and recycled here, claimed and written to by a program. One owner at a time.
class RecorderSegment {
 public:
  /// Makes `spare-NUMBER.seg` in `folder` with at most `chunks` ready chunks; when storage is short, with fewer, down to kFewestChunks.
  /// Programs see it whole or not at all. Error: unavailable, when not even that many fit.
  static Result<RecorderSegment> create_spare(int folder, std::uint32_t number, std::uint32_t chunks, bool paused);
  ~RecorderSegment();
  RecorderSegment(RecorderSegment&& other) noexcept;
  RecorderSegment& operator=(RecorderSegment&& other) noexcept;

  static constexpr std::uint32_t kFewestChunks = 4;

  const std::string& name() const noexcept { return name_; }
  SegmentHeader& header() const noexcept { return *reinterpret_cast<SegmentHeader*>(base_); }
  SegmentState state() const noexcept { return static_cast<SegmentState>(header().state.load(std::memory_order_acquire)); }
  std::uint32_t chunk_count() const noexcept { return chunks_; }
  ChunkHeader& chunk(std::uint32_t index) const noexcept { return *reinterpret_cast<ChunkHeader*>(base_ + chunk_offset(index)); }
  std::uint64_t bytes() const noexcept { return segment_bytes(chunks_); }

  /// The file's name now, when a program has renamed it: found by the file's identity. Empty while it is nowhere in the folder.
  std::string find_name(int folder) const;
  /// False when another file, or none, has this name.
  bool is_named(int folder, const std::string& name) const noexcept;
  void set_name(std::string name) { name_ = std::move(name); }

  /// Adds ready chunks, fewer when storage is short; returns how many.
  std::uint32_t grow(std::uint32_t chunks);
  /// Hands a chunk back to the program, empty. What it held must be safe.
  void recycle(std::uint32_t index) noexcept;
  /// Gives the storage of free and drained chunks back to the file system; only when no program can write here any more. False when there
  /// was none.
  bool release_storage() noexcept;

 private:
  RecorderSegment() = default;
  bool map(std::uint32_t chunks) noexcept;
  void prepare_chunks(std::uint32_t first, std::uint32_t last) noexcept;

  UniqueFd file_;
  std::string name_;
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::uint32_t chunks_ = 0;
  std::vector<bool> released_;  // chunks without storage
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace xpu::trace
