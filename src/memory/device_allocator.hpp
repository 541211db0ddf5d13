#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "memory/address_map.hpp"
#include "memory/arena_table.hpp"
#include "memory/block_ledger.hpp"
#include "memory/block_table.hpp"
#include "memory/device_memory.hpp"
#include "memory/epoch_clock.hpp"
#include "memory/history_ring.hpp"
#include "memory/peaks.hpp"
#include "memory/pool_table.hpp"
#include "memory/share_table.hpp"
#include "memory/snapshot_file.hpp"
#include "memory/stream_table.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {

/// What DeviceCachingAllocator is made of. The short way of an allocation or a free is here: one arena, one lock, no call of anything else.
/// The long way (device_allocator_growth.cpp) takes memory from the device and back from arenas, with no arena's lock held while it waits
/// or calls the driver.
class DeviceAllocator {
 public:
  DeviceAllocator(hal::MemoryProvider& memory, hal::QueueProgress& progress, std::uint64_t total_bytes, const Config& config,
                  bool is_expandable, int device);
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;
  Result<> initialize();

  [[gnu::always_inline]] Result<void*> allocate(std::size_t requested_bytes, const StreamRef& stream, PoolSlot pool = 0) {
    if (is_watched_closely_.load(std::memory_order_relaxed)) [[unlikely]]
      return allocate_watched(requested_bytes, stream, pool);
    return allocate_quietly(requested_bytes, stream, pool);
  }
  [[gnu::always_inline]] Result<> free(void* pointer) {
    if (is_watched_.load(std::memory_order_relaxed)) [[unlikely]]
      return free_watched(pointer);
    return free_quietly(pointer, false);
  }

  /// Allocations and frees go the watched way then, where it is looked at: the short way does not know of it.
  void close(const char* why) noexcept {
    closed_.store(why, std::memory_order_relaxed);
    is_watched_closely_.store(true, std::memory_order_relaxed);
    is_watched_.store(true, std::memory_order_relaxed);
  }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed) != nullptr; }
  Result<> check_open() const {
    if (const char* why = closed_.load(std::memory_order_relaxed)) return Error{ErrorCode::unavailable, why};
    return {};
  }

  bool record_use(void* pointer, const StreamRef& stream) {
    if (add_use(pointer, stream)) return true;
    ledger_.report_use_of_freed(pointer, stream.id);
    return false;
  }
  void note_stream(const StreamRef& stream) { clock_.note_stream(stream); }
  /// Of all that is in no pool of its own, and of pools that were released.
  void empty_cache();
  void empty_cache(PoolSlot pool);
  void trim(std::uint64_t kept_bytes);
  Result<SharedBlock> share(void* pointer);
  Result<> unshare(std::uint64_t segment_id);
  std::unique_ptr<DevicePool> create_pool(const PoolOptions& options);
  void release_pool(PoolSlot pool);
  void set_fraction(double fraction) noexcept;
  double fraction() const noexcept { return fraction_.load(std::memory_order_relaxed); }
  bool is_expandable() const noexcept { return is_expandable_; }

  DeviceStatistics statistics() const;
  std::uint64_t requested_bytes() const noexcept;
  /// Of the live block that begins there; nothing when there is none.
  std::optional<std::uint64_t> requested_bytes_of(const void* pointer) const noexcept;
  void reset_peaks();
  void reset_accumulated();
  Snapshot snapshot() const;

  void start_history(const HistoryOptions& options);
  void stop_history();
  /// `start_history` where none is kept, and the number by which `return_history` ends just that one; 0 where one is kept.
  std::uint64_t borrow_history(const HistoryOptions& options);
  void return_history(std::uint64_t borrowed);
  History history() const;
  void attach_tracker(TraceTracker tracker);
  /// Of this moment, which the history has an entry of.
  SnapshotFile describe_snapshot() const;
  Result<> write_snapshot(const std::string& path) const;
  void write_snapshot_at_out_of_memory(std::string path);

  void start_checks(const CheckOptions& options);
  void stop_checks();
  LiveBlockReport report_live_blocks(std::size_t max_rows) const;

 private:
  [[gnu::always_inline]] Result<void*> allocate_quietly(std::size_t requested_bytes, const StreamRef& stream, PoolSlot pool) {
    if (requested_bytes - 1 >= kMostRequestBytes) [[unlikely]]
      return allocate_out_of_range(requested_bytes, stream, pool);
    const std::size_t bytes = rounds_by_division_ ? memory::block_bytes(requested_bytes, config_) : memory::block_bytes(requested_bytes);
    Arena* arena = arenas_.find({stream.id, pool});
    if (arena == nullptr) [[unlikely]]
      return allocate_slowly(requested_bytes, bytes, {stream.id, pool}, stream);
    Arena::Taken taken;
    {
      const FutexLockGuard lock(arena->lock);
      taken = arena->take(bytes, requested_bytes);
    }
    if (taken.block == 0) [[unlikely]]
      return allocate_slowly(requested_bytes, bytes, {stream.id, pool}, stream);
    return finish(taken);
  }

  /// `in_order`: with the arena's lock in any case, so that it is noted when it happens.
  [[gnu::always_inline]] Result<> free_quietly(void* pointer, bool in_order) {
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
    const AddressMap::Found found = addresses_.find(address);
    const Block& block = blocks_[found.block];
    if (found.block == 0 || block.begin() != address) [[unlikely]]
      return refuse_free(pointer);
    Arena& arena = found.arena != nullptr ? *found.arena : arenas_.at(block.arena.load(std::memory_order_relaxed));
    bool is_done = false, is_exceeded = false;
    if (in_order) {
      const FutexLockGuard lock(arena.lock);
      is_done = arena.put_back(found.block);
      is_exceeded = !arena.is_expandable() && arena.exceeds_inactive(pool_of(block));
    } else if (arena.is_owner() && arena.lock.try_lock()) [[likely]] {
      is_done = arena.put_back(found.block);
      is_exceeded = !arena.is_expandable() && arena.exceeds_inactive(pool_of(block));
      arena.lock.unlock();
    } else {
      is_done = arena.put_back_remotely(found.block);
    }
    if (!is_done) [[unlikely]]
      return refuse_free(pointer);
    if (is_exceeded) [[unlikely]]
      peaks_.look_at_all(arenas_, arena);
    return {};
  }

  /// `history`: of the same moment; null when it is not wanted.
  Snapshot take_snapshot(History* history = nullptr) const;
  void note_snapshot() const;
  /// With the locks of all arenas.
  History view_history(const AllArenasLock& all) const;
  /// Both return the stacks' former recorder, which is foreign code and goes without a lock.
  [[nodiscard]] std::shared_ptr<StackRecorder> start_history_locked(const HistoryOptions& options) XPU_REQUIRES(history_mutex_);
  [[nodiscard]] std::shared_ptr<StackRecorder> stop_history_locked() XPU_REQUIRES(history_mutex_);
  static void append_segments(Arena& arena, bool is_small, Snapshot& result) XPU_REQUIRES(arena.lock);
  static constexpr std::uint64_t kScarcePercent = 85;  ///< Of the limit.
  /// What one attempt to get memory needs to know.
  struct Request {
    std::size_t requested_bytes, bytes;
    const StreamRef& stream;
    Arena& arena;

    bool is_small() const noexcept { return memory::is_small(bytes); }
  };

  bool add_use(void* pointer, const StreamRef& stream);
  Result<void*> allocate_watched(std::size_t requested_bytes, const StreamRef& stream, PoolSlot pool);
  Result<> free_watched(void* pointer);
  StackId record_stack() const;
  /// Every arena notes what happens, or does not any more.
  void watch();
  bool is_watch_wanted() const noexcept { return history_.is_active() || ledger_.is_on(); }
  Arena::Watch watch_of_arenas() const;
  /// The one for `write_snapshot_at_out_of_memory`, if it is due.
  void write_due_snapshot();
  /// After what is neither an allocation nor a free of a block, but changed some.
  void tell_trackers() {
    if (is_watched_.load(std::memory_order_relaxed)) [[unlikely]]
      history_.tell();
  }

  Result<void*> allocate_out_of_range(std::size_t requested_bytes, const StreamRef& stream, PoolSlot pool);
  Result<void*> allocate_slowly(std::size_t requested_bytes, std::size_t bytes, const ArenaKey& key, const StreamRef& stream);
  Result<> refuse_free(const void* pointer) const;
  void* finish(const Arena::Taken& taken) {
    const Block& block = blocks_[taken.block];
    if (taken.exceeds_allowance) [[unlikely]]
      peaks_.look_at_all(arenas_, arenas_.at(block.arena.load(std::memory_order_relaxed)));
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(block.begin()));
  }

  /// From what is free in the arena after collecting what has come back.
  Arena::Taken take_collected(const Request& request);
  /// Whether memory that is in use elsewhere is worth a wait of the stream on the device, rather than more memory.
  bool is_scarce() const noexcept { return memory_.reserved_bytes() > memory_.limit_bytes() / 100 * kScarcePercent; }
  /// Without waiting here: a pending block, for which the request's stream waits on the device. Where that cannot be, nothing.
  Arena::Taken take_pending(const Request& request);
  /// From memory that the device gives. out_of_device_memory when it does not.
  Result<Arena::Taken> take_grown(const Request& request);
  Result<Arena::Taken> grow_range(Arena& arena, const Request& request) XPU_REQUIRES(arena.growth_mutex);
  Result<Arena::Taken> add_segment(Arena& arena, const Request& request) XPU_REQUIRES(arena.growth_mutex);
  Result<> reserve_range(Arena& arena, bool is_small) XPU_REQUIRES(arena.growth_mutex);
  /// Above the threshold of the option, segments that have not been used for longer than the others go back, with as much as is above it.
  void collect_garbage();
  /// One way after another, searching again after each.
  Result<Arena::Taken> take_reclaimed(const Request& request, Error refusal);
  /// Free memory of one pool of an arena goes back to the device, about that much of it; returns how much did. Waits for the arena's
  /// stream.
  std::size_t give_back(Arena& arena, bool is_small, std::size_t wanted_bytes, std::uint64_t least_age = 0);
  /// The region whose memory is taken only when that of all others is not enough.
  struct Last {
    Arena* arena = nullptr;
    bool is_small = false;
  };
  /// From the arenas of these pools, by slot.
  std::size_t give_back_from(const std::vector<bool>& pools, std::size_t wanted_bytes, const Last& last);
  /// By slot: pools whose memory may be taken for others. `for_allocation`: when there is no other way, else at somebody's wish.
  std::vector<bool> pools_to_give_back(bool for_allocation) const;
  /// What is free in pools that offered it, on the request's stream; it could not be given back because its segments are in use.
  Arena::Taken take_from_pools(const Request& request);
  /// What all pending blocks wait for, the oldest first.
  std::vector<Epoch> pending_epochs() const;
  void collect_all();
  Error out_of_memory(std::size_t requested_bytes, std::size_t wanted_bytes, const StreamRef& stream, PoolSlot pool, std::string refusal);

  struct Sums {
    MetricTable<std::int64_t> current{}, freed{};
  };
  Sums sum() const;

  struct Reservation {
    void* address;
    std::size_t bytes;
  };

  const Config config_;
  const bool is_expandable_, rounds_by_division_;
  const int device_;
  DeviceMemory memory_;
  mutable BlockTable blocks_;
  mutable AddressMap addresses_;
  mutable EpochClock clock_;
  StreamTable streams_;
  PoolTable pools_;
  ShareTable shares_;
  OversizeCount oversize_;
  mutable HistoryRing history_;
  BlockLedger ledger_;
  std::atomic<bool> is_watched_{false};
  std::atomic<bool> is_watched_closely_{false};  // more than a history without stacks is wanted
  std::atomic<const char*> closed_{nullptr};
  std::atomic<StackUse> stack_use_{StackUse::never};
  mutable std::atomic<std::int64_t> pending_blocks_{0};
  ArenaTable arenas_;
  mutable Peaks peaks_;
  std::atomic<double> fraction_{1};
  std::atomic<std::int64_t> retries_{0}, out_of_memories_{0}, waits_for_pending_{0};
  base::Mutex history_mutex_;  // before all others: histories begin and end one at a time
  mutable base::Mutex base_mutex_;
  std::shared_ptr<StackRecorder> stacks_ XPU_GUARDED_BY(base_mutex_);
  std::vector<Reservation> reservations_ XPU_GUARDED_BY(base_mutex_);
  std::string out_of_memory_path_ XPU_GUARDED_BY(base_mutex_);
  Sums at_reset_ XPU_GUARDED_BY(base_mutex_);  // from where allocated and freed are counted
};

}  // namespace xpu::memory
