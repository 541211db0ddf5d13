#pragma once

#include <span>
#include <string>

#include "xpu/profiler/cpu_trace.hpp"

/// What a framework says of its operations, as JSON and as text.
namespace xpu::profiler {

/// `,"key":value` for each, whatever bytes they hold.
void append_arguments(std::string& out, std::span<const CpuArgument> arguments);

/// Whether a kernel that a collective submitted says this, too: sizes, types, the group and the ranks, under the keys of PyTorch's
/// `record_param_comms`.
bool is_of_collective(const CpuArgument& argument);
/// Whether the operation is such a collective.
bool is_collective(std::span<const CpuArgument> arguments);

/// A value as JSON. Numbers that JSON has none for are null.
std::string json_value(const CpuArgumentValue& value);

}  // namespace xpu::profiler
