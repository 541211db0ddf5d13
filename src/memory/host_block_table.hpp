#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <vector>

#include "memory/host_block_index.hpp"
#include "memory/size_class.hpp"
#include "xpu/memory/host_caching_allocator.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

struct HostBlock;
struct HostSegment;
using HostSegments = std::list<HostSegment>;

/// Free blocks of one size, the last freed at the back: it is the likeliest to be in the processor's caches.
struct HostBin {
  std::vector<HostBlock*> free_blocks;
  std::size_t block_count = 0;    ///< Of this size, whatever their state.
  std::size_t pending_count = 0;  ///< Freed, but streams may still use them.
};

enum class HostBlockState : std::uint8_t { free, live, pending };

struct HostBlock {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  HostSegment* segment = nullptr;
  HostBin* bin = nullptr;
  std::size_t bin_position = 0;  ///< Where it is free.
  HostBlockState state = HostBlockState::free;
  std::uint32_t open_epochs = 0;  ///< Pending: of so many streams the epoch is not complete.
  std::vector<StreamRef> uses;    ///< Each stream once.
  std::uint64_t free_order = 0;   ///< Pending: the smaller, the earlier it was freed.
};

/// A place in the ring of idle segments.
struct HostIdleLink {
  HostIdleLink() = default;
  HostIdleLink(const HostIdleLink&) = delete;
  HostIdleLink& operator=(const HostIdleLink&) = delete;

  HostIdleLink *previous = this, *next = this;
};

/// One allocation of the provider's: a large block, or a slab that small blocks are cut from, front to back.
struct HostSegment : HostIdleLink {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  bool is_slab = false;
  std::size_t cut_bytes = 0;     ///< Behind them no block was cut yet.
  std::size_t used_blocks = 0;   ///< Not free. A segment without any is idle.
  std::deque<HostBlock> blocks;  ///< By address; a record stays where it is.
  HostSegments::iterator position;
};

/// What an allocator of pinned memory knows about its segments and blocks: where blocks lie, which are free, which segments are idle and
/// since when. Plain data: calls no driver, has no lock, and does not know streams.
class HostBlockTable {
 public:
  static constexpr std::size_t kMostSmallBytes = std::size_t{64} << 10;
  static constexpr std::size_t kSlabBytes = std::size_t{2} << 20;
  static constexpr std::size_t kExactRoundingBytes = std::size_t{64} << 10;
  /// A processor cannot address more. Requests above it must not come here.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 47;

  explicit HostBlockTable(const HostCachingOptions& options);
  HostBlockTable(const HostBlockTable&) = delete;
  HostBlockTable& operator=(const HostBlockTable&) = delete;

  /// What a segment must have so that a block for the request comes out of it.
  std::size_t segment_bytes(std::size_t requested) const noexcept;
  /// A block of at least so many bytes, live; null when a segment has to be added first.
  [[gnu::always_inline]] HostBlock* take(std::size_t requested) {
    if (!is_exact(requested)) [[likely]] {
      if (HostBlock* const block = take_free(class_bins_[size_class_of(requested)]); block != nullptr) [[likely]]
        return block;
    }
    return take_slowly(requested);
  }
  /// Adds `segment_bytes(requested)` at `address` and takes a block for the request from it.
  HostBlock& add(void* address, std::size_t requested);
  /// Nobody uses the block any more, and its `uses` are empty.
  [[gnu::always_inline]] void put_back(HostBlock& block) {
    block.state = HostBlockState::free;
    block.bin_position = block.bin->free_blocks.size();
    block.bin->free_blocks.push_back(&block);
    if (--block.segment->used_blocks == 0) begin_idle(*block.segment);
  }

  /// The block that begins there, in any state; null when none does.
  HostBlock* find_begin(const void* pointer) const noexcept { return index_.find(static_cast<const std::byte*>(pointer)); }
  /// The block in which the pointer lies, in any state; null when none does.
  HostBlock* find(const void* pointer);
  /// Whether a block that would do is pending.
  bool has_pending(std::size_t requested) const;

  /// Bytes of idle segments.
  std::size_t idle_bytes() const noexcept { return idle_bytes_; }
  /// Takes idle segments out of the table until no more than `bytes` are idle: first those that are larger than the cap, then those that
  /// were used longest ago.
  HostSegments remove_idle_above(std::size_t bytes);
  /// Takes out everything.
  HostSegments remove_all();

 private:
  std::size_t block_bytes(std::size_t requested) const noexcept;
  bool is_exact(std::size_t requested) const noexcept { return requested > exact_above_bytes_; }
  const HostBin* find_bin(std::size_t requested) const;
  HostBin& bin_for(std::size_t requested);
  [[gnu::always_inline]] HostBlock* take_free(HostBin& bin) {
    if (bin.free_blocks.empty()) return nullptr;
    HostBlock& block = *bin.free_blocks.back();
    bin.free_blocks.pop_back();
    use(*block.segment);
    block.state = HostBlockState::live;
    return &block;
  }
  HostBlock* take_slowly(std::size_t requested);
  HostBlock* cut_from_open_slab(std::size_t requested);
  HostBlock& cut(HostSegment& segment, std::size_t requested);
  bool reopen_idle_slab();
  void use(HostSegment& segment) {
    if (segment.used_blocks++ == 0) end_idle(segment);
  }
  void begin_idle(HostSegment& segment) noexcept {
    // One that alone exceeds the cap must not push out everything else.
    HostIdleLink* const next = segment.bytes > max_cached_bytes_ ? idle_.next : &idle_;
    segment.previous = next->previous;
    segment.next = next;
    segment.previous->next = next->previous = &segment;
    idle_bytes_ += segment.bytes;
    idle_slabs_ += segment.is_slab ? 1 : 0;
  }
  void end_idle(HostSegment& segment) noexcept {
    segment.previous->next = segment.next;
    segment.next->previous = segment.previous;
    idle_bytes_ -= segment.bytes;
    idle_slabs_ -= segment.is_slab ? 1 : 0;
  }
  void forget_blocks(HostSegment& segment);

  const std::size_t exact_above_bytes_, max_cached_bytes_;
  std::vector<HostBin> class_bins_;
  std::map<std::size_t, HostBin> exact_bins_;  // those that have blocks
  HostBlockIndex index_;
  HostSegments segments_;
  HostIdleLink idle_;  // of those that are idle: what follows was used longest ago
  std::size_t idle_bytes_ = 0, idle_slabs_ = 0;
  std::map<const std::byte*, HostSegment*> by_address_;
  std::vector<HostSegment*> open_slabs_;  // with room behind their last block, as far as is known; cut from the last
};

}  // namespace xpu::memory
