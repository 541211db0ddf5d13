#pragma once

#include <string_view>

namespace xpu::hal {

/// The text of include/xpu/hal/kernel_function.hpp, as it was when the library was built.
std::string_view kernel_function_text() noexcept;

}  // namespace xpu::hal
