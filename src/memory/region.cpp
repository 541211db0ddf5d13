#include "memory/region.hpp"

#include <algorithm>
#include <bit>

namespace xpu::memory {

void Region::set_range(std::uint64_t begin, std::size_t bytes, std::size_t page_bytes) noexcept {
  range_begin_ = end_ = begin;
  range_bytes_ = bytes;
  page_bytes_ = page_bytes;
}

// --- records

bool Region::fetch_records() {
  const BlockIndex first = table_.take_batch();
  if (first == 0) return false;
  for (BlockIndex index = first + BlockTable::kBatch; index-- > first;) {
    at(index).arena.store(arena_, std::memory_order_relaxed);
    at(index).is_small = kind_.is_small;
    drop_record(index);
  }
  return true;
}

inline BlockIndex Region::new_record() noexcept {
  const BlockIndex index = free_records_;
  Block& block = at(index);
  free_records_ = block.list_next;
  --record_count_;
  block.uses = 0;
  return index;
}

inline void Region::drop_record(BlockIndex index) noexcept {
  Block& block = at(index);
  block.set(BlockState::unused);
  block.list_next = free_records_;
  free_records_ = index;
  ++record_count_;
}

inline void Region::append_after(BlockIndex index, BlockIndex added) noexcept {
  Block& block = at(index);
  at(added).previous = index;
  at(added).next = block.next;
  if (block.next != 0) {
    at(block.next).previous = added;
  } else if (kind_.is_expandable) {
    last_ = added;
  }
  block.next = added;
}

/// Leaves the block its first bytes and returns the rest as a block of its own, in no list.
inline BlockIndex Region::split_off(BlockIndex index, std::size_t first_bytes) noexcept {
  const BlockIndex rest = new_record();
  Block& block = at(index);
  at(rest).address.store(block.begin() + first_bytes, std::memory_order_relaxed);
  at(rest).bytes = block.bytes - first_bytes;
  block.bytes = first_bytes;
  append_after(index, rest);
  return rest;
}

/// Takes a block out of the chain of neighbours, and its record out of use.
inline void Region::remove_record(BlockIndex index) noexcept {
  const Block& block = at(index);
  if (block.previous != 0) at(block.previous).next = block.next;
  if (block.next != 0) {
    at(block.next).previous = block.previous;
  } else if (kind_.is_expandable) {
    last_ = block.previous;
  }
  drop_record(index);
}

// --- bins

inline void Region::bin_insert(BlockIndex index) noexcept {
  Block& block = at(index);
  block.set(BlockState::free);
  if (kind_.is_expandable && index == last_) {
    last_free_ = index;
    return;
  }
  block.free_since = takes_;
  count_free(block, 1);
  const unsigned bin = bin_of(block.bytes);
  block.list_previous = 0;
  block.list_next = bins_[bin];
  if (block.list_next != 0) at(block.list_next).list_previous = index;
  bins_[bin] = index;
  words_[bin >> 6] |= std::uint64_t{1} << (bin & 63);
  summary_ |= std::uint64_t{1} << (bin >> 6);
}

inline void Region::bin_remove(BlockIndex index) noexcept {
  const Block& block = at(index);
  count_free(block, -1);
  if (index == last_free_) {
    last_free_ = 0;
    return;
  }
  const unsigned bin = bin_of(block.bytes);
  if (block.list_next != 0) at(block.list_next).list_previous = block.list_previous;
  if (block.list_previous != 0) {
    at(block.list_previous).list_next = block.list_next;
    return;
  }
  bins_[bin] = block.list_next;
  if (bins_[bin] != 0) return;
  words_[bin >> 6] &= ~(std::uint64_t{1} << (bin & 63));
  if (words_[bin >> 6] == 0) summary_ &= ~(std::uint64_t{1} << (bin >> 6));
}

/// The first bin from this one on that has a block; 0 when there is none.
[[gnu::always_inline]] inline unsigned Region::next_used_bin(unsigned bin) const noexcept {
  if (bin >= kBins) return 0;
  const std::uint64_t here = words_[bin >> 6] & (~std::uint64_t{0} << (bin & 63));
  if (here != 0) return (bin & ~63u) + static_cast<unsigned>(std::countr_zero(here));
  const unsigned next_word = (bin >> 6) + 1;
  if (next_word >= kWords) return 0;
  const std::uint64_t later = summary_ & (~std::uint64_t{0} << next_word);
  if (later == 0) return 0;
  const auto word = static_cast<unsigned>(std::countr_zero(later));
  return word * 64 + static_cast<unsigned>(std::countr_zero(words_[word]));
}

/// The smallest block that fits, of those the one with the lowest address; 0 when none of those that are looked at does.
inline BlockIndex Region::best_of_bin(unsigned bin, std::size_t bytes) const noexcept {
  if (bin < kExactBins) return bins_[bin];
  BlockIndex best = 0;
  int steps = kMostSteps;
  for (BlockIndex index = bins_[bin]; index != 0 && steps-- > 0; index = at(index).list_next) {
    const Block& block = at(index);
    if (block.bytes < bytes) continue;
    if (best == 0 || block.bytes < at(best).bytes || (block.bytes == at(best).bytes && block.begin() < at(best).begin())) {
      best = index;
    }
  }
  return best;
}

[[gnu::always_inline]] inline BlockIndex Region::find(std::size_t bytes) const noexcept {
  const unsigned bin = next_used_bin(bin_of(bytes));
  if (bin == 0) return 0;
  const BlockIndex best = best_of_bin(bin, bytes);
  if (best != 0) return best;
  const unsigned larger = next_used_bin(bin + 1);
  return larger == 0 ? 0 : best_of_bin(larger, bytes);
}

// --- taking and putting back

BlockIndex Region::take_merged(std::size_t bytes) {
  if (!have_records(1)) [[unlikely]]
    return 0;
  const BlockIndex index = find(bytes);
  if (index == 0 && cached_count_ != 0) [[unlikely]]
    return merge_and_take(bytes);
  ++takes_;
  if (index != 0) {
    if (kind_.max_split_bytes != kUnlimitedBytes && !may_serve(at(index), bytes)) return 0;
    return use_free(index, bytes);
  }
  return last_free_ != 0 && at(last_free_).bytes >= bytes ? use_last_free(bytes) : 0;
}

BlockIndex Region::merge_and_take(std::size_t bytes) {
  merge_cached();
  return take_merged(bytes);
}

/// As `use_free`, of the last block, which only an expandable region has.
BlockIndex Region::use_last_free(std::size_t bytes) {
  Block& last = at(last_free_);
  const std::uint64_t begin = last.begin();
  BlockIndex index = last_free_;
  if (last.bytes - bytes < kGranuleBytes) {
    last_free_ = 0;
    last.uses = 0;
  } else {
    // The free block keeps its record, and with it its place: only the taken one is linked.
    index = new_record();
    Block& block = at(index);
    block.address.store(begin, std::memory_order_relaxed);
    block.bytes = bytes;
    block.previous = last.previous;
    block.next = last_free_;
    if (last.previous != 0) at(last.previous).next = index;
    last.previous = index;
    last.address.store(begin + bytes, std::memory_order_relaxed);
    last.bytes -= bytes;
  }
  at(index).set(BlockState::live);
  addresses_.set(begin, index);
  return index;
}

/// The reverse: the last free block's neighbour becomes part of it.
inline void Region::merge_into_last_free(BlockIndex index) noexcept {
  Block& last = at(last_free_);
  const Block& block = at(index);
  last.address.store(block.begin(), std::memory_order_relaxed);
  last.bytes += block.bytes;
  last.previous = block.previous;
  if (block.previous != 0) at(block.previous).next = last_free_;
  drop_record(index);
}

BlockIndex Region::take_of(BlockIndex index, std::size_t bytes) {
  return at(index).bytes >= bytes && have_records(1) ? use_free(index, bytes) : 0;
}

BlockIndex Region::use_free(BlockIndex index, std::size_t bytes) {
  bin_remove(index);
  cut(index, bytes);
  Block& block = at(index);
  block.set(BlockState::live);
  block.uses = 0;
  addresses_.set(block.begin(), index);
  return index;
}

/// Makes a block of its own of what is too much, where that is worth one.
inline void Region::cut(BlockIndex index, std::size_t bytes) {
  if (kind_.no_split || bytes >= kind_.max_split_bytes) return;
  // A rest of at most 1 MiB in a segment of the large pool would serve no request of it.
  const std::size_t least_rest = kind_.is_small || kind_.is_expandable ? kGranuleBytes : kSmallestLargeRequest;
  if (at(index).bytes - bytes >= least_rest) bin_insert(split_off(index, bytes));
}

inline void Region::merge_next(BlockIndex index) noexcept {
  const BlockIndex next = at(index).next;
  bin_remove(next);
  at(index).bytes += at(next).bytes;
  remove_record(next);
}

/// Merges with free neighbours, into the block that is returned.
BlockIndex Region::make_free(BlockIndex index) {
  const Block& block = at(index);
  if (block.next != 0 && block.next == last_free_) {
    merge_into_last_free(index);
    const BlockIndex previous = at(last_free_).previous;
    if (previous != 0 && at(previous).is(BlockState::free)) {
      bin_remove(previous);
      merge_into_last_free(previous);
    }
    return last_free_;
  }
  if (block.next != 0 && at(block.next).is(BlockState::free)) merge_next(index);
  if (block.previous != 0 && at(block.previous).is(BlockState::free)) {
    const BlockIndex previous = block.previous;
    bin_remove(previous);
    at(previous).bytes += block.bytes;
    remove_record(index);
    index = previous;
  }
  bin_insert(index);
  return index;
}

void Region::merge_cached() {
  if (cached_count_ == 0) return;
  for (BlockIndex& first : cached_) {
    while (first != 0) {
      const BlockIndex index = first;
      first = at(index).list_next;
      count_free(at(index), -1);
      make_free(index);
    }
  }
  cached_count_ = 0;
}

// --- growing

void Region::hole_insert(BlockIndex index) noexcept {
  Block& block = at(index);
  block.set(BlockState::hole);
  block.list_previous = 0;
  block.list_next = holes_;
  if (holes_ != 0) at(holes_).list_previous = index;
  holes_ = index;
}

void Region::hole_remove(BlockIndex index) noexcept {
  const Block& block = at(index);
  if (block.list_next != 0) at(block.list_next).list_previous = block.list_previous;
  if (block.list_previous != 0) {
    at(block.list_previous).list_next = block.list_next;
  } else {
    holes_ = block.list_next;
  }
}

std::size_t Region::missing_in_hole(const Block& hole, std::size_t bytes) const noexcept {
  std::size_t below = 0;
  if (hole.previous != 0 && at(hole.previous).is(BlockState::free)) below = at(hole.previous).bytes;
  if (below >= bytes) return page_bytes_;  // it fits without: the caller's search stopped early
  const std::size_t missing = bytes - below;
  if (missing <= hole.bytes) return round_up(missing, page_bytes_);
  if (hole.next != 0 && at(hole.next).is(BlockState::free) && missing <= hole.bytes + at(hole.next).bytes) return hole.bytes;
  return 0;
}

Region::Growth Region::plan_hole(BlockIndex index, std::size_t missing_bytes) {
  hole_remove(index);
  if (missing_bytes < at(index).bytes) hole_insert(split_off(index, missing_bytes));
  at(index).set(BlockState::moving);
  return {index, at(index).begin(), missing_bytes};
}

std::optional<Region::Growth> Region::plan_end(std::size_t bytes) {
  const std::size_t below = last_free_ == 0 ? 0 : at(last_free_).bytes;
  const std::size_t missing = below >= bytes ? page_bytes_ : round_up(bytes - below, page_bytes_);
  if (missing > range_begin_ + range_bytes_ - end_) return std::nullopt;
  const BlockIndex before = last_free_;
  if (before != 0) bin_remove(before);
  const BlockIndex added = new_record();
  at(added).address.store(end_, std::memory_order_relaxed);
  at(added).bytes = missing;
  at(added).set(BlockState::moving);
  if (last_ != 0) {
    append_after(last_, added);
  } else {
    at(added).previous = at(added).next = 0;
    last_ = added;
  }
  if (before != 0) bin_insert(before);  // it is not the last one any more
  end_ += missing;
  return Growth{added, end_ - missing, missing};
}

std::optional<Region::Growth> Region::plan_growth(std::size_t bytes) {
  if (!have_records(2)) return std::nullopt;
  BlockIndex best = 0;
  std::size_t least = 0;
  for (BlockIndex index = holes_; index != 0; index = at(index).list_next) {
    const std::size_t missing = missing_in_hole(at(index), bytes);
    if (missing == 0 || (best != 0 && missing >= least)) continue;
    best = index;
    least = missing;
  }
  if (best != 0) return plan_hole(best, least);
  return plan_end(bytes);
}

BlockIndex Region::finish_growth(const Growth& growth, bool is_mapped) {
  if (is_mapped) return make_free(growth.block);
  finish_give_back(growth.block);
  return 0;
}

/// Takes the last block, without memory, away, so that blocks end before it.
void Region::retract(BlockIndex index) {
  end_ = at(index).begin();
  const BlockIndex before = at(index).previous;
  const bool was_free = before != 0 && at(before).is(BlockState::free);
  if (was_free) bin_remove(before);
  remove_record(index);
  if (was_free) bin_insert(before);  // it is the last one now
}

BlockIndex Region::add_segment(std::uint64_t address, std::size_t bytes) {
  if (!have_records(1)) return 0;
  const BlockIndex index = new_record();
  at(index).address.store(address, std::memory_order_relaxed);
  at(index).bytes = bytes;
  at(index).previous = at(index).next = 0;
  segments_[address] = index;
  bin_insert(index);
  return index;
}

// --- giving back

Region::Ages Region::ages() const {
  Ages ages;
  for (const auto& [address, first] : segments_) {
    const Block& block = at(first);
    if (!block.is(BlockState::free) || block.next != 0) continue;
    ages.sum += takes_ - block.free_since;
    ++ages.segments;
  }
  return ages;
}

MemoryRun Region::run_of(BlockIndex index) const noexcept {
  const Block* first = &at(index);
  if (kind_.is_expandable) {
    const std::uint64_t begin = first->begin() - range_begin_;
    return {range_begin_ + begin / page_bytes_ * page_bytes_, range_begin_ + round_up(begin + first->bytes, page_bytes_)};
  }
  while (first->previous != 0) first = &at(first->previous);
  const Block* last = &at(index);
  while (last->next != 0) last = &at(last->next);
  return {first->begin(), last->begin() + last->bytes};
}

std::size_t Region::begin_give_back(std::size_t wanted_bytes, std::uint64_t least_age, const ShareTable& shares,
                                    std::vector<BlockIndex>& out) {
  merge_cached();
  std::size_t given = 0, more = 0;
  do {
    more = give_back_once(wanted_bytes - given, least_age, shares, out);
    given += more;
    // Of a block in which something is shared there may be another part.
  } while (more != 0 && given < wanted_bytes && shares.has_open());
  return given;
}

std::size_t Region::give_back_once(std::size_t wanted_bytes, std::uint64_t least_age, const ShareTable& shares,
                                   std::vector<BlockIndex>& out) {
  std::size_t given = 0;
  if (last_free_ != 0) given += give_pages_back(last_free_, wanted_bytes, least_age, shares, out);
  for (unsigned bin = kBins; bin-- > 1 && given < wanted_bytes;) {
    for (BlockIndex index = bins_[bin]; index != 0 && given < wanted_bytes;) {
      const BlockIndex next = at(index).list_next;
      given += give_pages_back(index, wanted_bytes - given, least_age, shares, out);
      index = next;
    }
  }
  return given;
}

std::size_t Region::give_pages_back(BlockIndex index, std::size_t wanted_bytes, std::uint64_t least_age, const ShareTable& shares,
                                    std::vector<BlockIndex>& out) {
  const Block& block = at(index);
  if (!kind_.is_expandable) {
    if (block.previous != 0 || block.next != 0 || takes_ - block.free_since < least_age) return 0;
    if (shares.has_open() && shares.highest_closed({block.begin(), block.begin() + block.bytes}).is_empty()) return 0;
    bin_remove(index);
    at(index).set(BlockState::moving);
    out.push_back(index);
    return block.bytes;
  }
  const std::uint64_t low = block.begin(), high = low + block.bytes;
  std::uint64_t begin = range_begin_ + round_up(low - range_begin_, page_bytes_);
  std::uint64_t end = high - (high - range_begin_) % page_bytes_;
  if (end <= begin || !have_records(2)) return 0;
  if (shares.has_open()) {
    const MemoryRun closed = shares.highest_closed({begin, end});
    if (closed.is_empty()) return 0;
    begin = closed.begin;
    end = closed.end;
  }
  if (end - begin > wanted_bytes) begin = end - round_up(wanted_bytes, page_bytes_);
  bin_remove(index);
  if (end < high) bin_insert(split_off(index, end - low));
  BlockIndex moving = index;
  if (begin > low) {
    moving = split_off(index, begin - low);
    bin_insert(index);
  }
  at(moving).set(BlockState::moving);
  out.push_back(moving);
  return end - begin;
}

void Region::finish_give_back(BlockIndex index) {
  if (!kind_.is_expandable) {
    segments_.erase(at(index).begin());
    return drop_record(index);
  }
  const Block& block = at(index);
  if (block.next != 0 && at(block.next).is(BlockState::hole)) {
    hole_remove(block.next);
    at(index).bytes += at(block.next).bytes;
    remove_record(block.next);
  }
  if (block.previous != 0 && at(block.previous).is(BlockState::hole)) {
    const BlockIndex previous = block.previous;
    hole_remove(previous);
    at(previous).bytes += block.bytes;
    remove_record(index);
    index = previous;
  }
  if (at(index).next == 0) return retract(index);
  hole_insert(index);
}

}  // namespace xpu::memory
