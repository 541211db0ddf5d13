#pragma once

#include <cstddef>

#include "interceptors/opencl/opencl_headers.hpp"

namespace xpu::interceptors::opencl {

/// What a program passed to clCreateCommandQueueWithProperties, and the same with profiling switched on. Fixed size: longer lists, which no
/// version of OpenCL has, are left alone.
struct QueueProperties {
  static constexpr std::size_t kMaxEntries = 64;  ///< Terminator included.

  /// As the program gave it; `program_entries` counts the terminator and is 0 when it gave no list.
  cl_queue_properties program_list[kMaxEntries];
  std::size_t program_entries = 0;
  /// CL_QUEUE_PROPERTIES as the program set it.
  cl_command_queue_properties program_properties = 0;

  /// False: pass the program's own list on (a queue on the device, a list that is too long or that has profiling already).
  bool is_edited = false;
  cl_queue_properties edited_list[kMaxEntries + 2];
};

/// Reads `list` (may be null) in pairs: a value may equal a key. Never adds a second CL_QUEUE_PROPERTIES, which drivers refuse.
QueueProperties edit_queue_properties(const cl_queue_properties* list) noexcept;

}  // namespace xpu::interceptors::opencl
