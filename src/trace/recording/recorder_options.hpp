#pragma once

#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"
#include "xpu/trace/recording/recorder.hpp"

/// What the recorder writes before a program starts: the manifest and the options, from its own options and surroundings.
namespace xpu::trace {

/// invalid_argument unless it is empty or a POSIX extended regular expression that fits into the options block.
Result<> check_kernel_expression(const std::string& kernels);

/// Options, clocks, host and environment of this moment and process.
Manifest describe_recording(const RecorderOptions& options);

/// For the file `options`. The expression must have been checked.
OptionsBlock options_block(const RecorderOptions& options);

}  // namespace xpu::trace
