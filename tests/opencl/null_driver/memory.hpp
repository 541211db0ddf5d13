#pragma once

#include "null_driver/objects.hpp"

namespace xpu::null_driver {

/// CL_SUCCESS, or why these flags with this pointer make no memory object.
cl_int check_flags(cl_mem_flags flags, const void* host_pointer) noexcept;

/// Gives a memory object with its flags and size set its bytes; false when there are none.
bool allocate(cl_mem memory, void* host_pointer) noexcept;

/// Bytes of one element of an image format, 0 for a format that does not exist.
std::size_t bytes_of_format(const cl_image_format& format) noexcept;

}  // namespace xpu::null_driver
