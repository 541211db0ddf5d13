#pragma once

#include "null_driver/api.hpp"
#include "null_driver/timeline.hpp"

namespace xpu::null_driver {

/// The end of every map call: submits, counts the mapping, and answers the bytes of `memory` from `offset` on, or null with the reason.
inline void* map(const Submission& submission, cl_mem memory, cl_map_flags flags, std::size_t offset, cl_int* error) {
  constexpr cl_map_flags kAll = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
  if ((flags & ~kAll) != 0 || ((flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 && flags != CL_MAP_WRITE_INVALIDATE_REGION)) {
    return refuse(error, CL_INVALID_VALUE);
  }
  cl_int code = submit(submission);
  // A blocking map whose dependency failed was a command all the same, but gives no pointer.
  if (code != CL_SUCCESS) return refuse(error, code);
  memory->map_count.fetch_add(1, std::memory_order_relaxed);
  return created(error, memory->bytes + offset);
}

}  // namespace xpu::null_driver
