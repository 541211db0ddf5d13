#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "xpu/base/export.hpp"

namespace xpu::base {

enum class LogLevel : std::uint8_t { off = 0, error = 1, warn = 2, info = 3, debug = 4, trace = 5 };

/// Takes one finished line without a newline: "xpu: warning: opencl: no event for a command". Called from any thread, one at a time.
using LogSink = void (*)(LogLevel level, const char* component, const char* line);

/// Null puts the default back, which writes the line to standard error with one write().
XPU_EXPORT void set_log_sink(LogSink sink) noexcept;

/// Whether a line of this component and level would be written. The levels come from `XPU_LOG`, read once and only in a process without
/// raised privileges: a level for all ("debug"), for one component ("trace:debug"), or a comma list of such; the default is "warn".
XPU_EXPORT bool log_enabled(const char* component, LogLevel level) noexcept;

/// Replaces what `XPU_LOG` said, in the same notation. False, and nothing changes, when a part is not understood.
XPU_EXPORT bool set_log_levels(std::string_view levels) noexcept;

namespace internal {
XPU_EXPORT void write_log(const char* component, LogLevel level, fmt::string_view format, fmt::format_args arguments) noexcept;

template <typename... Arguments>
void log(const char* component, LogLevel level, fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  if (log_enabled(component, level)) write_log(component, level, format, fmt::make_format_args(arguments...));
}
}  // namespace internal

}  // namespace xpu::base

/// `XPU_LOG_WARN("trace", "cannot map {}: {}", path, reason);` The component is the layer's name. Never on a path that submits or records.
#define XPU_LOG_ERROR(component, ...) ::xpu::base::internal::log(component, ::xpu::base::LogLevel::error, __VA_ARGS__)
#define XPU_LOG_WARN(component, ...) ::xpu::base::internal::log(component, ::xpu::base::LogLevel::warn, __VA_ARGS__)
#define XPU_LOG_INFO(component, ...) ::xpu::base::internal::log(component, ::xpu::base::LogLevel::info, __VA_ARGS__)
#define XPU_LOG_DEBUG(component, ...) ::xpu::base::internal::log(component, ::xpu::base::LogLevel::debug, __VA_ARGS__)
#define XPU_LOG_TRACE(component, ...) ::xpu::base::internal::log(component, ::xpu::base::LogLevel::trace, __VA_ARGS__)

/// At most one line per place in the code and process, for what would otherwise be said a million times.
#define XPU_LOG_WARN_ONCE(component, ...)                               \
  do {                                                                  \
    static constinit std::atomic<bool> xpu_said{false};                 \
    if (!xpu_said.exchange(true)) XPU_LOG_WARN(component, __VA_ARGS__); \
  } while (false)
