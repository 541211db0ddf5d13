#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "xpu/base/result.hpp"

/// Programs that the library starts: the compiler.
namespace xpu::hal {

struct Command {
  std::vector<std::string> arguments;    ///< The first one is the program's path; no shell looks at any of them.
  std::vector<std::string> environment;  ///< "NAME=value", all of it.
};

struct CommandResult {
  bool ended_well = false;  ///< Exit status 0, or unknown because the program reaps children that are not its own.
  std::string output;       ///< Standard output and standard error as they came.
};

/// Runs it to its end with /dev/null as its input. It leads a process group of its own, so that a signal which the terminal sends to the
/// program does not hit it halfway, and so that it is killed with its children when it takes longer than `limit`.
/// Errors: unavailable when it cannot be started, timeout when it was killed.
Result<CommandResult> run_command(const Command& command, std::chrono::milliseconds limit);

/// The file that a shell would start for `name`: `name` itself when it has a slash, else the first executable one in `path` (folders with
/// colons between them; one that is not absolute is skipped). Empty when there is none.
std::string find_program(const std::string& name, const std::string& path);

}  // namespace xpu::hal
