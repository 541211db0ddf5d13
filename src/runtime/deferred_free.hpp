#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::runtime {

struct DeviceState;
struct StreamState;

/// Memory whose owner let go of it while work that may use it was pending: it goes back when that work has ended. Nobody waits for it but
/// who needs the memory. Thread-safe. Called outside of a probe::Scope, so that what goes back is told.
class DeferredFree {
 public:
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
    hal::MemoryKind kind = hal::MemoryKind::device;
  };

  explicit DeferredFree(DeviceState& device) noexcept : device_(device) {}
  DeferredFree(const DeferredFree&) = delete;
  DeferredFree& operator=(const DeferredFree&) = delete;

  /// Frees the block at once when no stream of the device is busy, else when everything has ended that was submitted to them until now.
  void free(const Block& block);
  /// Frees what nothing uses any more. Costs nothing when there is nothing.
  void poll() {
    if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      poll_held();
  }
  /// Waits for the work that holds back one of the blocks, and frees that one. False when there is no block whose work can be waited for
  /// here: none at all, or all of them used by the very operation that calls.
  bool wait_for_one();
  /// How many blocks went back so far.
  std::uint64_t freed_count() const noexcept { return freed_count_.load(std::memory_order_acquire); }

 private:
  struct Use;
  struct Held;

  void poll_held();
  std::vector<std::shared_ptr<Held>> held() const XPU_EXCLUDES(mutex_);
  void release(const Held& held) XPU_EXCLUDES(mutex_);
  void free_now(const Block& block) noexcept;

  DeviceState& device_;
  // Never held while a driver is asked: asking sim runs kernels, which may come here again.
  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<Held>> held_ XPU_GUARDED_BY(mutex_);  // the oldest first
  std::atomic<std::size_t> count_{0};                               // of them
  std::atomic<std::uint64_t> freed_count_{0};
};

}  // namespace xpu::runtime
