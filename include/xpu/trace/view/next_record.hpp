#pragma once

#include <cstddef>

#include "xpu/base/export.hpp"
#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {

/// Bytes of a record of this kind, its tail included; 0 for kinds of which there are none.
XPU_EXPORT std::size_t view_bytes(ViewKind kind) noexcept;

/// Steps through a buffer of `bytes` bytes that holds view records one after the other: `*record` is null before the first step, then the
/// record that the step before found. Each record is returned only if all of it lies inside the buffer. Any thread; any bytes.
///
///  success        `*record` is the next one
///  end_of_buffer  there is no further one, or no buffer at all (null or 0 bytes); `*record` stays, so that asking again answers the same
///  bad_argument   `record` is null, `*record` is not inside this buffer, or what comes next has an unknown kind or is cut off; `*record`
///  stays
XPU_EXPORT ResultCode next_record(const void* buffer, std::size_t bytes, const ViewHeader** record) noexcept;

}  // namespace xpu::trace::view
