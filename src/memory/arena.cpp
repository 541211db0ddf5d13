#include "memory/arena.hpp"

#include <algorithm>
#include <utility>

namespace xpu::memory {

// The attribute once more: a definition without it, in the same translation unit, would undo it.
constinit thread_local std::uint32_t t_thread_number __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local StackId t_call_stack __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local StackId t_checked_stack __attribute__((tls_model("initial-exec"))) = 0;

std::uint32_t number_this_thread() noexcept {
  static constinit std::atomic<std::uint32_t> last{0};
  t_thread_number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return t_thread_number;
}

Arena::Arena(const Shared& shared, std::uint16_t index, const ArenaKey& key, const Kind& kind) noexcept
    : shared_(shared),
      blocks_(shared.blocks.data()),
      key_(key),
      is_expandable_(kind.is_expandable),
      small_(shared.blocks, shared.addresses, index, {true, kind.is_expandable, kind.no_split, kUnlimitedBytes, kUnlimitedBytes}),
      large_(shared.blocks, shared.addresses, index,
             {false, kind.is_expandable, kind.no_split, kind.max_split_bytes, kind.max_rounding_bytes}),
      max_split_bytes_(kind.max_split_bytes) {}

inline void Arena::note_watched(TraceAction action, std::uint64_t address, std::uint64_t bytes, bool is_double) {
  const StackUse least_use = action == TraceAction::alloc ? StackUse::alloc : StackUse::all;
  TraceEntry entry;
  entry.address = address;
  entry.bytes = bytes;
  entry.stream = key_.stream;
  entry.pool = pool_id_;
  entry.stack = shared_.stack_use.load(std::memory_order_relaxed) >= least_use ? t_call_stack : 0;
  entry.action = action;
  shared_.history.append(history_, entry, is_double);
}

void Arena::note_rarely(TraceAction action, std::uint64_t address, std::uint64_t bytes) { note_watched(action, address, bytes, false); }

// Not inlined, so that a history does not pay for what it does not use.
[[gnu::noinline]] void Arena::note_taken_in_ledger(const Block& taken) {
  shared_.ledger.note_taken({taken.begin(), taken.bytes, taken.requested_bytes, key_.stream, pool_id_, t_checked_stack, 0, 0});
}
[[gnu::noinline]] void Arena::note_freed_in_ledger(const Block& freed) {
  shared_.ledger.note_freed({freed.begin(), freed.bytes, freed.requested_bytes, key_.stream, pool_id_, 0, 0, 0}, t_checked_stack);
}

void Arena::note_taken_everywhere(Block& taken) {
  taken.stack = t_call_stack;
  if (shared_.ledger.is_on()) [[unlikely]]
    note_taken_in_ledger(taken);
  if (taken.bytes >= max_split_bytes_) shared_.oversize.add(1);
  note_watched(TraceAction::alloc, taken.begin(), taken.requested_bytes, false);
}

void Arena::note_freed_everywhere(Block& freed) {
  freed.stack = 0;
  if (shared_.ledger.is_on()) [[unlikely]]
    note_freed_in_ledger(freed);
  if (freed.bytes >= max_split_bytes_) shared_.oversize.add(-1);
  note_watched(TraceAction::free_requested, freed.begin(), freed.requested_bytes, freed.uses == 0);
}

void Arena::forget_stacks() {
  for (Region* const region : {&small_, &large_}) {
    region->for_each_block([&](BlockIndex index, const Block&) { block(index).stack = 0; });
  }
}

Arena::Taken Arena::take_of(BlockIndex index, std::size_t bytes, std::size_t requested_bytes) {
  const BlockIndex taken = region_of(bytes).take_of(index, bytes);
  return taken == 0 ? Taken{} : count_taken(taken, requested_bytes);
}

bool Arena::put_back_remotely(BlockIndex index) noexcept {
  Block& freed_block = block(index);
  BlockState state = BlockState::live;
  // The state decides who may use the link: of two threads that free one block, one is refused.
  if (!freed_block.state.compare_exchange_strong(state, BlockState::remote, std::memory_order_relaxed)) return false;
  BlockIndex first = remote_.load(std::memory_order_relaxed);
  do {
    freed_block.list_next = first;
  } while (!remote_.compare_exchange_weak(first, index, std::memory_order_release, std::memory_order_relaxed));
  return true;
}

void Arena::take_remote_frees() {
  BlockIndex index = remote_.exchange(0, std::memory_order_acquire);
  while (index != 0) {
    const BlockIndex next = block(index).list_next;
    release(index);
    index = next;
  }
}

void Arena::add_use(BlockIndex index, StreamIndex stream) {
  Block& used = block(index);
  if (stream < kManyUsesBit) {
    used.uses |= std::uint64_t{1} << stream;
    return;
  }
  used.uses |= std::uint64_t{1} << kManyUsesBit;
  std::vector<StreamIndex>& streams = many_uses_[index];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void Arena::make_pending(BlockIndex index) {
  Block& freed_block = block(index);
  std::vector<StreamIndex> streams;
  if ((freed_block.uses >> kManyUsesBit) != 0) {
    streams = std::move(many_uses_.extract(index).mapped());
  }
  for (StreamIndex stream = 0; stream < kManyUsesBit; ++stream) {
    if ((freed_block.uses >> stream & 1) != 0) streams.push_back(stream);
  }
  for (const StreamIndex stream : streams) {
    pending_.push_back({index, shared_.clock.note_free(shared_.streams.at(stream), freed_block.bytes)});
  }
  freed_block.uses = streams.size();
  freed_block.set(BlockState::pending);
  totals_.add_pending(pool_of(freed_block), static_cast<std::int64_t>(freed_block.bytes), 1);
  shared_.pending_blocks.fetch_add(1, std::memory_order_relaxed);
}

void Arena::end_pending(const Block& freed_block) {
  totals_.add_pending(pool_of(freed_block), static_cast<std::int64_t>(freed_block.bytes), -1);
  shared_.pending_blocks.fetch_sub(1, std::memory_order_relaxed);
  note(TraceAction::free_completed, freed_block.begin(), freed_block.requested_bytes);
}

void Arena::collect() {
  if (remote_.load(std::memory_order_relaxed) != 0) take_remote_frees();
  std::size_t kept = 0;
  for (const Pending& pending : pending_) {
    if (!shared_.clock.is_complete(pending.until)) {
      pending_[kept++] = pending;
      continue;
    }
    Block& used = block(pending.block);
    if (--used.uses != 0) continue;
    end_pending(used);
    (used.is_small ? small_ : large_).put_back(pending.block);
  }
  pending_.resize(kept);
}

std::vector<Epoch> Arena::waits() const {
  std::vector<Epoch> all;
  all.reserve(pending_.size());
  for (const Pending& pending : pending_) all.push_back(pending.until);
  return all;
}

Arena::Reuse Arena::begin_reuse(std::size_t bytes) {
  const Region& region = region_of(bytes);
  Reuse reuse;
  for (const Pending& pending : pending_) {
    const Block& candidate = block(pending.block);
    if (candidate.is_small != is_small(bytes) || !region.fits(candidate, bytes)) continue;
    if (reuse.block == 0 || candidate.bytes < block(reuse.block).bytes) reuse.block = pending.block;
  }
  std::erase_if(pending_, [&](const Pending& pending) {
    if (pending.block != reuse.block) return false;
    reuse.waits.push_back(pending.until);
    return true;
  });
  return reuse;
}

Arena::Taken Arena::finish_reuse(const Reuse& reuse, std::size_t bytes, std::size_t requested_bytes) {
  Block& used = block(reuse.block);
  used.uses = 0;
  end_pending(used);
  // Free neighbours are in the order of the stream, too.
  return take_of(region_of(bytes).put_back_merged(reuse.block), bytes, requested_bytes);
}

void Arena::cancel_reuse(const Reuse& reuse) {
  for (const Epoch& epoch : reuse.waits) pending_.push_back({reuse.block, epoch});
}

std::int64_t Arena::value(std::size_t row, std::size_t metric) const noexcept {
  if (metric != kInactiveSplit && metric != kInactiveSplitBytes) return totals_.value(row, metric);
  if (row == kAllPools) return value(kSmallPool, metric) + value(kLargePool, metric);
  const Region::SplitSums& splits = (row == kSmallPool ? small_ : large_).split_sums();
  return metric == kInactiveSplit ? splits.blocks : splits.bytes;
}

std::int64_t Arena::freed(std::size_t pool, std::size_t metric) const noexcept {
  const Region::SplitSums& splits = (pool == kSmallPool ? small_ : large_).split_sums();
  if (metric == kInactiveSplit) return splits.lost_blocks;
  if (metric == kInactiveSplitBytes) return splits.lost_bytes;
  return totals_.freed(pool, metric);
}

bool Arena::exceeds_inactive(Pool pool) const noexcept {
  for (const std::size_t row : {static_cast<std::size_t>(pool), static_cast<std::size_t>(kAllPools)}) {
    for (const std::size_t metric : {kInactiveSplit, kInactiveSplitBytes}) {
      if (value(row, metric) > totals_.allowance()[row][metric]) return true;
    }
  }
  return false;
}

}  // namespace xpu::memory
