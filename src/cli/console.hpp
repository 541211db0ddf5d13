#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "xpu/base/result.hpp"

/// The two outputs of the program `xpu`: what was asked for goes to standard output, everything else is a line "xpu: ..." on standard
/// error.
namespace xpu::cli {

/// Exit codes of our own. `record` uses those of env(1) and timeout(1), because every other number belongs to the program that it runs.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kRecordFailed = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

/// One whole line on standard error in one write; "xpu: " and the line end are added. Failures are ignored: there is nobody to tell.
void say_text(std::string_view line);

template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  say_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Writes all of it to standard output. A reader that went away (`xpu report | head`) is no error. SIGPIPE must be ignored.
Result<> print(std::string_view text);
/// Of the terminal that standard output is; 0 when it is none.
int terminal_columns();

/// A line on the terminal that is written over; nothing at all when standard error is no terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// At most ten times a second is anything written, and not in the first half second. Returns at once otherwise.
  void show(std::string_view text);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  std::uint64_t next_ns_;
};

}  // namespace xpu::cli
