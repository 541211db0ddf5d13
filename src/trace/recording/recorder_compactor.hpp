#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "trace/recording/columns.hpp"
#include "trace/recording/compact_file.hpp"
#include "xpu/trace/recording/layout.hpp"

namespace xpu::trace {

/// Turns the chunks of one process into sections of a batch: first `take` for each chunk, in the order of writing, then `encode` once.
/// Chunks lie in memory that another process may write to, so everything is copied before it is looked at. One owner at a time.
class ChunkCompactor {
 public:
  /// What a chunk held.
  struct Contents {
    std::uint32_t writer = 0, sequence = 0;
    std::uint64_t filtered = 0;
    std::uint64_t operations = 0;    ///< operation_submitted records.
    std::uint64_t unread_bytes = 0;  ///< Committed bytes behind the last whole record.
  };

  /// Copies the chunk's committed records and loss slots. `chunk` is followed by the rest of its kChunkBytes.
  Contents take(const ChunkHeader& chunk);
  /// Appends a section per kind (several when there are many records) and forgets the records.
  void encode(std::uint32_t process, CompactBatch& batch);

 private:
  // Records of one kind, one after the other; grows without writing zeros first.
  struct Lane {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0, room = 0;
    void append(const std::byte* record, std::size_t record_bytes);
  };
  static constexpr std::size_t kCommonKinds = 64;

  Lane& lane_of(std::uint16_t kind) { return kind < kCommonKinds ? common_[kind] : rare_[kind]; }
  std::uint64_t split(std::span<const std::byte> records);
  void encode_lane(std::uint32_t process, std::uint16_t kind, Lane& lane, CompactBatch& batch);

  BlockEncoder encoder_;
  std::vector<std::byte> copy_;
  Lane common_[kCommonKinds];
  std::map<std::uint16_t, Lane> rare_;  // kinds that this version does not know
};

}  // namespace xpu::trace
