#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"
#include "xpu/hal/properties.hpp"

/// The contract between the runtime and a driver.
///
/// **Who checks.** The runtime has checked every argument: pointers are not null, indices are in range, arguments of a launch have the
/// right types, sizes and geometry fit the device, a format is one that `Capabilities` offers. A driver does not check again. It reports
/// what the caller could not foresee, and only this: out_of_device_memory, out_of_host_memory, device_lost, unsupported, unavailable,
/// invalid_argument for source that does not compile, code that is none, and a native queue that is not the driver's, not_found for a
/// kernel that a module lacks, and internal for a bug of the layer below. The native code goes into `Error::native_code`.
///
/// **What a driver offers** is asked for through `Capabilities` and `DeviceProperties` and never deduced from its name or version. What it
/// lacks it refuses with `unsupported`; it never pretends.
///
/// **Asynchrony.** Every call returns without waiting for the device unless it is named `…_blocking`. `query` makes progress: a program
/// that asks again and again comes to an end. A submission may wait for room when a queue is very deep.
///
/// **Order.** A queue is in-order, queues of one device overlap, `record` and `wait` order queues against each other. The effects of an
/// operation are visible to operations behind it and, after `synchronize_blocking` or a completed `query`, to the host.
///
/// **Time.** An operation submitted with a token is delivered to its queue's sink exactly once, with raw ticks of the device's clock:
/// queued <= submit <= start <= end, modulo 2^valid_bits. It is delivered before a query, a wait or an event says that the operation has
/// ended. Readings of the clock are bracketed by host times of `ClockInfo::host_domain`.
///
/// **Threads.** Driver, Device, MemoryProvider, Module and Kernel are thread-safe; a Queue takes submissions from one thread at a time. A
/// driver never calls back while it holds a lock, never logs on a path that submits, never throws. It wraps user code (kernels, host
/// functions) in `probe::ScopeSuspended`. It calls the probe for nothing else.
///
/// **Life.** Counting devices and reading their properties starts no thread, opens no device and leaves a process that may fork;
/// `open_device` may start threads. After a fork the child calls nothing. Objects may be destroyed in any order: whoever needs another one
/// keeps it alive. When the process exits, `prepare_for_exit` is called once; after it the runtime calls only
/// `Queue::query` and `Device::read_clock`.
///
/// A new driver is a folder `src/drivers/<name>` with a function `xpu::drivers::<name>::create_driver` and its name in `XPU_BUILD_DRIVERS`;
/// docs/adding_a_driver.md walks through one. `tests/conformance` holds every driver to this page.
namespace xpu::hal {

/// Thread-safe.
class XPU_EXPORT Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// As in `XPU_DRIVER`: "host". A literal.
  virtual const char* name() const noexcept = 0;
  /// The devices in the driver's own order, which is the same at every call; empty is an answer, an error is a reason why the driver cannot
  /// be used (a library that is missing). Starts nothing: see above.
  virtual Result<std::vector<DeviceProperties>> enumerate() = 0;
  /// Opens the device of this ordinal, once per driver.
  virtual Result<std::unique_ptr<Device>> open_device(std::uint32_t ordinal) = 0;
  /// The process exits: nothing new begins, what runs now gets up to `limit_ms` to end, what waits is dropped and delivered as `failed`.
  virtual void prepare_for_exit(std::uint32_t limit_ms) noexcept = 0;

 protected:
  Driver() = default;
};

/// A driver that was built into the library. The table of them is written by CMake from `XPU_BUILD_DRIVERS`.
struct DriverEntry {
  const char* name;
  std::unique_ptr<Driver> (*create)();
};
/// In the order of `XPU_BUILD_DRIVERS`.
XPU_EXPORT std::span<const DriverEntry> built_in_drivers() noexcept;

}  // namespace xpu::hal
