#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "memory/block_ledger.hpp"
#include "memory/block_table.hpp"
#include "memory/epoch_clock.hpp"
#include "memory/futex_lock.hpp"
#include "memory/history_ring.hpp"
#include "memory/oversize_count.hpp"
#include "memory/pool_table.hpp"
#include "memory/region.hpp"
#include "memory/stream_table.hpp"
#include "memory/totals.hpp"

namespace xpu::memory {

/// Whose memory an arena holds.
struct ArenaKey {
  std::int64_t stream = 0;
  PoolSlot pool = 0;
  bool operator==(const ArenaKey&) const = default;
};

extern constinit thread_local std::uint32_t t_thread_number __attribute__((tls_model("initial-exec")));
std::uint32_t number_this_thread() noexcept;
inline Pool pool_of(const Block& block) noexcept { return block.is_small ? kSmallPool : kLargePool; }

/// A small number for the calling thread; never 0.
inline std::uint32_t this_thread_number() noexcept { return t_thread_number != 0 ? t_thread_number : number_this_thread(); }

extern constinit thread_local StackId t_call_stack __attribute__((tls_model("initial-exec")));
extern constinit thread_local StackId t_checked_stack __attribute__((tls_model("initial-exec")));

/// The stack of a call of the allocator, for what is noted during it, while this lives: its number for the history, and that for the
/// ledger. One at a time in a thread.
class NotedStack {
 public:
  NotedStack(StackId stack, StackId checked) noexcept {
    t_call_stack = stack;
    t_checked_stack = checked;
  }
  ~NotedStack() { t_call_stack = t_checked_stack = 0; }
  NotedStack(const NotedStack&) = delete;
  NotedStack& operator=(const NotedStack&) = delete;
};

/// The memory of one stream in one pool: its small and its large blocks, those that wait for other streams, and its sums. Lives as long as
/// the allocator. Everything is under `lock` but what says otherwise.
class alignas(128) Arena {
 public:
  /// What the arenas of a device share.
  struct Shared {
    BlockTable& blocks;
    AddressMap& addresses;
    EpochClock& clock;
    const StreamTable& streams;
    std::atomic<std::int64_t>& pending_blocks;  ///< Of all arenas: while there are none, what is active is what is allocated.
    OversizeCount& oversize;
    HistoryRing& history;
    const std::atomic<StackUse>& stack_use;
    BlockLedger& ledger;
  };
  struct Taken {
    BlockIndex block = 0;            ///< 0: there is none.
    bool exceeds_allowance = false;  ///< See `Totals`.
  };

  struct Kind {
    bool is_expandable = false;
    bool no_split = false;
    std::size_t max_split_bytes = kUnlimitedBytes, max_rounding_bytes = kUnlimitedBytes;  // see Region::Kind
  };

  Arena(const Shared& shared, std::uint16_t index, const ArenaKey& key, const Kind& kind) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const ArenaKey& key() const noexcept { return key_; }
  bool is_expandable() const noexcept { return is_expandable_; }

  FutexLock lock;

  /// The name of its pool, which may become another one's while nothing in it is in use.
  const PoolId& pool_id() const noexcept XPU_REQUIRES(lock) { return pool_id_; }
  void set_pool_id(const PoolId& id) noexcept XPU_REQUIRES(lock) {
    pool_id_ = id;
    HistoryRing::look_again(history_);
  }

  /// Where what happens here is noted.
  enum class Watch : std::uint8_t {
    none,
    plain_history,  ///< Only there, and all of it: see `HistoryRing::is_plain`.
    all,            ///< In history or ledger, or counted as oversize, whatever is wanted.
  };
  void set_watch(Watch watch) noexcept XPU_REQUIRES(lock) {
    watch_ = watch;
    HistoryRing::look_again(history_);
  }
  const HistoryRing::Writer& history() const noexcept XPU_REQUIRES(lock) { return history_; }
  /// For the history, when it is watched. The stack is that of the thread's call (`NotedStack`).
  void note(TraceAction action, std::uint64_t address, std::uint64_t bytes) XPU_REQUIRES(lock) {
    if (watch_ != Watch::none) [[unlikely]]
      note_rarely(action, address, bytes);
  }
  /// Stacks of blocks are not known any more.
  void forget_stacks() XPU_REQUIRES(lock);

  /// A live block out of what is free here.
  [[gnu::always_inline]] Taken take(std::size_t bytes, std::size_t requested_bytes) XPU_REQUIRES(lock) {
    const std::uint32_t me = this_thread_number();
    if (owner_.load(std::memory_order_relaxed) != me) [[unlikely]]
      owner_.store(me, std::memory_order_relaxed);
    Region& region = region_of(bytes);
    if (remote_.load(std::memory_order_relaxed) != 0 && !region.has_cached(bytes)) take_remote_frees();
    const BlockIndex index = region.take(bytes);
    if (index == 0) [[unlikely]]
      return {};
    return count_taken(index, requested_bytes);
  }
  /// The same out of this free block of its own, which the memory just came for.
  Taken take_of(BlockIndex index, std::size_t bytes, std::size_t requested_bytes) XPU_REQUIRES(lock);

  /// Whether the calling thread is the one that allocates here. Any other one had better not fight for the lock. Without the lock.
  bool is_owner() const noexcept { return owner_.load(std::memory_order_relaxed) == this_thread_number(); }
  /// Frees a live block; false when it is not live.
  [[gnu::always_inline]] bool put_back(BlockIndex index) XPU_REQUIRES(lock) {
    if (!block(index).is(BlockState::live)) [[unlikely]]
      return false;
    release(index);
    return true;
  }
  /// The same without the lock: whoever holds it next sees to it.
  bool put_back_remotely(BlockIndex index) noexcept;

  /// A stream of this index uses the live block.
  void add_use(BlockIndex index, StreamIndex stream) XPU_REQUIRES(lock);

  /// What other threads freed.
  void take_remote_frees() XPU_REQUIRES(lock);
  /// The same, and pending blocks whose streams are known to be done.
  void collect() XPU_REQUIRES(lock);
  bool has_pending() const noexcept XPU_REQUIRES(lock) { return !pending_.empty(); }
  /// What its pending blocks wait for.
  std::vector<Epoch> waits() const XPU_REQUIRES(lock);

  /// A pending block that is to be taken before the streams that use it are done, because the arena's own stream will wait for them.
  struct Reuse {
    BlockIndex block = 0;  ///< 0: there is none.
    std::vector<Epoch> waits;
  };
  /// The smallest one that fits, the oldest of those. It stays pending, but is nobody else's until one of the other two is called.
  Reuse begin_reuse(std::size_t bytes) XPU_REQUIRES(lock);
  /// The stream waits for all of them.
  Taken finish_reuse(const Reuse& reuse, std::size_t bytes, std::size_t requested_bytes) XPU_REQUIRES(lock);
  /// It does not.
  void cancel_reuse(const Reuse& reuse) XPU_REQUIRES(lock);

  /// None of its memory is in use, as far as is known without asking.
  bool is_idle() const noexcept XPU_REQUIRES(lock) { return value(kSmallPool, kActive) == 0 && value(kLargePool, kActive) == 0; }
  Region& region(bool is_small) noexcept XPU_REQUIRES(lock) { return is_small ? small_ : large_; }
  Totals& totals() noexcept XPU_REQUIRES(lock) { return totals_; }
  /// Whether what is inactive exceeds an allowance: it does so without an allocation.
  bool exceeds_inactive(Pool pool) const noexcept XPU_REQUIRES(lock);
  /// Of the sums of `totals` and of what is inactive; of one pool or of both.
  std::int64_t value(std::size_t row, std::size_t metric) const noexcept XPU_REQUIRES(lock);
  /// Of one pool.
  std::int64_t freed(std::size_t pool, std::size_t metric) const noexcept XPU_REQUIRES(lock);

  /// One at a time takes memory for a region of it or gives it back: the range's end and holes stay as they were planned.
  base::Mutex growth_mutex;

 private:
  static constexpr unsigned kManyUsesBit = 63;
  struct Pending {
    BlockIndex block;
    Epoch until;
  };

  Block& block(BlockIndex index) const noexcept { return blocks_[index]; }
  Region& region_of(std::size_t bytes) noexcept { return is_small(bytes) ? small_ : large_; }

  void note_rarely(TraceAction action, std::uint64_t address, std::uint64_t bytes) XPU_REQUIRES(lock);
  void note_watched(TraceAction action, std::uint64_t address, std::uint64_t bytes, bool is_double) XPU_REQUIRES(lock);
  void note_taken_in_ledger(const Block& taken) XPU_REQUIRES(lock);
  void note_freed_in_ledger(const Block& freed) XPU_REQUIRES(lock);
  [[gnu::always_inline]] void note_taken(Block& taken) XPU_REQUIRES(lock) {
    if (watch_ == Watch::all) return note_taken_everywhere(taken);
    taken.stack = 0;
    note_plainly({read_ticks(), taken.begin(), taken.requested_bytes, 0, TraceAction::alloc, false});
  }
  [[gnu::always_inline]] void note_freed(Block& freed) XPU_REQUIRES(lock) {
    if (watch_ == Watch::all) return note_freed_everywhere(freed);
    note_plainly({read_ticks(), freed.begin(), freed.requested_bytes, 0, TraceAction::free_requested, freed.uses == 0});
  }
  [[gnu::always_inline]] void note_plainly(const HistoryChunk::Entry& entry) XPU_REQUIRES(lock) {
    shared_.history.append_plainly(history_, entry, key_.stream, pool_id_);
  }
  void note_taken_everywhere(Block& taken) XPU_REQUIRES(lock);
  void note_freed_everywhere(Block& freed) XPU_REQUIRES(lock);

  [[gnu::always_inline]] Taken count_taken(BlockIndex index, std::size_t requested_bytes) noexcept XPU_REQUIRES(lock) {
    Block& taken = block(index);
    taken.requested_bytes = requested_bytes;
    if (watch_ != Watch::none) [[unlikely]]
      note_taken(taken);
    const Pool pool = pool_of(taken);
    bool is_exceeded = totals_.add(pool, {1, static_cast<std::int64_t>(taken.bytes), static_cast<std::int64_t>(requested_bytes)});
    if (shared_.pending_blocks.load(std::memory_order_relaxed) != 0) [[unlikely]]
      is_exceeded |= totals_.exceeds_active(pool);
    if (!is_expandable_) is_exceeded |= exceeds_inactive(pool);
    return {index, is_exceeded};
  }
  [[gnu::always_inline]] void release(BlockIndex index) XPU_REQUIRES(lock) {
    Block& freed_block = block(index);
    if (watch_ != Watch::none) [[unlikely]]
      note_freed(freed_block);
    totals_.subtract(pool_of(freed_block),
                     {1, static_cast<std::int64_t>(freed_block.bytes), static_cast<std::int64_t>(freed_block.requested_bytes)});
    if (freed_block.uses != 0) [[unlikely]]
      return make_pending(index);
    (freed_block.is_small ? small_ : large_).put_back(index);
  }
  void make_pending(BlockIndex index) XPU_REQUIRES(lock);
  void end_pending(const Block& freed_block) XPU_REQUIRES(lock);

  const Shared shared_;
  Block* const blocks_;
  const ArenaKey key_;
  const bool is_expandable_;
  Watch watch_ XPU_GUARDED_BY(lock) = Watch::none;
  Totals totals_ XPU_GUARDED_BY(lock);
  Region small_ XPU_GUARDED_BY(lock), large_ XPU_GUARDED_BY(lock);
  std::vector<Pending> pending_ XPU_GUARDED_BY(lock);  // an entry for each use; Block::uses counts those that are left
  const std::size_t max_split_bytes_;
  PoolId pool_id_ XPU_GUARDED_BY(lock);
  HistoryRing::Writer history_ XPU_GUARDED_BY(lock);
  // The streams of blocks with a use beyond index 62; each of these blocks has bit 63.
  std::unordered_map<BlockIndex, std::vector<StreamIndex>> many_uses_ XPU_GUARDED_BY(lock);

  // Lines of their own: other threads write them.
  alignas(128) std::atomic<BlockIndex> remote_{0};  // a stack, linked by Block::list_next
  alignas(128) std::atomic<std::uint32_t> owner_{0};
};

}  // namespace xpu::memory
