#pragma once

#include <cstdint>

#include "xpu/base/result.hpp"

namespace xpu::drivers::host {

/// On which thread operations run. Order, events and records are the same in all.
enum class Executor : std::uint8_t {
  adaptive,  ///< On the submitting thread what was promised to be short and independent and can begin at once, on a worker the rest.
  pool,      ///< On a worker.
  caller,    ///< On the submitting thread, before the submission returns ("inline").
};

/// How a driver is set up. Every 0 is a default that depends on the machine.
struct Options {
  std::uint32_t devices = 1;
  Executor executor = Executor::adaptive;
  std::uint64_t memory_bytes = 0;  ///< Limit of each device; 0: three quarters of what the process may use, divided by the devices.
  std::uint32_t threads = 0;       ///< Queues that can run at the same time; 0: the processors, at least 4.
  std::uint32_t processors = 0;    ///< Over which one kernel is spread; 0: those that the process may use. Not in the environment.
};

inline constexpr std::uint32_t kMostDevices = 64;
inline constexpr std::uint32_t kMostThreads = 1024;

/// The value of an environment variable, or null.
using ReadVariable = const char* (*)(const char* name);

/// From XPU_HOST_DEVICES, XPU_HOST_EXECUTOR, XPU_HOST_MEMORY and XPU_HOST_THREADS; what is not set or empty is the default. A bad value is
/// an error that names the variable, the value and what is allowed.
Result<Options> read_options(ReadVariable read);
/// From the environment of the process, or the defaults where that may not be believed.
Result<Options> read_options();

/// The same with every default replaced by the machine's value.
Options with_defaults(Options options);

}  // namespace xpu::drivers::host
