#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "xpu/trace/recording/layout.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::trace::test_support {

/// One record, copied out of a segment.
struct CopiedRecord {
  std::vector<std::byte> bytes;

  const RecordHeader& header() const { return *reinterpret_cast<const RecordHeader*>(bytes.data()); }
  RecordKind kind() const { return static_cast<RecordKind>(header().kind); }
  template <typename Record>
  const Record& as() const {
    return *reinterpret_cast<const Record*>(bytes.data());
  }
};

/// A claimed segment as a recorder sees it: mapped, read, and its chunks given back by the test.
class SegmentView {
 public:
  explicit SegmentView(const std::string& path);
  ~SegmentView();
  SegmentView(SegmentView&& other) noexcept;
  SegmentView(const SegmentView&) = delete;
  SegmentView& operator=(const SegmentView&) = delete;

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  std::uint32_t chunk_count() const { return header().chunk_count.load(); }
  ChunkHeader& chunk(std::uint32_t index) const { return *reinterpret_cast<ChunkHeader*>(base_ + chunk_offset(index)); }
  std::vector<std::uint32_t> chunks_in_state(ChunkState state) const;

  /// Committed records of all chunks that were ever used, chunk by chunk, then their loss slots.
  std::vector<CopiedRecord> records() const;
  std::vector<CopiedRecord> records(RecordKind kind) const;
  /// What the loss areas say, apart from loss records proper.
  std::vector<LossRecord> loss_slots() const;
  std::uint64_t filtered() const;

  /// As a recorder does it, one thread at a time: full chunks become free again. Returns how many, with their records in `*drained` if it
  /// is not null.
  std::size_t recycle(std::vector<CopiedRecord>* drained = nullptr) const;
  /// Makes the file larger and then says so.
  void grow(std::uint32_t chunks);

 private:
  void append_records(std::uint32_t chunk, std::vector<CopiedRecord>& records) const;

  std::string path_;
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

/// A live folder in a temporary directory, without a recorder: what the writing side finds when it starts. Removed at the end.
class LiveFolder {
 public:
  explicit LiveFolder(std::uint32_t chunks_per_segment = 4, std::uint32_t spares = 1, const OptionsBlock* options = nullptr);
  ~LiveFolder();
  LiveFolder(const LiveFolder&) = delete;
  LiveFolder& operator=(const LiveFolder&) = delete;

  const std::string& path() const { return path_; }
  void add_spare(std::uint32_t chunks);
  std::vector<std::string> claimed_paths() const;
  std::size_t spare_count() const;
  /// The only claimed segment; a test failure when there is none or another one.
  SegmentView segment() const;
  /// Of one process.
  SegmentView segment_of(std::uint64_t pid) const;

 private:
  std::string path_;
  std::uint32_t next_spare_ = 0;
};

/// The options of a launcher that is this very process.
OptionsBlock make_options(RecordMode mode = RecordMode::standard);

}  // namespace xpu::trace::test_support
