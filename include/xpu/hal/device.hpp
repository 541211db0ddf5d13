#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/module.hpp"
#include "xpu/hal/properties.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu::hal {

/// Where memory lies: on the device; on the host, pinned, so that the device reaches it; or migrating between both.
enum class MemoryKind : std::uint8_t { device, host, shared };
/// "device", "host", "shared".
XPU_EXPORT const char* to_string(MemoryKind kind) noexcept;

/// What a device offers. Asked for, never deduced from a name or a version.
struct Capabilities {
  std::uint32_t module_formats = 0;   ///< Bits `1 << ModuleFormat`.
  std::uint32_t priority_levels = 1;  ///< 3: low, normal and high order waiting work; 1: priorities are accepted and mean nothing.
  bool virtual_memory = false;        ///< reserve, map and unmap.
  bool host_memory_access = false;    ///< Kernels and copies may touch any memory of the process.
  bool timed_events = false;
  bool timed_operations = false;
  bool blocking_events = false;        ///< An event can be waited for without spinning.
  bool native_queues = false;          ///< `adopt_queue`.
  bool concurrent_operations = false;  ///< Operations of two queues can run at the same time, and may wait for each other.
};

/// Priority of a queue's waiting work; smaller goes first.
enum class QueuePriority : std::int8_t { high = -1, normal = 0, low = 1 };

struct QueueOptions {
  QueuePriority priority = QueuePriority::normal;
  /// Only for a queue that is handed to somebody else: the runtime's are in-order. A driver may execute such a queue in order.
  bool out_of_order = false;
  CompletionSink* sink = nullptr;  ///< Null: timed operations are delivered to nobody.
};

struct EventOptions {
  bool timed = false;
  bool blocking = false;  ///< `synchronize_blocking` gives the processor away at once. Only where `Capabilities::blocking_events`.
};

/// What a driver finds out about a native queue that somebody else made.
struct NativeQueueInfo {
  bool is_in_order = true;
  bool is_same_context = true;  ///< It was made with the context that this driver uses.
  std::uint32_t device = 0;     ///< Its device's ordinal in the driver.
  QueuePriority priority = QueuePriority::normal;
};

/// "Some time between `host_before_ns` and `host_after_ns` (of `ClockInfo::host_domain`) the device's clock showed `ticks`."
struct ClockReading {
  std::uint64_t host_before_ns = 0, host_after_ns = 0;
  std::uint64_t ticks = 0;
};
struct ClockInfo {
  std::uint32_t tick_numerator = 1, tick_denominator = 1;  ///< Nanoseconds per tick = numerator / denominator.
  std::uint32_t valid_bits = 64;                           ///< The counter wraps at 2^valid_bits.
  ClockDomain host_domain = ClockDomain::monotonic;        ///< Of the readings.
  ClockDomain same_as = ClockDomain::unknown;              ///< The host clock that the device's clock *is*, if it is one.
};

struct MemoryInfo {
  std::uint64_t free_bytes = 0, total_bytes = 0;
  bool is_measured = false;  ///< False: free is total minus what this process allocated.
};

/// One kind of memory of one device. Thread-safe. An allocation beyond the budget is refused with out_of_device_memory (or
/// out_of_host_memory) and changes nothing.
class XPU_EXPORT MemoryProvider {
 public:
  virtual ~MemoryProvider() = default;
  MemoryProvider(const MemoryProvider&) = delete;
  MemoryProvider& operator=(const MemoryProvider&) = delete;

  /// `alignment` is a power of two; the provider's own minimum applies too. `bytes` > 0.
  virtual Result<void*> allocate(std::size_t bytes, std::size_t alignment) = 0;
  /// Of `allocate`. Nothing may use it any more; does not wait.
  virtual void free(void* address) noexcept = 0;

  /// Address space without memory. `bytes`, and the arguments of the rest, are multiples of `granularity()`. Unsupported where
  /// `Capabilities::virtual_memory` is false.
  virtual Result<void*> reserve(std::size_t bytes) = 0;
  virtual void unreserve(void* address, std::size_t bytes) noexcept = 0;
  /// Puts memory behind a part of a reservation that has none.
  virtual Result<> map(void* address, std::size_t bytes) = 0;
  /// Takes it away again; the contents are gone. Touching it afterwards is a fault.
  virtual void unmap(void* address, std::size_t bytes) noexcept = 0;
  virtual std::size_t granularity() const noexcept = 0;

  virtual Result<MemoryInfo> info() = 0;

 protected:
  MemoryProvider() = default;
};

/// An opened device. Thread-safe.
class XPU_EXPORT Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const Capabilities& capabilities() const noexcept = 0;
  virtual const DeviceProperties& properties() const noexcept = 0;
  virtual const ClockInfo& clock() const noexcept = 0;
  /// The narrowest of a few attempts.
  virtual Result<ClockReading> read_clock() = 0;

  /// Null where the device has no such memory. Lives as long as the device.
  virtual MemoryProvider* memory(MemoryKind kind) noexcept = 0;
  /// Whether kernels of this device may touch device memory of the other one (of the same driver).
  virtual bool can_access_peer(const Device& peer) const noexcept = 0;

  virtual Result<std::unique_ptr<Queue>> create_queue(const QueueOptions& options) = 0;
  /// Facts about a queue that somebody else made; invalid_argument when it is none of this driver's.
  virtual Result<NativeQueueInfo> inspect_queue(void* native) = 0;
  /// A queue around it, which must stay while the result lives; not owned. The caller has inspected it.
  virtual Result<std::unique_ptr<Queue>> adopt_queue(void* native, CompletionSink* sink) = 0;
  virtual Result<std::unique_ptr<Event>> create_event(const EventOptions& options) = 0;
  /// A compiler's complaint is in the error's message, whole.
  virtual Result<std::unique_ptr<Module>> create_module(const ModuleSource& source) = 0;

  /// Waits for everything on every queue of the device, adopted ones included; returns the first asynchronous error of any of them and
  /// clears that one: those of other queues stay.
  virtual Result<> synchronize_blocking() = 0;

 protected:
  Device() = default;
};

}  // namespace xpu::hal
