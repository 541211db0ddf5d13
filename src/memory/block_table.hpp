#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/lazy_array.hpp"

namespace xpu::memory {

/// 0 = none.
using BlockIndex = std::uint32_t;

enum class BlockState : std::uint8_t {
  unused,   ///< A record without a block.
  live,     ///< Somebody's.
  remote,   ///< Freed by a thread that did not wait for the arena's lock; the next holder sees to it.
  pending,  ///< Freed, but other streams may still use it.
  cached,   ///< Free, in the list of its exact size; not merged with its neighbours.
  free,     ///< In a bin, or the last block of a range; merged.
  hole,     ///< Addresses without memory behind them.
  moving,   ///< Memory is being put behind it, or taken away; belongs to the thread that does.
};

/// One block of device memory. Blocks tile a region: `previous` and `next` are the neighbours by address. Written under the lock of its
/// arena, except as said; `arena` and `address` are looked at without it by whoever classifies a pointer.
struct alignas(64) Block {
  std::atomic<std::uint64_t> address;
  std::uint64_t bytes;
  std::uint64_t requested_bytes;
  std::uint64_t uses;  ///< Bit n: the stream of index n may use it, too. See `Arena`.
  BlockIndex previous, next;
  BlockIndex list_previous, list_next;  ///< In the list that it is in.
  std::uint64_t free_since;             ///< Of a free block: see Region::Ages.
  std::uint32_t stack;                  ///< StackId of the allocation of a live block, where it is known.
  std::atomic<std::uint16_t> arena;
  std::atomic<BlockState> state;  ///< Only `live` is left without the lock, to `remote`.
  bool is_small;

  bool is(BlockState wanted) const noexcept { return state.load(std::memory_order_relaxed) == wanted; }
  void set(BlockState next_state) noexcept { state.store(next_state, std::memory_order_relaxed); }
  std::uint64_t begin() const noexcept { return address.load(std::memory_order_relaxed); }
};
static_assert(sizeof(Block) == 64);

/// The records of all blocks of a device. An index stays valid for ever; what it stands for may change. Records are handed out in batches
/// and never returned: an arena keeps those that it does not need.
class BlockTable {
 public:
  static constexpr BlockIndex kBatch = 64;
  static constexpr std::size_t kMostBlocks = std::size_t{1} << 24;

  [[nodiscard]] bool initialize() noexcept { return blocks_.reserve(kMostBlocks); }
  Block& operator[](BlockIndex index) const noexcept { return blocks_[index]; }
  /// The record of index 0; stays where it is.
  Block* data() const noexcept { return &blocks_[0]; }
  /// The first of kBatch records; 0 when there are no more.
  BlockIndex take_batch() noexcept {
    const std::uint32_t first = next_.fetch_add(kBatch, std::memory_order_relaxed);
    if (first < kMostBlocks) return first;
    next_.store(kMostBlocks, std::memory_order_relaxed);
    return 0;
  }

 private:
  LazyArray<Block> blocks_;
  std::atomic<std::uint32_t> next_{kBatch};  // the first batch is left out for the sake of index 0
};

}  // namespace xpu::memory
