#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace CLI {
class App;
}

/// How the commands are typed.
namespace xpu::cli {

/// Either a request, or the exit code of a command line that asked for help or was wrong; then everything is said already.
template <typename Request>
struct Parsed {
  std::optional<Request> request;
  int exit_code = 0;
};

Parsed<RecordRequest> parse_record(std::span<const std::string> arguments);
Parsed<ReportRequest> parse_report(std::span<const std::string> arguments);
Parsed<ExportRequest> parse_export(std::span<const std::string> arguments);
Parsed<CheckRequest> parse_check(std::span<const std::string> arguments);
Parsed<InfoRequest> parse_info(std::span<const std::string> arguments);

/// Where the program begins in the arguments of `record`: behind "--", or at the first word that is neither an option of ours nor its
/// value.
struct SplitArguments {
  std::vector<std::string> ours;
  std::vector<std::string> program;
};
SplitArguments split_program(std::span<const std::string> arguments, const CLI::App& record);

/// The whole program: parses, does it, and returns the exit code (record may end this process by the program's signal instead).
int run(int argc, char** argv);

}  // namespace xpu::cli
