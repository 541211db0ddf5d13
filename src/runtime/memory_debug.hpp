#pragma once

#include <string>
#include <string_view>

#include "xpu/base/result.hpp"

namespace xpu::runtime {

/// What a program's memory is asked to tell by itself: the environment variable `XPU_MEMORY_DEBUG`, "key:value" separated by commas as in
/// `XPU_MEMORY_CONF`, booleans True and False. Everything is off by default, and costs nothing then.
struct MemoryDebug {
  /// `oom_snapshot:PATH`: a snapshot is written there at the first out-of-memory of device 0, to PATH.1 at that of device 1 and so on.
  std::string out_of_memory_snapshot;
  /// `live_blocks:True`: what is allocated when the runtime ends is listed with stacks, on standard error.
  bool lists_live_blocks = false;
  /// `checks:True`: uses of freed blocks are reported, and what was freed twice is named.
  bool checks = false;
  /// `guards:True`: buffers come from a GuardedAllocator, which finds writes beyond their ends.
  bool guards = false;
};

/// Error invalid_argument: which key or value is wrong, and what is allowed.
Result<MemoryDebug> parse_memory_debug(std::string_view text);
/// Of this process, read once. Nothing of the environment is believed where privileges are raised.
const Result<MemoryDebug>& memory_debug();

}  // namespace xpu::runtime
