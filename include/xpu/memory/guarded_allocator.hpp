#pragma once

#include <cstddef>
#include <memory>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/allocator.hpp"
#include "xpu/memory/checks.hpp"

namespace xpu::memory {

struct GuardOptions {
  /// Blocks begin at multiples of it: a power of two, at most the device's granularity. The smaller it is, the closer a block ends to the
  /// guard behind it.
  std::size_t alignment_bytes = 512;
  /// Addresses without memory that are kept of freed blocks, so that a use of them faults; those that were freed first go first.
  std::size_t quarantine_bytes = std::size_t{1} << 30;
  /// Whether this process may touch the memory: `hal::Capabilities::host_memory_access`. If not, nothing is filled and compared.
  bool is_host_accessible = false;
  CheckOptions checks = {};
};

/// Finds kernels that write where they must not, in the place of DeviceCachingAllocator and at the price of a few calls of the driver and
/// at least a page for each block. Nothing is kept for later, and there are no pools and options.
///
/// Each block has pages of its own between two guards, addresses without memory; a touch of a guard is the device's fault (a signal, where
/// the host is the device). A block ends at the guard behind it, but for the up to `alignment_bytes` - 1 bytes until the next multiple:
/// reads there go unseen, and so do reads in front of the block down to the begin of its first page. Writes to either are found when the
/// block is freed and its streams are past that, because these bytes are filled with a pattern. Then its pages go back to the device, and
/// touching it faults, until its addresses leave the quarantine.
///
/// A finding of `checks.on_misuse` is a changed pattern, or a `record_use` of an address in a block that was freed.
class XPU_EXPORT GuardedAllocator final : public Allocator {
 public:
  /// Both must outlive it. Error unsupported when the device cannot map memory, invalid_argument for an alignment that is not allowed or 0
  /// `max_freed_blocks`.
  static Result<std::unique_ptr<GuardedAllocator>> create(hal::MemoryProvider& memory, hal::QueueProgress& progress,
                                                          const GuardOptions& options = {});
  /// Gives everything back without waiting or comparing: nothing may use any of it.
  ~GuardedAllocator() override;

  /// Looks at blocks that were freed; waits for their streams only when memory is short.
  Result<void*> allocate(std::size_t bytes, const StreamRef& stream) override;
  Result<> free(void* address) override;
  bool record_use(void* address, const StreamRef& stream) override;
  /// Waits for the streams of all blocks that were freed, and looks at these. The quarantine stays: it has no memory.
  void empty_cache() override;

  /// Of what the device gave: `reserved_bytes` are whole pages.
  DeviceStatistics statistics() const override;
  void reset_peak_statistics() override;
  void reset_accumulated_statistics() override;
  /// What was allocated and not freed, at most so many rows of it.
  LiveBlockReport report_live_blocks(std::size_t max_rows = 20) const;

 private:
  class State;
  explicit GuardedAllocator(std::unique_ptr<State> state) noexcept;
  const std::unique_ptr<State> state_;
};

}  // namespace xpu::memory
