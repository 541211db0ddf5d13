#include "null_driver/api.hpp"
#include "null_driver/mapping.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::submit;

namespace xpu::null_driver {
namespace {

cl_int check_image(cl_command_queue queue, cl_mem image, const std::size_t* origin, const std::size_t* region) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (!is_valid(image) || image->element_bytes == 0) return CL_INVALID_MEM_OBJECT;
  if (image->context != queue->context) return CL_INVALID_CONTEXT;
  if (origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  const cl_image_desc& description = image->description;
  // Axes that an image does not have count as one element long; arrays are indexed by the axis behind their last real one.
  const bool array_1d = description.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  const bool array_2d = description.image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  const std::size_t size[3] = {description.image_width, array_1d ? description.image_array_size : description.image_height,
                               array_2d ? description.image_array_size : description.image_depth};
  for (int i = 0; i < 3; ++i) {
    if (region[i] == 0 || origin[i] + region[i] > (size[i] == 0 ? 1 : size[i])) return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

cl_int check_buffer_side(cl_mem buffer, cl_mem image, const std::size_t* region, std::size_t offset) {
  if (!is_valid(buffer) || buffer->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  const std::size_t bytes = region[0] * region[1] * region[2] * image->element_bytes;
  return offset + bytes <= buffer->size_bytes ? CL_SUCCESS : CL_INVALID_VALUE;
}

}  // namespace
}  // namespace xpu::null_driver

cl_int Api::clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const std::size_t* origin, const std::size_t* region,
                               std::size_t, std::size_t, void* host, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_image(queue, image, origin, region); code != CL_SUCCESS) return code;
  if (host == nullptr) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_READ_IMAGE, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const std::size_t* origin,
                                const std::size_t* region, std::size_t, std::size_t, const void* host, cl_uint wait_count,
                                const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_image(queue, image, origin, region); code != CL_SUCCESS) return code;
  if (host == nullptr) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_WRITE_IMAGE, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void* color, const std::size_t* origin,
                               const std::size_t* region, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_image(queue, image, origin, region); code != CL_SUCCESS) return code;
  if (color == nullptr) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_FILL_IMAGE, wait_count, wait_list, event});
}

cl_int Api::clEnqueueCopyImage(cl_command_queue queue, cl_mem source, cl_mem destination, const std::size_t* source_origin,
                               const std::size_t* destination_origin, const std::size_t* region, cl_uint wait_count,
                               const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_image(queue, source, source_origin, region); code != CL_SUCCESS) return code;
  if (const cl_int code = xpu::null_driver::check_image(queue, destination, destination_origin, region); code != CL_SUCCESS) return code;
  if (source->element_bytes != destination->element_bytes) return CL_IMAGE_FORMAT_MISMATCH;
  return submit({queue, CL_COMMAND_COPY_IMAGE, wait_count, wait_list, event});
}

cl_int Api::clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const std::size_t* origin,
                                       const std::size_t* region, std::size_t offset, cl_uint wait_count, const cl_event* wait_list,
                                       cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_image(queue, image, origin, region); code != CL_SUCCESS) return code;
  if (const cl_int code = xpu::null_driver::check_buffer_side(buffer, image, region, offset); code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_COPY_IMAGE_TO_BUFFER, wait_count, wait_list, event});
}

cl_int Api::clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, std::size_t offset, const std::size_t* origin,
                                       const std::size_t* region, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_image(queue, image, origin, region); code != CL_SUCCESS) return code;
  if (const cl_int code = xpu::null_driver::check_buffer_side(buffer, image, region, offset); code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_COPY_BUFFER_TO_IMAGE, wait_count, wait_list, event});
}

void* Api::clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags, const std::size_t* origin,
                             const std::size_t* region, std::size_t* row_pitch, std::size_t* slice_pitch, cl_uint wait_count,
                             const cl_event* wait_list, cl_event* event, cl_int* error) {
  cl_int code = xpu::null_driver::check_image(queue, image, origin, region);
  if (code == CL_SUCCESS && row_pitch == nullptr) code = CL_INVALID_VALUE;
  if (code == CL_SUCCESS && image->description.image_slice_pitch != 0 && slice_pitch == nullptr) code = CL_INVALID_VALUE;
  if (code != CL_SUCCESS) return xpu::null_driver::refuse(error, code);
  const cl_image_desc& description = image->description;
  *row_pitch = description.image_row_pitch;
  if (slice_pitch != nullptr) *slice_pitch = description.image_slice_pitch;
  const bool array_1d = description.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  const std::size_t offset = origin[0] * image->element_bytes + origin[2] * description.image_slice_pitch +
                             origin[1] * (array_1d ? description.image_slice_pitch : description.image_row_pitch);
  const xpu::null_driver::Submission submission{queue, CL_COMMAND_MAP_IMAGE, wait_count, wait_list, event, blocking != CL_FALSE};
  return xpu::null_driver::map(submission, image, flags, offset, error);
}
