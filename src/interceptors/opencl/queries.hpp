#pragma once

#include <cstddef>
#include <string_view>

#include "interceptors/opencl/layer_state.hpp"

namespace xpu::interceptors::opencl {

/// Asks the driver for a value of fixed size; `fallback` when it has no answer. `function` is one of the clGet…Info entries of the target
/// table.
template <typename Value, typename Function, typename Handle, typename Name>
Value ask(Function function, Handle handle, Name name, Value fallback) noexcept {
  Value value{};
  if (function == nullptr || function(handle, name, sizeof value, &value, nullptr) != CL_SUCCESS) return fallback;
  return value;
}

/// The same for a text of at most `room` bytes, terminator included; empty when there is no answer or it is longer.
template <std::size_t room, typename Function, typename Handle, typename Name>
std::string_view ask_text(Function function, Handle handle, Name name, char (&buffer)[room]) noexcept {
  std::size_t bytes = 0;
  if (function == nullptr || function(handle, name, room, buffer, &bytes) != CL_SUCCESS || bytes == 0 || bytes > room) return {};
  const std::string_view text(buffer, bytes);
  return text.substr(0, text.find('\0'));
}

}  // namespace xpu::interceptors::opencl
