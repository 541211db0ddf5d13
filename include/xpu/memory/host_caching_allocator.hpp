#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/statistics.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

struct HostCachingOptions {
  /// PyTorch's `pinned_max_round_threshold_mb`: a request above it is not rounded to a size class either, so the smaller of this and
  /// `exact_above_bytes` counts. No limit by default.
  std::size_t max_round_threshold_bytes = std::numeric_limits<std::size_t>::max();
  /// The most that is kept for later in memory of which nothing is in use; what was not used for longest goes first. Blocks above it are
  /// never kept. Pinned memory is lost to everybody else on the machine, but costs milliseconds to get back.
  std::size_t max_cached_bytes = std::size_t{4} << 30;
  /// Larger requests are rounded to 64 KiB where a size class is coarser, and their blocks are reused for the same size only. Never below
  /// 64 KiB: such blocks are cut from slabs and always have a class.
  std::size_t exact_above_bytes = std::size_t{64} << 20;
};

/// What PyTorch reports of its pinned memory, by its names, and `pending_bytes`. `reserved_bytes` is the sum of `allocated_bytes`,
/// `pending_bytes` and what is cached.
struct HostStatistics {
  struct Duration {
    std::int64_t total_us = 0, count = 0;  ///< Since the accumulated statistics were reset.
    std::int64_t max_us = 0, min_us = 0;   ///< Since the peaks were reset; 0 when nothing happened since.
    std::int64_t last_us = 0;
  };

  StatisticsCounter allocation;              ///< Blocks that were handed out and not freed.
  StatisticsCounter allocated_bytes;         ///< Their bytes, rounded as they are handed out.
  StatisticsCounter pending_bytes;           ///< Of blocks that were freed while streams may still use them.
  StatisticsCounter segment;                 ///< Allocations of the driver's.
  StatisticsCounter reserved_bytes;          ///< Their bytes.
  Duration host_alloc_time, host_free_time;  ///< What the driver takes for them.
  std::int64_t num_host_alloc = 0, num_host_free = 0;
};

/// Keeps pinned host memory that was freed, because a driver takes milliseconds to pin it.
///
/// Sizes: 8 classes for each doubling, so a block is less than 1/8 larger than what was asked for (less than 64 bytes up to 512). Blocks
/// begin at multiples of 64 bytes. Up to 64 KiB they are cut from slabs of 2 MiB; a slab of which nothing is in use may be cut anew.
///
/// Streams: whoever lets a stream use a block says so with `record_use`. Freed, such a block is *pending*: it is reused, or given back to
/// the driver, when each of these streams has reached a ticket that was issued after the free. One ticket of a stream serves all blocks
/// that were freed before it; it is issued when a request could use a pending block, when memory is short, in `empty_cache`, and when 64
/// blocks or 64 MiB of the stream's wait without one.
///
/// Capture: a stream counts as capturing from a `record_use` or `note_stream` that says so to one that says otherwise. In between it is
/// asked for nothing and its blocks wait, also where memory is short; its tickets are issued afterwards. Memory that a captured graph uses
/// each time it runs must not be freed before the graph is gone: nothing here knows of graphs.
///
/// Thread-safe. Neither the provider nor a queue is called with a lock held. In a forked child a lock may be held by a thread that is not
/// there: whoever owns the allocator calls `close`. It is meant to outlive `main`; only tests destroy it.
class XPU_EXPORT HostCachingAllocator {
 public:
  /// Both must outlive it.
  HostCachingAllocator(hal::MemoryProvider& provider, hal::QueueProgress& progress, const HostCachingOptions& options = {});
  /// Gives everything back without waiting: nothing may use any of it.
  ~HostCachingAllocator();
  HostCachingAllocator(const HostCachingAllocator&) = delete;
  HostCachingAllocator& operator=(const HostCachingAllocator&) = delete;

  /// Null for 0 bytes. Before it fails it gives back what is cached and waits for pending blocks, the oldest first; out_of_host_memory (or
  /// the driver's code) says then what was asked for and where the memory is.
  Result<void*> allocate(std::size_t bytes);
  /// `pointer` as `allocate` returned it; null is allowed. invalid_argument, and nothing happens, when it is not or was freed already.
  Result<> free(void* pointer);
  /// The stream uses the block in which `pointer` lies, from now until it is freed. False when that is no block that is handed out.
  bool record_use(const void* pointer, const StreamRef& stream);
  /// Whether `pointer` lies in a block that is handed out.
  bool contains(const void* pointer) const;
  /// The stream begins or ended capturing. Without it the allocator finds out at the stream's next use of a block.
  void note_stream(const StreamRef& stream);
  /// Gives back what nobody uses, without waiting.
  void empty_cache();

  HostStatistics statistics() const;
  void reset_peak_statistics();
  void reset_accumulated_statistics();

  /// For a forked child: as DeviceCachingAllocator::close.
  void close(const char* why) noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace xpu::memory
