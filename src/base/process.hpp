#pragma once

#include "xpu/base/export.hpp"

namespace xpu::base {

/// True from the moment that exit() reached the handler which `watch_process_exit` registered. Drivers may be half torn down then: what can
/// be left undone should be. Handlers that were registered later run earlier and still see false.
XPU_EXPORT bool process_is_exiting() noexcept;
/// Registers that handler, once per process however often it is called.
XPU_EXPORT void watch_process_exit() noexcept;

/// True in a process that runs with more rights than whoever started it (set-user-id, file capabilities). Nothing in its environment may be
/// believed then: no variable of ours is read and nothing is recorded.
XPU_EXPORT bool has_raised_privileges() noexcept;

}  // namespace xpu::base
