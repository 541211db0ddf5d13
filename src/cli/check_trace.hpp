#pragma once

#include <string>

#include "cli/commands.hpp"
#include "xpu/profiler/trace_checker.hpp"

namespace xpu::cli {

/// A table of what was found, with the first places of each, and the verdict in the last line: "OK: ..." or "WRONG: ...".
std::string check_trace_text(const profiler::TraceCheck& check);
/// One JSON document, schema "xpu.check_trace/1".
std::string check_trace_json(const profiler::TraceCheck& check);
/// The rules with their severities and meanings, a line each.
std::string trace_rules_text();

/// `check` for a file that begins as a trace does.
int check_trace(const CheckRequest& request);

}  // namespace xpu::cli
