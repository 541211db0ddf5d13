#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/queue_progress.hpp"
#include "xpu/memory/allocator.hpp"
#include "xpu/memory/config.hpp"

namespace xpu::memory {

struct AsyncOptions {
  Config config = {};
  /// So much memory of the device is kept when somebody has waited for a stream: see `note_synchronized`.
  std::size_t release_threshold_bytes = kUnlimitedBytes;
  /// By which messages name the device.
  int device = 0;
};

/// Memory that is allocated and freed in the order of streams: a free is a point of a stream's work, and what that stream does later may
/// have the memory at once. It is a DeviceCachingAllocator that may be told at a free which stream that is, and differs from it so:
///
/// - `free(address, stream)` says that everything which uses the block comes before this point of `stream`: whoever frees on another stream
///   than the block was allocated on has made it wait. `free(address)` is a free on the stream for which the block was allocated.
/// - `stream` gets the memory at its next allocation of about that size, without a wait. That lasts until the stream for which the device
///   gave the memory allocates again, or memory is short, or a `trim`: then the block is let go, and serves that stream when `stream` has
///   reached a ticket that was issued after this, and others when it was given back to the device, as in the caching allocator.
/// - Streams of `record_use` are waited for as in the caching allocator. A block with such a use is let go when it is freed: `stream` does
///   not get it at once.
///
/// There are no pools, and nothing is known of graphs. Whether a driver orders memory by streams itself is not asked: the order is made
/// here, of tickets. Thread-safe.
class XPU_EXPORT AsyncAllocator final : public Allocator {
 public:
  /// As DeviceCachingAllocator::create.
  static Result<std::unique_ptr<AsyncAllocator>> create(hal::MemoryProvider& memory, hal::QueueProgress& progress,
                                                        const AsyncOptions& options = {});
  /// Only tests destroy one.
  ~AsyncAllocator() override;

  Result<void*> allocate(std::size_t bytes, const StreamRef& stream) override;
  Result<> free(void* address) override;
  /// Errors as of `free(address)`.
  Result<> free(void* address, const StreamRef& stream);
  bool record_use(void* address, const StreamRef& stream) override;
  /// `trim(0)`.
  void empty_cache() override { trim(0); }
  /// Gives free memory back until at most so much is taken from the device. What streams may still use stays.
  void trim(std::uint64_t kept_bytes);

  /// The caller has waited for a stream or for the device, so that giving memory back does not cost much: what is free beyond the release
  /// threshold goes back.
  void note_synchronized();
  void set_release_threshold(std::size_t bytes) noexcept;
  std::size_t release_threshold() const noexcept;

  /// As of a DeviceCachingAllocator. What was freed on another stream than its own, and has not been let go, is active and not allocated.
  DeviceStatistics statistics() const override;
  void reset_peak_statistics() override;
  void reset_accumulated_statistics() override;

 private:
  class State;
  explicit AsyncAllocator(std::unique_ptr<State> state) noexcept;
  const std::unique_ptr<State> state_;
};

}  // namespace xpu::memory
