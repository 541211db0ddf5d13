#pragma once

#include <functional>
#include <thread>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::base {

/// A thread of ours in somebody else's program: with a name of at most 15 characters, and with every signal blocked, because the program's
/// signals are for the program's threads. Error unavailable, with the system's reason.
XPU_EXPORT Result<std::thread> start_service_thread(const char* name, std::function<void()> body);

}  // namespace xpu::base
