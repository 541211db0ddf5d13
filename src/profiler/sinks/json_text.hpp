#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xpu::profiler {

/// Appends `text` with quotes round it as a JSON string that every reader takes: control characters, quotes and backslashes escaped, bytes
/// that are not UTF-8 replaced by U+FFFD, one per byte.
void append_json_string(std::string& out, std::string_view text);

/// The same as a string of its own.
std::string json_string(std::string_view text);

}  // namespace xpu::profiler
