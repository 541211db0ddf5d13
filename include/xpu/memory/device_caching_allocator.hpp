#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/allocation_listener.hpp"
#include "xpu/memory/allocator.hpp"
#include "xpu/memory/checks.hpp"
#include "xpu/memory/config.hpp"
#include "xpu/memory/history.hpp"
#include "xpu/memory/pool.hpp"
#include "xpu/memory/shared_block.hpp"
#include "xpu/memory/snapshot.hpp"
#include "xpu/memory/statistics.hpp"
#include "xpu/memory/stream_ref.hpp"

namespace xpu::memory {

class DeviceAllocator;

/// Memory of one device, cached by stream. What is freed can be allocated again on its own stream at once, because work of a stream runs in
/// order; `record_use` says that other streams use it, too, and holds it back until they have come that far. Nothing goes back to the
/// device before every stream that could touch it is known to be done with it.
///
/// Thread-safe. Streams do not get in each other's way: each has an arena with a lock of its own. No driver is called and no foreign code
/// runs under such a lock.
///
/// Only tests destroy one: a program's allocators live for ever, because destructors of static objects may still free memory.
class XPU_EXPORT DeviceCachingAllocator final : public Allocator {
 public:
  /// `memory` and `progress` must outlive the allocator; `device` is the number by which messages name it. Error invalid_argument for
  /// options that `check_config` refuses; unsupported when expandable segments are asked for and the device cannot map memory.
  static Result<std::unique_ptr<DeviceCachingAllocator>> create(hal::MemoryProvider& memory, hal::QueueProgress& progress,
                                                                const Config& config = {}, int device = 0);
  ~DeviceCachingAllocator() override;

  /// Memory for work of this stream, aligned to 512 bytes; null for 0 bytes. Error out_of_device_memory when nothing that the allocator
  /// could take back is enough: its message says what was asked for, what is in use and what limits; everything that is allocated stays as
  /// it is. Where memory is scarce the stream may have to wait on the device for others; the host waits when there is no other way.
  Result<void*> allocate(std::size_t bytes, const StreamRef& stream) override;
  /// The same out of this pool, of this allocator.
  Result<void*> allocate(std::size_t bytes, const StreamRef& stream, const DevicePool& pool);
  /// Of `allocate`; null is nothing. Error invalid_argument for an address that is not the begin of a live block, freed twice included.
  Result<> free(void* address) override;
  /// Work of another stream that was submitted, or will be before the block is freed, uses the block. False when the address is not the
  /// begin of a live block.
  bool record_use(void* address, const StreamRef& stream) override;
  /// The stream begins or ended capturing. Without it the allocator finds out when it next has no memory at hand for the stream, or hears
  /// of a use: until then it may ask a stream that is capturing, or leave one alone that is not any more.
  void note_stream(const StreamRef& stream);
  /// Gives everything that is free and in no living pool back to the device, but what streams that are capturing may use; does not wait
  /// when nothing is free.
  void empty_cache() override;
  /// The same for one pool. Nothing for a pool of graphs: what is free in it is still theirs.
  void empty_cache(const DevicePool& pool);
  /// Does as `empty_cache` until at most so much is taken from the device.
  void trim(std::uint64_t kept_bytes);

  /// Memory of its own: what is allocated from the pool shares no segment with anything else. It counts in all statistics and towards the
  /// limit. When an allocation would fail, what is free in other pools is given back for it, but not in those of graphs.
  std::unique_ptr<DevicePool> create_pool(const PoolOptions& options = {});

  /// Where the block lies in memory that a driver can export. That memory stays the allocator's, at its place, until `unshare` has been
  /// called as often as this; the block is freed as ever, and its memory may be the stream's next block then: whoever looks at it from
  /// elsewhere keeps the block. Error invalid_argument for an address that is not the begin of a live block.
  Result<SharedBlock> share(void* address);
  /// Error invalid_argument for a number that is not shared (any more).
  Result<> unshare(std::uint64_t segment_id);

  /// A share of the device's memory, in (0, 1], that may be taken from now on. Error invalid_argument outside of it.
  Result<> set_memory_fraction(double fraction);
  double memory_fraction() const noexcept;
  bool has_expandable_segments() const noexcept;

  DeviceStatistics statistics() const override;
  /// The peaks are what is there now.
  void reset_peak_statistics() override;
  /// What was allocated and freed is counted from now on.
  void reset_accumulated_statistics() override;
  Snapshot snapshot() const;

  /// Notes what happens from now on; what was noted before goes. Error invalid_argument for 0 entries, and for a use of stacks without a
  /// recorder.
  Result<> start_history(const HistoryOptions& options = {});
  /// Notes nothing more, and forgets what it noted.
  void stop_history();
  /// Empty when none is kept.
  History history() const;
  /// For whoever wants to see a while of a program that may keep a history itself: as `start_history` where none is kept, and the number by
  /// which `return_history` ends just that one; 0 where one is kept already, which goes on as it is. Errors: those of `start_history`.
  Result<std::uint64_t> borrow_history(const HistoryOptions& options = {});
  /// Does nothing for 0, and when somebody started or stopped another history since.
  void return_history(std::uint64_t borrowed);
  /// Writes snapshot and history of one moment as PyTorch does, for the tools that read its memory snapshots: a pickled dictionary with
  /// segments, device_traces and allocator_settings. The file is there in whole or not at all; memory is needed for the snapshot, not for
  /// the history. Error unavailable when it cannot be written.
  Result<> write_snapshot(const std::string& path) const;
  /// The same of several allocators in one file, each with the number of its device and of a moment of its own, one behind the other. Those
  /// that were closed are left out.
  static Result<> write_snapshots(std::span<const DeviceCachingAllocator* const> allocators, const std::string& path);
  /// Does so at the first out-of-memory from now on; an empty path: not any more. What goes wrong then is logged.
  void write_snapshot_at_out_of_memory(std::string path);
  /// For as long as the allocator lives.
  void attach_tracker(TraceTracker tracker);

  /// Tells the listener of each block while the probe has a subscriber; without one an allocation costs a load and a branch more. Once,
  /// before the first allocation. The listener must outlive the allocator.
  void set_listener(AllocationListener& listener) noexcept { listener_ = &listener; }
  /// What is allocated now, as it was asked for: `requested_bytes` of the statistics, for the price of a lock for each stream.
  std::uint64_t requested_bytes() const noexcept;
  /// What was asked for with the live block that begins at this address; nothing where none does.
  std::optional<std::uint64_t> requested_bytes_of(const void* address) const noexcept;

  /// Looks for misuse from now on; what was known before goes. A `record_use` of an address in a block that was freed is a finding, and
  /// what is refused as freed twice is said to have been a block, with its stacks. Error invalid_argument for 0 `max_freed_blocks`.
  Result<> start_checks(const CheckOptions& options = {});
  void stop_checks();
  /// What was allocated and not freed, at most so many rows of it. Stacks and ages are of the checks, or stacks of the history, when there
  /// are any.
  LiveBlockReport report_live_blocks(std::size_t max_rows = 20) const;

  /// For a forked child, in which locks may be held by threads that are not there: from now on allocations and what else can fail give
  /// unavailable with this sentence, which must stay; frees do nothing, questions have empty answers, and there are no more pools. Takes no
  /// lock. There is no way back.
  void close(const char* why) noexcept;

 private:
  explicit DeviceCachingAllocator(std::unique_ptr<DeviceAllocator> allocator) noexcept;
  Result<void*> tell(Result<void*> allocated, std::size_t bytes) const;
  Result<> tell_and_free(void* address);

  AllocationListener* listener_ = nullptr;
  const std::unique_ptr<DeviceAllocator> allocator_;
};

}  // namespace xpu::memory
