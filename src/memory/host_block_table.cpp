#include "memory/host_block_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.hpp"

namespace xpu::memory {

HostBlockTable::HostBlockTable(const HostCachingOptions& options)
    : exact_above_bytes_(std::clamp(std::min(options.exact_above_bytes, options.max_round_threshold_bytes), kMostSmallBytes, kMostBytes)),
      max_cached_bytes_(options.max_cached_bytes),
      class_bins_(size_class_of(exact_above_bytes_) + 1) {}

std::size_t HostBlockTable::segment_bytes(std::size_t requested) const noexcept {
  return requested <= kMostSmallBytes ? kSlabBytes : block_bytes(requested);
}

HostBlock* HostBlockTable::take_slowly(std::size_t requested) {
  if (is_exact(requested)) {
    const auto bin = exact_bins_.find(block_bytes(requested));
    return bin == exact_bins_.end() ? nullptr : take_free(bin->second);
  }
  if (requested > kMostSmallBytes) return nullptr;
  if (HostBlock* block = cut_from_open_slab(requested); block != nullptr) return block;
  return reopen_idle_slab() ? cut_from_open_slab(requested) : nullptr;
}

HostBlock& HostBlockTable::add(void* address, std::size_t requested) {
  HostSegment& segment = segments_.emplace_back();
  segment.address = static_cast<std::byte*>(address);
  segment.bytes = segment_bytes(requested);
  segment.is_slab = requested <= kMostSmallBytes;
  segment.position = std::prev(segments_.end());
  by_address_.emplace(segment.address, &segment);
  if (segment.is_slab) open_slabs_.push_back(&segment);
  HostBlock& block = cut(segment, requested);
  ++segment.used_blocks;
  return block;
}

HostBlock* HostBlockTable::find(const void* pointer) {
  const auto* const address = static_cast<const std::byte*>(pointer);
  auto next_segment = by_address_.upper_bound(address);
  if (next_segment == by_address_.begin()) return nullptr;
  HostSegment& segment = *std::prev(next_segment)->second;
  if (address >= segment.address + segment.cut_bytes) return nullptr;
  auto next_block =
      std::ranges::upper_bound(segment.blocks, address, {}, [](const HostBlock& block) -> const std::byte* { return block.address; });
  return &*std::prev(next_block);
}

bool HostBlockTable::has_pending(std::size_t requested) const {
  const HostBin* const bin = find_bin(requested);
  return bin != nullptr && bin->pending_count != 0;
}

HostSegments HostBlockTable::remove_idle_above(std::size_t bytes) {
  HostSegments removed;
  while (idle_bytes_ > bytes) {
    HostSegment& segment = static_cast<HostSegment&>(*idle_.next);
    end_idle(segment);
    forget_blocks(segment);
    by_address_.erase(segment.address);
    std::erase(open_slabs_, &segment);
    removed.splice(removed.end(), segments_, segment.position);
  }
  return removed;
}

HostSegments HostBlockTable::remove_all() {
  HostSegments removed = remove_idle_above(0);
  removed.splice(removed.end(), segments_);
  index_.clear();
  by_address_.clear();
  open_slabs_.clear();
  exact_bins_.clear();
  for (HostBin& bin : class_bins_) bin = HostBin{};
  return removed;
}

std::size_t HostBlockTable::block_bytes(std::size_t requested) const noexcept {
  const std::size_t class_bytes = size_class_bytes(size_class_of(requested));
  if (!is_exact(requested)) return class_bytes;
  // Where the options make blocks of less than 512 KiB exact, their class wastes less.
  return std::min(class_bytes, (requested + kExactRoundingBytes - 1) / kExactRoundingBytes * kExactRoundingBytes);
}

const HostBin* HostBlockTable::find_bin(std::size_t requested) const {
  if (!is_exact(requested)) return &class_bins_[size_class_of(requested)];
  const auto bin = exact_bins_.find(block_bytes(requested));
  return bin == exact_bins_.end() ? nullptr : &bin->second;
}

HostBin& HostBlockTable::bin_for(std::size_t requested) {
  return is_exact(requested) ? exact_bins_[block_bytes(requested)] : class_bins_[size_class_of(requested)];
}

HostBlock* HostBlockTable::cut_from_open_slab(std::size_t requested) {
  const std::size_t bytes = block_bytes(requested);
  for (; !open_slabs_.empty(); open_slabs_.pop_back()) {
    HostSegment& slab = *open_slabs_.back();
    if (slab.bytes - slab.cut_bytes < bytes) continue;
    use(slab);
    return &cut(slab, requested);
  }
  return nullptr;
}

/// The next block of a segment that has room for it.
HostBlock& HostBlockTable::cut(HostSegment& segment, std::size_t requested) {
  HostBlock& block = segment.blocks.emplace_back();
  block.address = segment.address + segment.cut_bytes;
  block.bytes = block_bytes(requested);
  block.segment = &segment;
  block.bin = &bin_for(requested);
  ++block.bin->block_count;
  block.state = HostBlockState::live;
  segment.cut_bytes += block.bytes;
  index_.insert(block.address, &block);
  return block;
}

/// A program whose sizes have changed does not need the blocks that were cut for the old ones.
bool HostBlockTable::reopen_idle_slab() {
  if (idle_slabs_ == 0) return false;
  HostIdleLink* link = idle_.next;
  while (link != &idle_ && !static_cast<HostSegment*>(link)->is_slab) link = link->next;
  if (!XPU_CHECK(link != &idle_)) return false;
  auto* const slab = static_cast<HostSegment*>(link);
  forget_blocks(*slab);
  open_slabs_.push_back(slab);  // none is open when this is called
  return true;
}

/// Requires an idle segment.
void HostBlockTable::forget_blocks(HostSegment& segment) {
  for (HostBlock& block : segment.blocks) {
    index_.erase(block.address);
    HostBin& bin = *block.bin;
    bin.free_blocks.back()->bin_position = block.bin_position;
    bin.free_blocks[block.bin_position] = bin.free_blocks.back();
    bin.free_blocks.pop_back();
    const bool is_last = --bin.block_count == 0;
    const auto exact = is_last ? exact_bins_.find(block.bytes) : exact_bins_.end();
    if (exact != exact_bins_.end() && &exact->second == &bin) exact_bins_.erase(exact);
  }
  segment.blocks.clear();
  segment.cut_bytes = 0;
}

}  // namespace xpu::memory
