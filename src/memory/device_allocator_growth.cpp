#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "memory/device_allocator.hpp"
#include "memory/out_of_memory.hpp"

// The long way to memory: from the device, from what other streams do not need, and by waiting.

namespace xpu::memory {
namespace {

constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max() / 2;

}  // namespace

Result<void*> DeviceAllocator::allocate_slowly(std::size_t requested_bytes, std::size_t bytes, const ArenaKey& key,
                                               const StreamRef& stream) {
  const Arena::Shared shared{blocks_, addresses_, clock_, streams_, pending_blocks_, oversize_, history_, stack_use_, ledger_};
  const PoolTable::Entry pool = pools_.at(key.pool);
  const bool no_split = pool.options.no_split;
  Arena* const arena = arenas_.find_or_add(
      shared, key, {is_expandable_ && !no_split, no_split, config_.max_split_size_bytes, config_.max_non_split_rounding_bytes});
  if (arena == nullptr) {
    return Error{ErrorCode::unsupported, fmt::format("memory is allocated on more than {} streams and pools", ArenaTable::kMostArenas)};
  }
  {
    const FutexLockGuard lock(arena->lock);
    arena->set_pool_id(pool.id);
    arena->set_watch(watch_of_arenas());
  }
  clock_.note_stream(stream);
  streams_.index_of(stream);
  const Request request{requested_bytes, bytes, stream, *arena};
  if (const Arena::Taken taken = take_collected(request); taken.block != 0) return finish(taken);
  if (config_.garbage_collection_threshold > 0) collect_garbage();
  if (is_scarce()) {
    if (const Arena::Taken taken = take_pending(request); taken.block != 0) return finish(taken);
  }
  Result<Arena::Taken> taken = take_grown(request);
  if (!taken) taken = take_reclaimed(request, std::move(taken).error());
  if (!taken) return std::move(taken).error();
  return finish(*taken);
}

Arena::Taken DeviceAllocator::take_collected(const Request& request) {
  bool has_pending = false;
  {
    const FutexLockGuard lock(request.arena.lock);
    has_pending = request.arena.has_pending();
  }
  if (has_pending) {
    clock_.issue_pending();
    clock_.poll();
  }
  const FutexLockGuard lock(request.arena.lock);
  request.arena.collect();
  return request.arena.take(request.bytes, request.requested_bytes);
}

Arena::Taken DeviceAllocator::take_pending(const Request& request) {
  Arena::Reuse reuse;
  {
    const FutexLockGuard lock(request.arena.lock);
    reuse = request.arena.begin_reuse(request.bytes);
  }
  if (reuse.block == 0) return {};
  const bool will_wait =
      std::ranges::all_of(reuse.waits, [&](const Epoch& epoch) { return clock_.make_wait(request.stream, epoch).has_value(); });
  const FutexLockGuard lock(request.arena.lock);
  if (will_wait) return request.arena.finish_reuse(reuse, request.bytes, request.requested_bytes);
  request.arena.cancel_reuse(reuse);
  return {};
}

Result<Arena::Taken> DeviceAllocator::take_grown(const Request& request) {
  const base::MutexLock growth(request.arena.growth_mutex);
  while (true) {
    {
      // Whoever had the lock before may have brought enough.
      const FutexLockGuard lock(request.arena.lock);
      if (const Arena::Taken taken = request.arena.take(request.bytes, request.requested_bytes); taken.block != 0) return taken;
    }
    Result<Arena::Taken> taken = request.arena.is_expandable() ? grow_range(request.arena, request) : add_segment(request.arena, request);
    // The free block that the new memory was to be joined with may be gone by now.
    if (!taken || taken->block != 0) return taken;
  }
}

Result<> DeviceAllocator::reserve_range(Arena& arena, bool is_small_pool) {
  // Room for everything that the device has, and for holes; slices of the address map belong to one range, so it begins and ends with one.
  const std::size_t bytes = round_up(memory_.total_bytes() + memory_.total_bytes() / 8, AddressMap::kSliceBytes);
  const std::size_t reserved_bytes = bytes + AddressMap::kSliceBytes;
  XPU_TRY_ASSIGN(void* const reserved, memory_.reserve(reserved_bytes));
  {
    const base::MutexLock lock(base_mutex_);
    reservations_.push_back({reserved, reserved_bytes});
  }
  const std::uint64_t begin = round_up(reinterpret_cast<std::uintptr_t>(reserved), AddressMap::kSliceBytes);
  const FutexLockGuard lock(arena.lock);
  Region& region = arena.region(is_small_pool);
  XPU_TRY(addresses_.add(begin, bytes, region.address_shift(), &arena));
  region.set_range(begin, bytes, memory_.page_bytes());
  return {};
}

/// Nothing when somebody took a block meanwhile that was counted on.
Result<Arena::Taken> DeviceAllocator::grow_range(Arena& arena, const Request& request) {
  const bool is_small_pool = request.is_small();
  const Pool pool = is_small_pool ? kSmallPool : kLargePool;
  bool has_range = false;
  {
    const FutexLockGuard lock(arena.lock);
    has_range = arena.region(is_small_pool).has_range();
  }
  if (!has_range) XPU_TRY(reserve_range(arena, is_small_pool));
  std::optional<Region::Growth> growth;
  {
    const FutexLockGuard lock(arena.lock);
    growth = arena.region(is_small_pool).plan_growth(request.bytes);
  }
  if (!growth) return Error{ErrorCode::out_of_device_memory, "the addresses that are reserved for the stream are used up"};
  Result<> mapped = memory_.map(growth->address, growth->bytes, pool);
  const FutexLockGuard lock(arena.lock);
  const BlockIndex block = arena.region(is_small_pool).finish_growth(*growth, mapped.has_value());
  if (mapped) arena.note(TraceAction::segment_map, growth->address, growth->bytes);
  if (!mapped) return std::move(mapped).error();
  return arena.take_of(block, request.bytes, request.requested_bytes);
}

Result<Arena::Taken> DeviceAllocator::add_segment(Arena& arena, const Request& request) {
  const bool is_small_pool = request.is_small();
  const Pool pool = is_small_pool ? kSmallPool : kLargePool;
  const std::size_t bytes = segment_bytes(request.bytes);
  XPU_TRY_ASSIGN(const std::uint64_t address, memory_.allocate_segment(bytes, pool));
  Result<> added = addresses_.add(address, bytes, Region::kSegmentAddressShift, nullptr);
  if (added) {
    const FutexLockGuard lock(arena.lock);
    const BlockIndex block = arena.region(is_small_pool).add_segment(address, bytes);
    if (block != 0) arena.note(TraceAction::segment_alloc, address, bytes);
    if (block != 0) return arena.take_of(block, request.bytes, request.requested_bytes);
    added = Error{ErrorCode::out_of_host_memory, fmt::format("there are more than {} blocks", BlockTable::kMostBlocks)};
  }
  memory_.free_segment(address, bytes, pool);
  return std::move(added).error();
}

Result<Arena::Taken> DeviceAllocator::take_reclaimed(const Request& request, Error refusal) {
  if (refusal.code != ErrorCode::out_of_device_memory && refusal.code != ErrorCode::out_of_host_memory) return refusal;
  retries_.fetch_add(1, std::memory_order_relaxed);
  if (const Arena::Taken taken = take_pending(request); taken.block != 0) return taken;
  const auto take_again = [&]() -> Result<Arena::Taken> {
    if (const Arena::Taken taken = take_collected(request); taken.block != 0) return taken;
    Result<Arena::Taken> taken = take_grown(request);
    if (!taken) refusal = taken.error();
    return taken;
  };
  // Others give what they do not use, as much as is needed; this stream's own free blocks go last, because it will want them.
  const std::size_t wanted = request.arena.is_expandable() ? request.bytes + memory_.page_bytes() : segment_bytes(request.bytes);
  const std::vector<bool> givers = pools_to_give_back(true);
  const Last last{&request.arena, request.is_small()};
  if (give_back_from(givers, wanted, last) != 0) {
    if (Result<Arena::Taken> taken = take_again()) return taken;
  }
  // Then what streams still use, the oldest first and no more than it takes. What cannot be waited for stays pending.
  const std::vector<Epoch> pending = pending_epochs();
  if (!pending.empty()) waits_for_pending_.fetch_add(1, std::memory_order_relaxed);
  for (const Epoch& epoch : pending) {
    if (!clock_.wait(epoch)) continue;
    if (Result<Arena::Taken> taken = take_again()) return taken;
    if (give_back_from(givers, wanted, last) == 0) continue;
    if (Result<Arena::Taken> taken = take_again()) return taken;
  }
  if (give_back_from(givers, kEverything, last) != 0) {
    if (Result<Arena::Taken> taken = take_again()) return taken;
  }
  if (request.arena.key().pool == 0) {
    if (const Arena::Taken taken = take_from_pools(request); taken.block != 0) return taken;
  }
  return out_of_memory(request.requested_bytes, request.arena.is_expandable() ? round_up(request.bytes, memory_.page_bytes()) : wanted,
                       request.stream, request.arena.key().pool, refusal.message);
}

void DeviceAllocator::collect_garbage() {
  const auto threshold = static_cast<std::uint64_t>(config_.garbage_collection_threshold * static_cast<double>(memory_.limit_bytes()));
  const std::vector<bool> givers = pools_to_give_back(true);
  const auto for_each_giver = [&](const auto& visit) {
    arenas_.for_each([&](Arena& arena) {
      if (arena.key().pool < givers.size() && givers[arena.key().pool]) visit(arena);
    });
  };
  while (memory_.reserved_bytes() > threshold) {
    Region::Ages ages;
    for_each_giver([&](Arena& arena) {
      const FutexLockGuard lock(arena.lock);
      const Region::Ages some = arena.region(false).ages();
      ages.sum += some.sum;
      ages.segments += some.segments;
    });
    if (ages.segments == 0) return;
    std::size_t given = 0;
    for_each_giver([&](Arena& arena) {
      const std::uint64_t reserved = memory_.reserved_bytes();
      if (reserved > threshold) given += give_back(arena, false, reserved - threshold, ages.sum / ages.segments);
    });
    if (given == 0) return;
  }
}

std::size_t DeviceAllocator::give_back(Arena& arena, bool is_small_pool, std::size_t wanted_bytes, std::uint64_t least_age) {
  const base::MutexLock growth(arena.growth_mutex);
  std::vector<BlockIndex> moving;
  {
    const FutexLockGuard lock(arena.lock);
    arena.collect();
    arena.region(is_small_pool).begin_give_back(wanted_bytes, least_age, shares_, moving);
  }
  if (moving.empty()) return 0;
  // The blocks are free in the order of the stream's work; the device takes them at once. What the stream has yet to do may touch them.
  const StreamRef stream = streams_.named(arena.key().stream);
  const Result<> is_over = clock_.wait(clock_.note_free(stream, 0));
  std::size_t given = 0;
  const Pool pool = is_small_pool ? kSmallPool : kLargePool;
  if (is_over) {
    for (const BlockIndex index : moving) {
      const Block& block = blocks_[index];
      given += block.bytes;
      if (arena.is_expandable()) {
        memory_.unmap(block.begin(), block.bytes, pool);
      } else {
        memory_.free_segment(block.begin(), block.bytes, pool);
      }
    }
  }
  const FutexLockGuard lock(arena.lock);
  for (const BlockIndex index : moving) {
    if (is_over) {
      const Block& block = blocks_[index];
      arena.note(arena.is_expandable() ? TraceAction::segment_unmap : TraceAction::segment_free, block.begin(), block.bytes);
      shares_.forget({block.begin(), block.begin() + block.bytes});
      arena.region(is_small_pool).finish_give_back(index);
    } else {
      arena.region(is_small_pool).cancel_give_back(index);
    }
  }
  return given;
}

std::size_t DeviceAllocator::give_back_from(const std::vector<bool>& pools, std::size_t wanted_bytes, const Last& last) {
  std::size_t given = 0;
  const auto give = [&](Arena& arena) {
    if (arena.key().pool >= pools.size() || !pools[arena.key().pool]) return;
    for (const bool is_small_pool : {!last.is_small, last.is_small}) {
      if (given < wanted_bytes) given += give_back(arena, is_small_pool, wanted_bytes - given);
    }
  };
  collect_all();  // before tickets are issued, so that they answer for what other threads freed
  clock_.issue_pending();
  clock_.poll();
  arenas_.for_each([&](Arena& arena) {
    if (&arena != last.arena) give(arena);
  });
  if (last.arena != nullptr) give(*last.arena);
  tell_trackers();
  return given;
}

std::vector<bool> DeviceAllocator::pools_to_give_back(bool for_allocation) const {
  std::vector<bool> slots;
  for (const PoolTable::Entry& entry : pools_.all()) {
    const bool is_common = slots.empty();
    slots.push_back(is_common || entry.is_released || (for_allocation && !entry.options.is_for_graphs));
  }
  return slots;
}

Arena::Taken DeviceAllocator::take_from_pools(const Request& request) {
  const std::vector<PoolTable::Entry> pools = pools_.all();
  for (PoolSlot slot = 1; slot < pools.size(); ++slot) {
    // What a graph replays on is no one else's in between.
    if (pools[slot].is_released || !pools[slot].options.use_on_oom || pools[slot].options.is_for_graphs) continue;
    Arena* const arena = arenas_.find({request.stream.id, slot});
    if (arena == nullptr) continue;
    const Request elsewhere{request.requested_bytes, request.bytes, request.stream, *arena};
    if (const Arena::Taken taken = take_collected(elsewhere); taken.block != 0) return taken;
  }
  return {};
}

void DeviceAllocator::empty_cache() { give_back_from(pools_to_give_back(false), kEverything, {}); }

void DeviceAllocator::empty_cache(PoolSlot pool) {
  const PoolTable::Entry entry = pools_.at(pool);
  if (entry.options.is_for_graphs && !entry.is_released) return;
  std::vector<bool> only(pool + 1);
  only[pool] = true;
  give_back_from(only, kEverything, {});
}

void DeviceAllocator::trim(std::uint64_t kept_bytes) {
  const std::uint64_t reserved = memory_.reserved_bytes();
  if (reserved > kept_bytes) give_back_from(pools_to_give_back(false), reserved - kept_bytes, {});
}

std::unique_ptr<DevicePool> DeviceAllocator::create_pool(const PoolOptions& options) {
  static constinit std::atomic<std::uint64_t> last_id{0};
  const std::uint64_t number = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  const PoolId id = options.is_for_graphs ? PoolId{number, 0} : PoolId{0, number};
  const PoolSlot slot = pools_.add(id, options, [&](PoolSlot released) {
    bool is_idle = true;
    arenas_.for_each([&](Arena& arena) {
      if (arena.key().pool != released) return;
      const FutexLockGuard lock(arena.lock);
      arena.collect();
      is_idle = is_idle && arena.is_idle();
    });
    return is_idle;
  });
  arenas_.for_each([&](Arena& arena) {
    if (arena.key().pool != slot) return;
    const FutexLockGuard lock(arena.lock);
    arena.set_pool_id(id);
  });
  return std::unique_ptr<DevicePool>(new DevicePool(*this, slot, id, options));
}

void DeviceAllocator::release_pool(PoolSlot pool) {
  pools_.release(pool);
  empty_cache(pool);
}

std::vector<Epoch> DeviceAllocator::pending_epochs() const {
  std::vector<Epoch> epochs;
  arenas_.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    const std::vector<Epoch> waits = arena.waits();
    epochs.insert(epochs.end(), waits.begin(), waits.end());
  });
  // One count numbers the epochs of all streams.
  std::ranges::sort(epochs, {}, &Epoch::number);
  const auto repeated = std::ranges::unique(epochs, {}, &Epoch::number);
  epochs.erase(repeated.begin(), repeated.end());
  return epochs;
}

void DeviceAllocator::collect_all() {
  arenas_.for_each([](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    arena.collect();
  });
}

Error DeviceAllocator::out_of_memory(std::size_t requested_bytes, std::size_t wanted_bytes, const StreamRef& stream, PoolSlot pool,
                                     std::string refusal) {
  out_of_memories_.fetch_add(1, std::memory_order_relaxed);
  const hal::MemoryInfo info = memory_.info();
  if (is_watched_.load(std::memory_order_relaxed)) {
    TraceEntry entry;
    entry.address = info.free_bytes;
    entry.bytes = requested_bytes;
    entry.stream = stream.id;
    entry.pool = pools_.at(pool).id;
    if (stack_use_.load(std::memory_order_relaxed) >= StackUse::alloc) entry.stack = t_call_stack;
    entry.action = TraceAction::oom;
    history_.append(entry);
  }
  const OutOfMemory failed{device_, stream.id, requested_bytes, wanted_bytes, memory_.limit_bytes(), info, std::move(refusal)};
  Error error{ErrorCode::out_of_device_memory, out_of_memory_text(failed, take_snapshot())};
  write_due_snapshot();
  return error;
}

}  // namespace xpu::memory
