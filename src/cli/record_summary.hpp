#pragma once

#include <string>
#include <vector>

#include "xpu/profiler/report.hpp"
#include "xpu/trace/recording/recorder.hpp"

namespace xpu::cli {

/// The line at the end of `xpu record`: what is in the recording, where it is, and what to type next.
std::string summary_line(const profiler::Report& report, const std::string& shown_path);

/// What a person must know besides, a line each: losses, commands without an end, books that do not balance, damage.
std::vector<std::string> summary_warnings(const profiler::Report& report);

/// Reads the recording, finished or not, and says both on standard error.
void say_summary(const std::string& path, const std::string& working_directory, const trace::RecorderStatus& status);

}  // namespace xpu::cli
