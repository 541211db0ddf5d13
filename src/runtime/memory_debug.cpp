#include "runtime/memory_debug.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/process.hpp"

namespace xpu::runtime {
namespace {

constexpr std::string_view kKeys = "oom_snapshot, live_blocks, checks and guards";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Result<> set(MemoryDebug& debug, std::string_view key, std::string_view value) {
  if (key == "oom_snapshot") {
    if (value.empty()) return Error{ErrorCode::invalid_argument, "oom_snapshot needs the path of a file"};
    debug.out_of_memory_snapshot = value;
    return {};
  }
  bool* const flag = key == "live_blocks" ? &debug.lists_live_blocks
                     : key == "checks"    ? &debug.checks
                     : key == "guards"    ? &debug.guards
                                          : nullptr;
  if (flag == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("there is no key '{}', there are {}", key, kKeys)};
  if (value != "True" && value != "False") {
    return Error{ErrorCode::invalid_argument, fmt::format("{} is True or False, not '{}'", key, value)};
  }
  *flag = value == "True";
  return {};
}

}  // namespace

Result<MemoryDebug> parse_memory_debug(std::string_view text) {
  MemoryDebug debug;
  while (!trimmed(text).empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    XPU_TRY(set(debug, trimmed(entry.substr(0, colon)), trimmed(entry.substr(std::min(colon + 1, entry.size())))));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
  }
  return debug;
}

const Result<MemoryDebug>& memory_debug() {
  static const auto& debug = *new Result<MemoryDebug>([]() -> Result<MemoryDebug> {
    const char* text = base::has_raised_privileges() ? nullptr : secure_getenv("XPU_MEMORY_DEBUG");
    auto parsed = parse_memory_debug(text == nullptr ? "" : text);
    if (!parsed) return Error{parsed.error().code, "XPU_MEMORY_DEBUG: " + parsed.error().message};
    return parsed;
  }());
  return debug;
}

}  // namespace xpu::runtime
