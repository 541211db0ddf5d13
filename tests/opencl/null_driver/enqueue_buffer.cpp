#include "null_driver/api.hpp"
#include "null_driver/mapping.hpp"
#include "null_driver/timeline.hpp"

// No byte moves: only map calls give access to memory, and that is the object's own. What a command's arguments must satisfy is checked.

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::submit;

namespace xpu::null_driver {
namespace {

cl_int check_buffer(cl_command_queue queue, cl_mem buffer) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (!is_valid(buffer) || buffer->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  return buffer->context == queue->context ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

cl_int check_range(cl_mem buffer, std::size_t offset, std::size_t bytes) {
  return bytes != 0 && offset <= buffer->size_bytes && bytes <= buffer->size_bytes - offset ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int check_transfer(cl_command_queue queue, cl_mem buffer, std::size_t offset, std::size_t bytes, const void* host) {
  if (const cl_int code = check_buffer(queue, buffer); code != CL_SUCCESS) return code;
  return host == nullptr ? CL_INVALID_VALUE : check_range(buffer, offset, bytes);
}

/// A rectangle inside a buffer; pitches of 0 mean "as tight as the region".
cl_int check_rectangle(cl_mem buffer, const std::size_t* origin, const std::size_t* region, std::size_t row_pitch,
                       std::size_t slice_pitch) {
  if (origin == nullptr || region == nullptr || region[0] == 0 || region[1] == 0 || region[2] == 0) return CL_INVALID_VALUE;
  if (row_pitch == 0) row_pitch = region[0];
  if (slice_pitch == 0) slice_pitch = region[1] * row_pitch;
  if (row_pitch < region[0] || slice_pitch < region[1] * row_pitch) return CL_INVALID_VALUE;
  const std::size_t last = (origin[2] + region[2] - 1) * slice_pitch + (origin[1] + region[1] - 1) * row_pitch + origin[0] + region[0];
  return last <= buffer->size_bytes ? CL_SUCCESS : CL_INVALID_VALUE;
}

}  // namespace
}  // namespace xpu::null_driver

cl_int Api::clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, std::size_t offset, std::size_t bytes, void* host,
                                cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_transfer(queue, buffer, offset, bytes, host); code != CL_SUCCESS) return code;
  if ((buffer->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0) return CL_INVALID_OPERATION;
  return submit({queue, CL_COMMAND_READ_BUFFER, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, std::size_t offset, std::size_t bytes,
                                 const void* host, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_transfer(queue, buffer, offset, bytes, host); code != CL_SUCCESS) return code;
  if ((buffer->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0) return CL_INVALID_OPERATION;
  return submit({queue, CL_COMMAND_WRITE_BUFFER, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const std::size_t* buffer_origin,
                                    const std::size_t* host_origin, const std::size_t* region, std::size_t buffer_row_pitch,
                                    std::size_t buffer_slice_pitch, std::size_t, std::size_t, void* host, cl_uint wait_count,
                                    const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_buffer(queue, buffer); code != CL_SUCCESS) return code;
  if (host == nullptr || host_origin == nullptr) return CL_INVALID_VALUE;
  const cl_int code = xpu::null_driver::check_rectangle(buffer, buffer_origin, region, buffer_row_pitch, buffer_slice_pitch);
  if (code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_READ_BUFFER_RECT, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const std::size_t* buffer_origin,
                                     const std::size_t* host_origin, const std::size_t* region, std::size_t buffer_row_pitch,
                                     std::size_t buffer_slice_pitch, std::size_t, std::size_t, const void* host, cl_uint wait_count,
                                     const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_buffer(queue, buffer); code != CL_SUCCESS) return code;
  if (host == nullptr || host_origin == nullptr) return CL_INVALID_VALUE;
  const cl_int code = xpu::null_driver::check_rectangle(buffer, buffer_origin, region, buffer_row_pitch, buffer_slice_pitch);
  if (code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_WRITE_BUFFER_RECT, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, std::size_t source_offset,
                                std::size_t destination_offset, std::size_t bytes, cl_uint wait_count, const cl_event* wait_list,
                                cl_event* event) {
  using xpu::null_driver::check_buffer;
  using xpu::null_driver::check_range;
  if (const cl_int code = check_buffer(queue, source); code != CL_SUCCESS) return code;
  if (const cl_int code = check_buffer(queue, destination); code != CL_SUCCESS) return code;
  if (const cl_int code = check_range(source, source_offset, bytes); code != CL_SUCCESS) return code;
  if (const cl_int code = check_range(destination, destination_offset, bytes); code != CL_SUCCESS) return code;
  if (source == destination && source_offset < destination_offset + bytes && destination_offset < source_offset + bytes) {
    return CL_MEM_COPY_OVERLAP;
  }
  return submit({queue, CL_COMMAND_COPY_BUFFER, wait_count, wait_list, event});
}

cl_int Api::clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const std::size_t* source_origin,
                                    const std::size_t* destination_origin, const std::size_t* region, std::size_t source_row_pitch,
                                    std::size_t source_slice_pitch, std::size_t destination_row_pitch, std::size_t destination_slice_pitch,
                                    cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  using xpu::null_driver::check_buffer;
  using xpu::null_driver::check_rectangle;
  if (const cl_int code = check_buffer(queue, source); code != CL_SUCCESS) return code;
  if (const cl_int code = check_buffer(queue, destination); code != CL_SUCCESS) return code;
  if (const cl_int code = check_rectangle(source, source_origin, region, source_row_pitch, source_slice_pitch); code != CL_SUCCESS)
    return code;
  const cl_int code = check_rectangle(destination, destination_origin, region, destination_row_pitch, destination_slice_pitch);
  if (code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_COPY_BUFFER_RECT, wait_count, wait_list, event});
}

cl_int Api::clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, std::size_t pattern_bytes, std::size_t offset,
                                std::size_t bytes, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_buffer(queue, buffer); code != CL_SUCCESS) return code;
  const bool power_of_two = pattern_bytes != 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (pattern == nullptr || !power_of_two || pattern_bytes > 128) return CL_INVALID_VALUE;
  if (offset % pattern_bytes != 0 || bytes % pattern_bytes != 0) return CL_INVALID_VALUE;
  if (const cl_int code = xpu::null_driver::check_range(buffer, offset, bytes); code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_FILL_BUFFER, wait_count, wait_list, event});
}

void* Api::clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, std::size_t offset,
                              std::size_t bytes, cl_uint wait_count, const cl_event* wait_list, cl_event* event, cl_int* error) {
  cl_int code = xpu::null_driver::check_buffer(queue, buffer);
  if (code == CL_SUCCESS) code = xpu::null_driver::check_range(buffer, offset, bytes);
  if (code != CL_SUCCESS) return xpu::null_driver::refuse(error, code);
  const xpu::null_driver::Submission submission{queue, CL_COMMAND_MAP_BUFFER, wait_count, wait_list, event, blocking != CL_FALSE};
  return xpu::null_driver::map(submission, buffer, flags, offset, error);
}

cl_int Api::clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* pointer, cl_uint wait_count, const cl_event* wait_list,
                                    cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (!is_valid(memory)) return CL_INVALID_MEM_OBJECT;
  const auto* byte = static_cast<const std::byte*>(pointer);
  if (pointer == nullptr || byte < memory->bytes || byte >= memory->bytes + memory->size_bytes) return CL_INVALID_VALUE;
  if (memory->map_count.load(std::memory_order_relaxed) == 0) return CL_INVALID_VALUE;
  const cl_int code = submit({queue, CL_COMMAND_UNMAP_MEM_OBJECT, wait_count, wait_list, event});
  if (code == CL_SUCCESS) memory->map_count.fetch_sub(1, std::memory_order_relaxed);
  return code;
}
