#pragma once

#include <string>
#include <vector>

#include "xpu/profiler/report.hpp"

namespace xpu::cli {

/// What makes `xpu check` fail, a sentence each: queues whose books do not balance, and damage. Losses that are counted are no problem.
std::vector<std::string> find_problems(const profiler::Report& report);

std::string check_text(const profiler::Report& report);
/// One JSON document, schema "xpu.check/1".
std::string check_json(const profiler::Report& report);

}  // namespace xpu::cli
