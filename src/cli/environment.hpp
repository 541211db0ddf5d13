#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/result.hpp"

/// What a program needs in its environment to be recorded.
namespace xpu::cli {

inline constexpr std::string_view kRecordVariable = "XPU_RECORD";
inline constexpr std::string_view kLayersVariable = "OPENCL_LAYERS";

/// Absolute path of the OpenCL layer, which lies beside libxpu.so wherever this program took that from. Never from the environment.
/// unavailable: it is not there, or its path has a colon, which OPENCL_LAYERS cannot hold.
Result<std::string> find_opencl_layer();

/// The value of `name` in a list of NAME=VALUE texts; null when it is not there.
const char* find_variable(const char* const* environment, std::string_view name);

/// The program's OPENCL_LAYERS: `existing` (may be null) stays in front, so that the layers that were there are nearer to the driver; ours
/// is not named twice.
std::string layers_value(const char* existing, std::string_view layer);

/// A copy of `environment` with XPU_RECORD and OPENCL_LAYERS set.
std::vector<std::string> program_environment(const char* const* environment, const std::string& live_path, const std::string& layer);

}  // namespace xpu::cli
