#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xpu/profiler/activity.hpp"

/// The pieces of a Chrome trace that are the same for many events: arguments and names of rows as JSON text.
namespace xpu::profiler {

/// Grid (work-groups) and block (work-items of one), or the global size alone where the driver chose the block; begins with a comma.
std::string geometry_args(const GeometryDefinition& geometry);
/// What is known of the compiled kernel; begins with a comma or is empty.
std::string kernel_args(const KernelDefinition& kernel);

/// An event that says something about a row, with a comma and a new line before it.
std::string metadata_event(std::string_view pid, std::string_view tid, std::string_view name, std::string_view argument);
std::string name_argument(std::string_view name);
std::string sort_argument(std::uint64_t index);

}  // namespace xpu::profiler
