#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/hal/module.hpp"

/// The kernels of `XPU_KERNEL` in this process. Their list needs no construction and is never destroyed: programs and libraries add to it
/// before main() and take back after it. Thread-safe.
namespace xpu::hal {

/// The newest kernel of this name; null when there is none.
std::shared_ptr<const Kernel> find_registered_kernel(std::string_view name);
/// Each name once, oldest first.
std::vector<std::string> registered_kernel_names();

}  // namespace xpu::hal
