#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "memory/address_map.hpp"
#include "memory/block_sizes.hpp"
#include "memory/block_table.hpp"
#include "memory/share_table.hpp"
#include "xpu/memory/config.hpp"

namespace xpu::memory {

/// The blocks of one pool (small or large) of one arena, under that arena's lock.
///
/// It comes in two kinds. An *expandable* region is one range of reserved addresses: memory is put behind it at its end, or at a hole in
/// the middle that whole pages left when they were given back. The other kind is a set of segments that the device allocated. Blocks tile
/// the range or each segment. A region never calls the device: it says what to map, and is told when that is done.
///
/// Free blocks merge at once and lie in bins, of which the best fitting is found by two bit scans. Small blocks are first kept in a list of
/// their exact size, and merge when nothing else fits. The last block of a range borders on addresses without memory: it is used last, so
/// that it can grow.
class Region {
 public:
  struct Kind {
    bool is_small = false;
    bool is_expandable = false;
    bool no_split = false;  ///< Free blocks are handed out whole. Not of an expandable one.
    /// Of large segments: a block of this size is never split, and serves only requests that are that large and not smaller by more than
    /// `max_rounding_bytes`.
    std::size_t max_split_bytes = kUnlimitedBytes;
    std::size_t max_rounding_bytes = kUnlimitedBytes;
  };
  /// How long segments that are free in whole have not been used, in allocations of the region since.
  struct Ages {
    std::uint64_t sum = 0, segments = 0;
  };
  /// Free blocks in segments of which something else is in use; an expandable region has none.
  struct SplitSums {
    std::int64_t blocks = 0, bytes = 0;
    std::int64_t lost_blocks = 0, lost_bytes = 0;  ///< So far.
  };

  Region(BlockTable& blocks, AddressMap& addresses, std::uint16_t arena, Kind kind) noexcept
      : blocks_(blocks.data()),
        table_(blocks),
        addresses_(addresses),
        arena_(arena),
        kind_(kind),
        keeps_exact_sizes_(kind.is_small && !kind.no_split) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const Kind& kind() const noexcept { return kind_; }
  /// 2^shift bytes: see AddressMap. Large blocks are larger than 1 MiB, but segments of both pools may share a slice.
  static constexpr unsigned kSegmentAddressShift = 9;
  unsigned address_shift() const noexcept { return kind_.is_small ? kSegmentAddressShift : 20; }

  /// Of an expandable one, once: its addresses, multiples of `page_bytes`.
  void set_range(std::uint64_t begin, std::size_t bytes, std::size_t page_bytes) noexcept;
  bool has_range() const noexcept { return range_bytes_ != 0; }

  /// A block of exactly so many bytes (or a little more where the rest is not worth a block), live; 0 when no free one fits. `bytes` is a
  /// multiple of a granule.
  [[gnu::always_inline]] BlockIndex take(std::size_t bytes) {
    if (keeps_exact_sizes_) {
      BlockIndex& first = cached_[bytes / kGranuleBytes];
      if (first != 0) return take_cached(first);
    }
    return take_merged(bytes);
  }
  /// Whether a block may serve a request of so many bytes.
  bool fits(const Block& block, std::size_t bytes) const noexcept {
    return block.bytes >= bytes && (kind_.max_split_bytes == kUnlimitedBytes || may_serve(block, bytes));
  }
  bool has_cached(std::size_t bytes) const noexcept { return keeps_exact_sizes_ && cached_[bytes / kGranuleBytes] != 0; }
  /// The reverse: a live or pending block that nobody uses any more.
  [[gnu::always_inline]] void put_back(BlockIndex index) {
    if (!keeps_exact_sizes_) {
      make_free(index);
      return;
    }
    if (cached_count_ == kMostCached) [[unlikely]]
      merge_cached();
    Block& block = at(index);
    BlockIndex& first = cached_[block.bytes / kGranuleBytes];
    block.set(BlockState::cached);
    block.list_next = first;
    first = index;
    ++cached_count_;
    count_free(block, 1);
  }
  /// The same, and merged at once: the free block that it is part of now.
  BlockIndex put_back_merged(BlockIndex index) { return make_free(index); }

  /// What has to be mapped so that a block of that size fits.
  struct Growth {
    BlockIndex block = 0;  ///< In state `moving`.
    std::uint64_t address = 0;
    std::size_t bytes = 0;
  };
  /// Nothing when the range, or the table of blocks, is used up.
  std::optional<Growth> plan_growth(std::size_t bytes);
  /// The free block that the new memory is part of; 0 when it was not mapped.
  BlockIndex finish_growth(const Growth& growth, bool is_mapped);
  /// A segment that the device allocated, as a free block; 0 when the table of blocks is used up.
  BlockIndex add_segment(std::uint64_t address, std::size_t bytes);
  /// As `take`, of this free block; 0 when it is too small.
  BlockIndex take_of(BlockIndex index, std::size_t bytes);

  /// Takes free pages, or free segments, out of use, the largest first, until `wanted_bytes` are out; they are in state `moving`. Returns
  /// the bytes. The caller gives them back to the device once nothing can be using them, and calls `finish_give_back` for each.
  /// `least_age`: leave what has been used since; see `Ages`. Of segments. What is shared stays.
  std::size_t begin_give_back(std::size_t wanted_bytes, std::uint64_t least_age, const ShareTable& shares, std::vector<BlockIndex>& out);
  Ages ages() const;
  void finish_give_back(BlockIndex index);
  /// The device keeps the memory: the block is free again.
  void cancel_give_back(BlockIndex index) { make_free(index); }

  /// The block's segment, or the pages on which it lies.
  MemoryRun run_of(BlockIndex index) const noexcept;
  const SplitSums& split_sums() const noexcept { return splits_; }
  /// Every block, by address; segment after segment. `visit(BlockIndex, const Block&)`.
  template <typename Visit>
  void for_each_block(Visit&& visit) const;

 private:
  static constexpr unsigned kWords = (kBins + 63) / 64;
  static_assert(kWords <= 64, "one word summarises the others");
  /// Blocks of an inexact bin that are looked at.
  static constexpr int kMostSteps = 32;
  static constexpr std::uint32_t kMostCached = 4096;

  Block& at(BlockIndex index) const noexcept { return blocks_[index]; }

  [[nodiscard]] bool have_records(std::uint32_t count) { return record_count_ >= count || fetch_records(); }
  bool fetch_records();
  BlockIndex new_record() noexcept;  // its neighbours are for the caller to set
  void drop_record(BlockIndex index) noexcept;

  BlockIndex take_cached(BlockIndex& first) noexcept {
    const BlockIndex index = first;
    Block& block = at(index);
    first = block.list_next;
    --cached_count_;
    count_free(block, -1);
    block.set(BlockState::live);  // its place in the address map is still its own
    return index;
  }
  BlockIndex take_merged(std::size_t bytes);
  BlockIndex merge_and_take(std::size_t bytes);
  BlockIndex use_free(BlockIndex index, std::size_t bytes);
  BlockIndex use_last_free(std::size_t bytes);
  void merge_into_last_free(BlockIndex index) noexcept;
  BlockIndex find(std::size_t bytes) const noexcept;
  BlockIndex best_of_bin(unsigned bin, std::size_t bytes) const noexcept;
  unsigned next_used_bin(unsigned bin) const noexcept;
  void cut(BlockIndex index, std::size_t bytes);
  void append_after(BlockIndex index, BlockIndex added) noexcept;
  BlockIndex split_off(BlockIndex index, std::size_t first_bytes) noexcept;
  void remove_record(BlockIndex index) noexcept;

  BlockIndex make_free(BlockIndex index);
  void retract(BlockIndex index);
  void merge_next(BlockIndex index) noexcept;
  void bin_insert(BlockIndex index) noexcept;
  void bin_remove(BlockIndex index) noexcept;
  void merge_cached();
  void hole_insert(BlockIndex index) noexcept;
  void hole_remove(BlockIndex index) noexcept;
  /// The hole's part that is missing for a block of that size, from the hole's begin; 0 when that would not do.
  std::size_t missing_in_hole(const Block& hole, std::size_t bytes) const noexcept;
  Growth plan_hole(BlockIndex hole, std::size_t missing_bytes);
  std::optional<Growth> plan_end(std::size_t bytes);
  std::size_t give_back_once(std::size_t wanted_bytes, std::uint64_t least_age, const ShareTable& shares, std::vector<BlockIndex>& out);
  std::size_t give_pages_back(BlockIndex index, std::size_t wanted_bytes, std::uint64_t least_age, const ShareTable& shares,
                              std::vector<BlockIndex>& out);
  bool may_serve(const Block& block, std::size_t bytes) const noexcept {
    if (bytes < kind_.max_split_bytes) return block.bytes < kind_.max_split_bytes;
    return block.bytes - bytes < kind_.max_rounding_bytes;
  }

  void count_free(const Block& block, int direction) noexcept {
    if (kind_.is_expandable || (block.previous == 0 && block.next == 0)) return;
    splits_.blocks += direction;
    splits_.bytes += direction * static_cast<std::int64_t>(block.bytes);
    if (direction > 0) return;
    ++splits_.lost_blocks;
    splits_.lost_bytes += static_cast<std::int64_t>(block.bytes);
  }

  Block* const blocks_;  // of the table: one load less each time
  BlockTable& table_;
  AddressMap& addresses_;
  const std::uint16_t arena_;
  const Kind kind_;
  const bool keeps_exact_sizes_;  // small blocks, in cached_

  std::uint64_t range_begin_ = 0, end_ = 0;  // end_: where blocks end
  std::size_t range_bytes_ = 0, page_bytes_ = 0;
  BlockIndex last_ = 0;                           // of the range
  BlockIndex last_free_ = 0;                      // == last_ while that one is free: it is in no bin
  std::map<std::uint64_t, BlockIndex> segments_;  // of the other kind: the first block of each

  BlockIndex free_records_ = 0;
  std::uint32_t record_count_ = 0;
  std::uint32_t cached_count_ = 0;
  BlockIndex holes_ = 0;
  std::uint64_t takes_ = 0;  // the clock of ages
  SplitSums splits_;
  std::uint64_t summary_ = 0;
  std::array<std::uint64_t, kWords> words_{};
  std::array<BlockIndex, kBins> bins_{};
  std::array<BlockIndex, kExactBins> cached_{};
};

template <typename Visit>
void Region::for_each_block(Visit&& visit) const {
  const auto visit_from = [&](BlockIndex index) {
    for (; index != 0; index = at(index).next) visit(index, static_cast<const Block&>(at(index)));
  };
  if (kind_.is_expandable) {
    BlockIndex first = last_;
    while (first != 0 && at(first).previous != 0) first = at(first).previous;
    visit_from(first);
  } else {
    for (const auto& [address, first] : segments_) visit_from(first);
  }
}

}  // namespace xpu::memory
