#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "xpu/base/result.hpp"
#include "xpu/trace/recording/layout.hpp"

namespace xpu::trace {

/// The block `options` of a live folder: what a launcher wants recorded. Nothing when the folder does not exist. Errors: the file is not a
/// regular file of this user, or not of this format. No link is followed.
Result<std::optional<OptionsBlock>> read_live_options(const std::string& live_path);

/// False when the recorder of these options has died.
bool is_recorder_alive(const OptionsBlock& options) noexcept;

}  // namespace xpu::trace
