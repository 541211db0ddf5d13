#include "memory/device_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace xpu::memory {

DeviceAllocator::DeviceAllocator(hal::MemoryProvider& memory, hal::QueueProgress& progress, std::uint64_t total_bytes, const Config& config,
                                 bool is_expandable, int device)
    : config_(config),
      is_expandable_(is_expandable),
      rounds_by_division_(config.roundup_power2_divisions != RoundupDivisions{}),
      device_(device),
      memory_(memory, total_bytes, config.max_split_size_bytes),
      clock_(progress) {
  set_fraction(config.per_process_memory_fraction);
}

DeviceAllocator::~DeviceAllocator() {
  // Only tests come here. What is live goes with the rest.
  struct WithMemory {
    const Block* block;
    Pool pool;
    bool is_mapped;
  };
  std::vector<WithMemory> with_memory;
  arenas_.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    for (const bool is_small_pool : {true, false}) {
      arena.region(is_small_pool).for_each_block([&](BlockIndex, const Block& block) {
        if (!block.is(BlockState::hole)) with_memory.push_back({&block, is_small_pool ? kSmallPool : kLargePool, arena.is_expandable()});
      });
    }
  });
  // The blocks of a segment are freed as one; pages can be unmapped block by block only in whole.
  for (std::size_t first = 0; first < with_memory.size();) {
    const auto& [begin, pool, is_mapped] = with_memory[first];
    const Block& block = *begin;
    std::uint64_t end = block.begin() + block.bytes;
    std::size_t next = first + 1;
    while (next < with_memory.size() && with_memory[next].block->previous != 0 && with_memory[next].block->begin() == end) {
      end += with_memory[next++].block->bytes;
    }
    const std::size_t bytes = end - block.begin();
    if (is_mapped) {
      memory_.unmap(block.begin(), bytes, pool);
    } else {
      memory_.free_segment(block.begin(), bytes, pool);
    }
    first = next;
  }
  const base::MutexLock lock(base_mutex_);
  for (const Reservation& reservation : reservations_) memory_.unreserve(reservation.address, reservation.bytes);
}

Result<> DeviceAllocator::initialize() {
  if (!blocks_.initialize()) return Error{ErrorCode::out_of_host_memory, "there is no address space for the tables of an allocator"};
  return addresses_.initialize();
}

Result<void*> DeviceAllocator::allocate_out_of_range(std::size_t requested_bytes, const StreamRef& stream, PoolSlot pool) {
  if (requested_bytes == 0) return static_cast<void*>(nullptr);
  return out_of_memory(requested_bytes, requested_bytes, stream, pool, "more than any device has");
}

Result<> DeviceAllocator::refuse_free(const void* pointer) const {
  if (pointer == nullptr) return {};
  std::string message = fmt::format("invalid device pointer: {} is not the begin of a block, or was freed before", pointer);
  if (ledger_.is_on()) {
    const std::optional<NotedBlock> freed = ledger_.find_freed(reinterpret_cast<std::uintptr_t>(pointer));
    if (freed) message += "; it lies in a block that was freed: " + ledger_.describe(*freed);
  }
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

bool DeviceAllocator::add_use(void* pointer, const StreamRef& stream) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
  const BlockIndex index = addresses_.find(address).block;
  if (index == 0 || blocks_[index].begin() != address) return false;
  Arena& arena = arenas_.at(blocks_[index].arena.load(std::memory_order_relaxed));
  const bool is_own = arena.key().stream == stream.id;
  StreamIndex user = 0;
  if (!is_own) {
    clock_.note_stream(stream);
    user = streams_.index_of(stream);
  }
  const FutexLockGuard lock(arena.lock);
  if (!blocks_[index].is(BlockState::live) || blocks_[index].begin() != address) return false;
  if (!is_own) arena.add_use(index, user);
  return true;
}

Result<SharedBlock> DeviceAllocator::share(void* pointer) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
  const BlockIndex index = addresses_.find(address).block;
  if (index != 0 && blocks_[index].begin() == address) {
    Arena& arena = arenas_.at(blocks_[index].arena.load(std::memory_order_relaxed));
    const FutexLockGuard lock(arena.lock);
    const Block& block = blocks_[index];
    if (block.is(BlockState::live) && block.begin() == address) {
      const MemoryRun run = arena.region(block.is_small).run_of(index);
      return SharedBlock{reinterpret_cast<void*>(static_cast<std::uintptr_t>(run.begin)), run.end - run.begin, address - run.begin,
                         shares_.open(run)};
    }
  }
  return Error{ErrorCode::invalid_argument, fmt::format("{} is not the begin of a live block, so that it cannot be shared", pointer)};
}

Result<> DeviceAllocator::unshare(std::uint64_t segment_id) {
  if (shares_.close(segment_id)) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("segment {} is not shared, or not any more", segment_id)};
}

void DeviceAllocator::set_fraction(double fraction) noexcept {
  fraction_.store(fraction, std::memory_order_relaxed);
  memory_.set_limit(static_cast<std::uint64_t>(static_cast<double>(memory_.total_bytes()) * fraction));
}

namespace {

StatisticsByPool by_pool_of(const std::array<StatisticsCounter, kPoolRows>& rows) {
  return {rows[kAllPools], rows[kSmallPool], rows[kLargePool]};
}

}  // namespace

DeviceAllocator::Sums DeviceAllocator::sum() const {
  Sums sums;
  arenas_.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    arena.collect();
    for (const Pool pool : {kSmallPool, kLargePool}) {
      for (std::size_t metric = 0; metric < kMetrics; ++metric) {
        for (const Pool row : {pool, kAllPools}) {
          sums.current[row][metric] += arena.value(pool, metric);
          sums.freed[row][metric] += arena.freed(pool, metric);
        }
      }
    }
  });
  return sums;
}

DeviceStatistics DeviceAllocator::statistics() const {
  const Sums sums = sum();
  const MetricTable<std::int64_t> peaks = peaks_.values(sums.current);
  Sums start;
  {
    const base::MutexLock lock(base_mutex_);
    start = at_reset_;
  }
  const auto by_pool = [&](Metric metric) {
    const auto counter = [&](Pool row) {
      const std::int64_t current = sums.current[row][metric];
      const std::int64_t freed = sums.freed[row][metric] - start.freed[row][metric];
      return StatisticsCounter{current, peaks[row][metric], current - start.current[row][metric] + freed, freed};
    };
    return StatisticsByPool{counter(kAllPools), counter(kSmallPool), counter(kLargePool)};
  };
  const DeviceMemory::Sums device = memory_.sums();
  DeviceStatistics result;
  result.allocation = by_pool(kAllocation);
  result.segment = by_pool_of(device.segments);
  result.active = by_pool(kActive);
  result.inactive_split = by_pool(kInactiveSplit);
  result.allocated_bytes = by_pool(kAllocatedBytes);
  result.reserved_bytes = by_pool_of(device.reserved_bytes);
  result.active_bytes = by_pool(kActiveBytes);
  result.inactive_split_bytes = by_pool(kInactiveSplitBytes);
  result.requested_bytes = by_pool(kRequestedBytes);
  result.oversize_allocations = oversize_.value();
  result.oversize_segments = device.oversize_segments;
  if (config_.max_split_size_bytes != kUnlimitedBytes) result.max_split_size = static_cast<std::int64_t>(config_.max_split_size_bytes);
  result.num_alloc_retries = retries_.load(std::memory_order_relaxed);
  result.num_ooms = out_of_memories_.load(std::memory_order_relaxed);
  result.num_sync_all_streams = waits_for_pending_.load(std::memory_order_relaxed);
  result.num_device_alloc = device.device_allocs;
  result.num_device_free = device.device_frees;
  return result;
}

std::uint64_t DeviceAllocator::requested_bytes() const noexcept {
  std::int64_t bytes = 0;
  arenas_.for_each([&](Arena& arena) {
    const FutexLockGuard lock(arena.lock);
    arena.take_remote_frees();
    bytes += arena.value(kAllPools, kRequestedBytes);
  });
  return static_cast<std::uint64_t>(bytes);
}

std::optional<std::uint64_t> DeviceAllocator::requested_bytes_of(const void* pointer) const noexcept {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
  const BlockIndex index = addresses_.find(address).block;
  const Block& block = blocks_[index];
  if (index == 0 || block.begin() != address) return std::nullopt;
  Arena& arena = arenas_.at(block.arena.load(std::memory_order_relaxed));
  const FutexLockGuard lock(arena.lock);
  if (!block.is(BlockState::live) || block.begin() != address) return std::nullopt;
  return block.requested_bytes;
}

void DeviceAllocator::reset_accumulated() {
  const Sums now = sum();
  memory_.reset_accumulated();
  oversize_.reset_accumulated();
  retries_.store(0, std::memory_order_relaxed);
  const base::MutexLock lock(base_mutex_);
  at_reset_ = now;
}

void DeviceAllocator::reset_peaks() {
  peaks_.reset(arenas_);
  memory_.reset_peaks();
  oversize_.reset_peak();
}

void DeviceAllocator::append_segments(Arena& arena, bool is_small, Snapshot& result) {
  const PoolId pool = arena.pool_id();
  bool is_open = false;
  arena.region(is_small).for_each_block([&](BlockIndex, const Block& block) {
    if (block.is(BlockState::hole) || block.is(BlockState::moving)) {
      is_open = false;
      return;
    }
    if (!is_open || block.previous == 0) {
      SnapshotSegment& segment = result.segments.emplace_back();
      segment.address = block.begin();
      segment.stream = arena.key().stream;
      segment.pool = pool;
      segment.is_small = is_small;
      segment.is_expandable = arena.is_expandable();
      is_open = true;
    }
    SnapshotSegment& segment = result.segments.back();
    const bool is_live = block.is(BlockState::live) || block.is(BlockState::remote), is_pending = block.is(BlockState::pending);
    segment.total_bytes += block.bytes;
    if (is_live) segment.allocated_bytes += block.bytes;
    if (is_live) segment.requested_bytes += block.requested_bytes;
    if (is_live || is_pending) segment.active_bytes += block.bytes;
    segment.blocks.push_back({block.begin(), block.bytes, is_live || is_pending ? block.requested_bytes : 0,
                              is_live      ? SnapshotBlockState::active_allocated
                              : is_pending ? SnapshotBlockState::active_pending_free
                                           : SnapshotBlockState::inactive,
                              block.stack});
  });
}

void DeviceAllocator::note_snapshot() const {
  if (is_watched_.load(std::memory_order_relaxed)) {
    TraceEntry entry;
    entry.action = TraceAction::snapshot;
    history_.append(entry);
    history_.tell();
  }
}

Snapshot DeviceAllocator::snapshot() const {
  note_snapshot();
  return take_snapshot();
}

// The analysis knows no set of locks.
Snapshot DeviceAllocator::take_snapshot(History* history) const XPU_NO_THREAD_SAFETY_ANALYSIS {
  Snapshot result;
  {
    const AllArenasLock lock(arenas_);
    for (std::size_t index = 0; index < lock.count(); ++index) {
      Arena& arena = arenas_.at(static_cast<std::uint16_t>(index));
      arena.collect();
      for (const bool is_small : {true, false}) append_segments(arena, is_small, result);
    }
    if (history != nullptr) *history = view_history(lock);
  }
  std::sort(result.segments.begin(), result.segments.end(),
            [](const SnapshotSegment& a, const SnapshotSegment& b) { return a.address < b.address; });
  return result;
}

}  // namespace xpu::memory
