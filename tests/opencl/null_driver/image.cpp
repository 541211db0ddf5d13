#include <algorithm>
#include <array>

#include "null_driver/api.hpp"
#include "null_driver/memory.hpp"
#include "null_driver/platforms.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;

namespace xpu::null_driver {

std::size_t bytes_of_format(const cl_image_format& format) noexcept {
  std::size_t channels = 0;
  switch (format.image_channel_order) {
    case CL_R:
    case CL_A:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH: channels = 1; break;
    case CL_RG:
    case CL_RA: channels = 2; break;
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_sRGBA:
    case CL_sBGRA: channels = 4; break;
    default: return 0;
  }
  switch (format.image_channel_data_type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8: return channels;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT: return channels * 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT: return channels * 4;
    default: return 0;
  }
}

namespace {

constexpr std::array<cl_channel_order, 4> kOrders = {CL_R, CL_RG, CL_RGBA, CL_BGRA};
constexpr std::array<cl_channel_type, 9> kTypes = {CL_UNORM_INT8,   CL_SIGNED_INT8,    CL_UNSIGNED_INT8, CL_SIGNED_INT16, CL_UNSIGNED_INT16,
                                                   CL_SIGNED_INT32, CL_UNSIGNED_INT32, CL_HALF_FLOAT,    CL_FLOAT};

/// Rows, slices and layers of an image with the description's type; all at least 1, 0 for a type that is none.
struct Extent {
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t slices = 1;
};

Extent extent_of(const cl_image_desc& description) noexcept {
  Extent extent;
  extent.width = description.image_width;
  switch (description.image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER: break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY: extent.slices = description.image_array_size; break;
    case CL_MEM_OBJECT_IMAGE2D: extent.height = description.image_height; break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      extent.height = description.image_height;
      extent.slices = description.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      extent.height = description.image_height;
      extent.slices = description.image_depth;
      break;
    default: extent.width = 0;
  }
  return extent;
}

cl_mem create_image(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags, const cl_image_format* format,
                    const cl_image_desc* description, void* host_pointer, cl_int* error) {
  constexpr std::size_t kMaxExtent = 16384;
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (properties != nullptr && properties[0] != 0) return refuse(error, CL_INVALID_PROPERTY);
  if (format == nullptr || bytes_of_format(*format) == 0) return refuse(error, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  if (description == nullptr) return refuse(error, CL_INVALID_IMAGE_DESCRIPTOR);
  const Extent extent = extent_of(*description);
  if (extent.width == 0 || extent.height == 0 || extent.slices == 0) return refuse(error, CL_INVALID_IMAGE_DESCRIPTOR);
  if (extent.height > kMaxExtent || extent.slices > kMaxExtent) return refuse(error, CL_INVALID_IMAGE_SIZE);
  cl_mem base = description->mem_object;
  if (base != nullptr && !is_valid(base)) return refuse(error, CL_INVALID_IMAGE_DESCRIPTOR);
  if (base == nullptr) {
    if (extent.width > kMaxExtent) return refuse(error, CL_INVALID_IMAGE_SIZE);
    if (const cl_int code = check_flags(flags, host_pointer); code != CL_SUCCESS) return refuse(error, code);
  }
  auto* image = new _cl_mem;
  image->context = keep(context);
  image->type = description->image_type;
  image->flags = flags == 0 ? CL_MEM_READ_WRITE : flags;
  image->format = *format;
  image->description = *description;
  image->element_bytes = bytes_of_format(*format);
  image->properties = copy_properties(properties);
  std::size_t& row_pitch = image->description.image_row_pitch;
  std::size_t& slice_pitch = image->description.image_slice_pitch;
  row_pitch = std::max(row_pitch, extent.width * image->element_bytes);
  const bool has_slices = extent.slices > 1 || description->image_type == CL_MEM_OBJECT_IMAGE3D;
  slice_pitch = has_slices ? std::max(slice_pitch, row_pitch * extent.height) : 0;
  image->size_bytes = has_slices ? slice_pitch * extent.slices : row_pitch * extent.height;
  if (base != nullptr) {
    image->parent = keep(base);
    image->bytes = base->bytes;
    if (base->size_bytes < image->size_bytes) {
      destroy(image);
      return refuse(error, CL_INVALID_IMAGE_SIZE);
    }
  } else if (!allocate(image, host_pointer)) {
    destroy(image);
    return refuse(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  }
  return created(error, image);
}

bool is_image(cl_mem memory) noexcept { return is_valid(memory) && memory->element_bytes != 0; }

}  // namespace
}  // namespace xpu::null_driver

cl_mem Api::clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* description,
                          void* host_pointer, cl_int* error) {
  return xpu::null_driver::create_image(context, nullptr, flags, format, description, host_pointer, error);
}

cl_mem Api::clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                        const cl_image_format* format, const cl_image_desc* description, void* host_pointer,
                                        cl_int* error) {
  return xpu::null_driver::create_image(context, properties, flags, format, description, host_pointer, error);
}

cl_mem Api::clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format, std::size_t width, std::size_t height,
                            std::size_t row_pitch, void* host_pointer, cl_int* error) {
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = width;
  description.image_height = height;
  description.image_row_pitch = row_pitch;
  return xpu::null_driver::create_image(context, nullptr, flags, format, &description, host_pointer, error);
}

cl_mem Api::clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format, std::size_t width, std::size_t height,
                            std::size_t depth, std::size_t row_pitch, std::size_t slice_pitch, void* host_pointer, cl_int* error) {
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE3D;
  description.image_width = width;
  description.image_height = height;
  description.image_depth = depth;
  description.image_row_pitch = row_pitch;
  description.image_slice_pitch = slice_pitch;
  return xpu::null_driver::create_image(context, nullptr, flags, format, &description, host_pointer, error);
}

cl_int Api::clGetSupportedImageFormats(cl_context context, cl_mem_flags, cl_mem_object_type type, cl_uint entries, cl_image_format* list,
                                       cl_uint* count) {
  if (!is_valid(context)) return CL_INVALID_CONTEXT;
  cl_image_desc description{};
  description.image_type = type;
  description.image_width = 1;
  if (xpu::null_driver::extent_of(description).width == 0 || (list != nullptr && entries == 0)) return CL_INVALID_VALUE;
  cl_uint written = 0;
  for (const cl_channel_order order : xpu::null_driver::kOrders) {
    for (const cl_channel_type channel_type : xpu::null_driver::kTypes) {
      if (list != nullptr && written < entries) list[written++] = {order, channel_type};
    }
  }
  if (count != nullptr) *count = static_cast<cl_uint>(xpu::null_driver::kOrders.size() * xpu::null_driver::kTypes.size());
  return CL_SUCCESS;
}

cl_int Api::clGetImageInfo(cl_mem image, cl_image_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!xpu::null_driver::is_image(image)) return CL_INVALID_MEM_OBJECT;
  const cl_image_desc& description = image->description;
  switch (query) {
    case CL_IMAGE_FORMAT: return answer<cl_image_format>(image->format, room, value, size_ret);
    case CL_IMAGE_ELEMENT_SIZE: return answer<std::size_t>(image->element_bytes, room, value, size_ret);
    case CL_IMAGE_ROW_PITCH: return answer<std::size_t>(description.image_row_pitch, room, value, size_ret);
    case CL_IMAGE_SLICE_PITCH: return answer<std::size_t>(description.image_slice_pitch, room, value, size_ret);
    case CL_IMAGE_WIDTH: return answer<std::size_t>(description.image_width, room, value, size_ret);
    case CL_IMAGE_HEIGHT: return answer<std::size_t>(description.image_height, room, value, size_ret);
    case CL_IMAGE_DEPTH: return answer<std::size_t>(description.image_depth, room, value, size_ret);
    case CL_IMAGE_ARRAY_SIZE: return answer<std::size_t>(description.image_array_size, room, value, size_ret);
    case CL_IMAGE_BUFFER: return answer<cl_mem>(image->parent, room, value, size_ret);
    case CL_IMAGE_NUM_MIP_LEVELS: return answer<cl_uint>(description.num_mip_levels, room, value, size_ret);
    case CL_IMAGE_NUM_SAMPLES: return answer<cl_uint>(description.num_samples, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_mem Api::clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                         const cl_pipe_properties* properties, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  constexpr cl_mem_flags kPipeFlags = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
  if ((flags & ~kPipeFlags) != 0 || properties != nullptr) return refuse(error, CL_INVALID_VALUE);
  if (packet_bytes == 0 || packets == 0 || packet_bytes > 1024) return refuse(error, CL_INVALID_PIPE_SIZE);
  auto* pipe = new _cl_mem;
  pipe->context = xpu::null_driver::keep(context);
  pipe->type = CL_MEM_OBJECT_PIPE;
  pipe->flags = flags == 0 ? CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS : flags;
  pipe->pipe_packet_bytes = packet_bytes;
  pipe->pipe_packets = packets;
  pipe->size_bytes = std::size_t{packet_bytes} * packets;
  return xpu::null_driver::created(error, pipe);
}

cl_int Api::clGetPipeInfo(cl_mem pipe, cl_pipe_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(pipe) || pipe->type != CL_MEM_OBJECT_PIPE) return CL_INVALID_MEM_OBJECT;
  switch (query) {
    case CL_PIPE_PACKET_SIZE: return answer<cl_uint>(pipe->pipe_packet_bytes, room, value, size_ret);
    case CL_PIPE_MAX_PACKETS: return answer<cl_uint>(pipe->pipe_packets, room, value, size_ret);
    case CL_PIPE_PROPERTIES: return xpu::null_driver::answer_bytes(nullptr, 0, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}
