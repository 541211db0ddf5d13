#pragma once

#include <span>
#include <string>

#include "xpu/profiler/cpu_trace.hpp"

/// What a framework says of its operations, as JSON and as text.
namespace xpu::profiler {

/// `,"key":value` for each, whatever bytes they hold.
void append_arguments(std::string& out, std::span<const CpuArgument> arguments);

/// A value as JSON. Numbers that JSON has none for are null.
std::string json_value(const CpuArgumentValue& value);

}  // namespace xpu::profiler
