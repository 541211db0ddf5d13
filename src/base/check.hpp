#pragma once

#include "xpu/base/export.hpp"

namespace xpu::base {

/// What happens when an invariant is broken: by default one line on standard error and abort(). In a program that is not ours (entered
/// through an interceptor) a handler is installed that switches recording off; it gets the text once per process and returns.
using CheckHandler = void (*)(const char* message);
/// Null puts the default back.
XPU_EXPORT void set_check_handler(CheckHandler handler) noexcept;

namespace internal {
/// Always false, so that XPU_CHECK is a condition.
XPU_EXPORT bool check_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace internal

}  // namespace xpu::base

/// For broken invariants, never for a user's input. True when the condition holds; the caller handles the other case, because execution
/// goes on where a handler is installed: `if (!XPU_CHECK(size <= room)) return;`
#define XPU_CHECK(condition) (static_cast<bool>(condition) || ::xpu::base::internal::check_failed(#condition, __FILE__, __LINE__))
