#pragma once

#include <cstdint>
#include <memory>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/properties.hpp"
#include "xpu/memory/device_caching_allocator.hpp"
#include "xpu/memory/host_caching_allocator.hpp"

namespace xpu {

class Stream;
namespace runtime {
struct DeviceState;
}

using hal::MemoryInfo;

/// A device of this process, by its index. A plain value; thread-safe. The devices are those of the drivers in `XPU_DRIVER`, filtered and
/// ordered by `XPU_VISIBLE_DEVICES`; they are the same for the life of the process.
class XPU_EXPORT Device {
 public:
  /// Initialises nothing, so that a process may still fork. An error tells why devices cannot be counted (an invalid
  /// `XPU_VISIBLE_DEVICES`).
  static Result<int> count();
  /// Error invalid_argument: "The device index is out of range. It must be in [0, N), but got I."; not_found when there is none at all.
  static Result<Device> get(int index);

  /// The calling thread's device: 0 at first.
  static int current() noexcept;
  /// A negative index changes nothing.
  static Result<> set_current(int index);
  /// Sets it and returns the one before; a negative index changes nothing and returns -1.
  static Result<int> exchange_current(int index);

  int index() const noexcept;
  /// Initialises nothing. Lives for ever.
  const DeviceProperties& properties() const noexcept;
  /// "host", "opencl", …
  const char* driver() const noexcept;
  /// Opens the device. Lives for ever.
  Result<const hal::Capabilities*> capabilities() const;
  /// The device itself, for what the runtime has no call of its own for. Opens it; lives for ever.
  Result<hal::Device*> native() const;

  /// Waits for everything on every stream of the device, external ones and those of libraries included; returns the first asynchronous
  /// error.
  Result<> synchronize() const;
  /// Free is the device's own figure where it has one, else estimated from what this process took (`MemoryInfo::is_measured`), what its
  /// allocators keep for later included.
  Result<MemoryInfo> memory_info() const;
  /// The caching allocator of the device's memory, for whoever wants its statistics, snapshots, histories, pools and limits, or blocks
  /// without a Buffer round them: `allocate(bytes, stream.memory_ref())`. Its options are those of the environment variable
  /// `XPU_MEMORY_CONF`, and what it tells by itself is said by `XPU_MEMORY_DEBUG` (docs/memory.md). What anybody allocates from it is on
  /// record like buffers. Opens the device; lives for ever.
  /// Errors: invalid_argument when a variable makes no sense, unsupported without memory of its own.
  Result<memory::DeviceCachingAllocator*> allocator() const;
  /// From now on device memory of buffers comes from this allocator, a PluggableAllocator or one's own, which is kept for ever. Error
  /// failed_precondition when an allocator serves buffers of this device already: after the first one, or a former call.
  Result<> replace_allocator(std::shared_ptr<memory::Allocator> allocator) const;
  /// The allocator of pinned host memory.
  Result<memory::HostCachingAllocator*> host_allocator() const;
  /// Whether this device's kernels may touch the memory of `peer`. True for itself; from a table that is made once.
  Result<bool> can_access_peer(const Device& peer) const;

  bool operator==(const Device&) const = default;

 private:
  friend class Stream;
  explicit Device(runtime::DeviceState* state) noexcept : state_(state) {}

  runtime::DeviceState* state_;
};

/// `Device::synchronize` of a device, by default the current one.
XPU_EXPORT Result<> synchronize(int device = -1);

/// Makes a device the calling thread's current one and puts the former one back at its end, in whatever order of nesting and on whatever
/// way out. A negative index is no device: nothing changes. One owner, on one thread.
class XPU_EXPORT DeviceGuard {
 public:
  static Result<DeviceGuard> make(int index);
  ~DeviceGuard();
  DeviceGuard(DeviceGuard&& other) noexcept;
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  DeviceGuard& operator=(DeviceGuard&&) = delete;

  /// The device before; -1 when nothing was changed.
  int original() const noexcept { return original_; }

 private:
  explicit DeviceGuard(int original) noexcept : original_(original) {}
  int original_;
};

}  // namespace xpu
