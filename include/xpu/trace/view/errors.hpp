#pragma once

#include <string_view>

#include "xpu/base/error.hpp"
#include "xpu/base/export.hpp"
#include "xpu/trace/view/enums.hpp"

namespace xpu::trace::view {

/// The library's error for a code of the view interface; `what` names the call or its argument, at the beginning of the sentence. `code` is
/// none of `success` and `end_of_buffer`, which are no errors; those become internal.
XPU_EXPORT Error to_error(ResultCode code, std::string_view what);

/// The code that the view interface answers for an error of the library.
XPU_EXPORT ResultCode to_result_code(ErrorCode code) noexcept;

}  // namespace xpu::trace::view
