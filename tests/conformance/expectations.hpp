#pragma once

#include <map>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"

namespace xpu::conformance {

/// What is known of one driver before its tests run; the file `expectations/<driver>.txt`. One entry a line, '#' begins a comment:
///
///     environment XPU_HOST_DEVICES=2
///     environment XPU_SIM_PROGRAM=${FOLDER}/sim_program.txt   # the folder of the expectations
///     unsupported priorities: all queues are equal
///     unsupported concurrent_operations when XPU_HOST_EXECUTOR=inline: operations run inside the submitting call
///     expected_failure EventTest.TicksAreMonotone: ticks of the first queue come from another clock
struct Expectations {
  bool is_listed = false;                                ///< False: the driver has no file, and may lack whatever it says it lacks.
  std::map<std::string, std::string> environment;        ///< Set before the driver is created, unless it is set already.
  std::map<std::string, std::string> unsupported;        ///< Need (to_string) -> reason. The driver itself must say so, too.
  std::map<std::string, std::string> expected_failures;  ///< "Suite.Test" -> reason. Passing is a failure.
};

/// An entry with a `when` counts only while the environment says so. Errors: invalid_argument naming the line.
Result<Expectations> parse_expectations(std::string_view text);

/// Of the driver of this name, read once. Empty where there is no file; a bad file ends the program with a sentence and exit code 1.
const Expectations& expectations_of(const std::string& driver);

}  // namespace xpu::conformance
