#pragma once

#include <string>
#include <vector>

#include "xpu/base/export.hpp"

namespace xpu::profiler {

/// Something that a session in this process can see or cannot.
struct Capability {
  std::string what;           ///< "work of libxpu's runtime", "kernel", ...
  bool is_available = false;  ///< At this moment.
  std::string reason = {};    ///< In a sentence: why not, or what it takes; empty where there is nothing to say.
};

/// What a session that began now would see, and why not more: sources of work first, then what can be collected of it
/// (`ActivityKind`). Changes as the program goes on. Opens nothing, loads nothing, starts nothing; any thread.
XPU_EXPORT std::vector<Capability> capabilities();

}  // namespace xpu::profiler
