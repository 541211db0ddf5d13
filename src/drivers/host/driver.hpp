#pragma once

#include <memory>

#include "drivers/host/options.hpp"
#include "xpu/hal/driver.hpp"

/// The processors of this machine as devices.
namespace xpu::drivers::host {

/// Set up by the environment (`read_options`). What is wrong there is said by `enumerate` and `open_device`.
std::unique_ptr<hal::Driver> create_driver();
std::unique_ptr<hal::Driver> create_driver(const Options& options);

}  // namespace xpu::drivers::host
