#pragma once

#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/properties.hpp"

/// The runtime as a whole: what is there, and when it starts.
///
/// Nothing is initialised by loading the library, by counting devices or by reading their properties; the first use of a device does it. A
/// child that is forked after that gets `unavailable` from every call and never hangs; one that is forked before is a process like any
/// other.
namespace xpu {

/// A device that a driver offers, and whether this process uses it.
struct DeviceReport {
  int index = -1;      ///< In this process; -1: hidden.
  std::string reason;  ///< Why it is hidden; empty when it is not.
  DeviceProperties properties;
};
/// A driver that is built into the library.
struct DriverReport {
  std::string name;
  bool is_selected = false;
  std::string reason;  ///< Why it offers nothing: not selected, or its own error.
  std::vector<DeviceReport> devices;
};
struct RuntimeReport {
  std::vector<DriverReport> drivers;
  std::string error;  ///< Of `XPU_DRIVER` or `XPU_VISIBLE_DEVICES`; empty when they are fine. Then no device is usable.
};

/// What is there and why the rest is not. Initialises nothing. Thread-safe.
XPU_EXPORT RuntimeReport describe_runtime();

/// Starts the runtime now instead of at the first use; returns at once when it has started. Errors: unavailable in a forked child of an
/// initialised process ("Cannot re-initialize XPU in forked subprocess. …"), not_found when there is no device, and what `describe_runtime`
/// reports. Thread-safe.
XPU_EXPORT Result<> initialize();
/// False in a forked child, too.
XPU_EXPORT bool is_initialized() noexcept;
/// This process was forked from one whose runtime had been initialised.
XPU_EXPORT bool is_in_bad_fork() noexcept;
/// Whether there is a device. Initialises nothing, never fails.
XPU_EXPORT bool is_available() noexcept;

}  // namespace xpu
