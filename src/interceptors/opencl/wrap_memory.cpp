#include <cstdint>

#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/queries.hpp"

namespace xpu::interceptors::opencl {
namespace {

/// Memory that the driver keeps in the program's own pages, or in pages that the host reaches directly.
probe::MemoryType buffer_type(cl_mem_flags flags) noexcept {
  return (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)) != 0 ? probe::MemoryType::pinned : probe::MemoryType::device;
}

/// An image: its size is the driver's to know, and an image that is made of another object allocates nothing.
void image_created(cl_mem image, cl_context context) noexcept {
  const bool is_made_of_another = ask<cl_mem>(target().clGetMemObjectInfo, image, CL_MEM_ASSOCIATED_MEMOBJECT, nullptr) != nullptr;
  const std::uint64_t bytes = is_made_of_another ? 0 : ask<std::size_t>(target().clGetMemObjectInfo, image, CL_MEM_SIZE, 0);
  const auto element_bytes = static_cast<std::uint32_t>(ask<std::size_t>(target().clGetImageInfo, image, CL_IMAGE_ELEMENT_SIZE, 0));
  memory_created(image, context, bytes, probe::MemoryType::image, element_bytes);
}

void pipe_created(cl_mem pipe, cl_context context) noexcept {
  memory_created(pipe, context, ask<std::size_t>(target().clGetMemObjectInfo, pipe, CL_MEM_SIZE, 0), probe::MemoryType::device, 0);
}

/// Memory of a graphics API: shared with it, allocated by it.
void external_created(cl_mem memory, cl_context context, bool is_image) noexcept {
  const std::uint32_t element_bytes =
      is_image ? static_cast<std::uint32_t>(ask<std::size_t>(target().clGetImageInfo, memory, CL_IMAGE_ELEMENT_SIZE, 0)) : 0;
  memory_created(memory, context, 0, is_image ? probe::MemoryType::image : probe::MemoryType::device, element_bytes);
}

/// The common shape: the driver's answer, its code also to the program, and `created(memory)` when there is one.
template <typename Driver, typename Created>
cl_mem create(Entry entry, cl_int* error_ret, Driver&& driver, Created&& created) noexcept {
  Call call(entry);
  cl_int error = CL_SUCCESS;
  const cl_mem memory = driver(&error);
  if (memory != nullptr && is_tracking()) created(memory);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(memory, error);
}

}  // namespace

cl_mem Wrappers::clCreateBuffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* error_ret) {
  return create(
      Entry::clCreateBuffer, error_ret, [&](cl_int* error) { return target().clCreateBuffer(context, flags, bytes, host, error); },
      [&](cl_mem memory) { memory_created(memory, context, bytes, buffer_type(flags), 0); });
}

cl_mem Wrappers::clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                              std::size_t bytes, void* host, cl_int* error_ret) {
  return create(
      Entry::clCreateBufferWithProperties, error_ret,
      [&](cl_int* error) { return target().clCreateBufferWithProperties(context, properties, flags, bytes, host, error); },
      [&](cl_mem memory) { memory_created(memory, context, bytes, buffer_type(flags), 0); });
}

// Part of its buffer: allocates nothing.
cl_mem Wrappers::clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* info, cl_int* error_ret) {
  return create(
      Entry::clCreateSubBuffer, error_ret, [&](cl_int* error) { return target().clCreateSubBuffer(buffer, flags, type, info, error); },
      [&](cl_mem memory) {
        const Memory* whole = memory_of(buffer);
        memory_created(memory, ask<cl_context>(target().clGetMemObjectInfo, memory, CL_MEM_CONTEXT, nullptr), 0,
                       whole != nullptr ? whole->type : probe::MemoryType::device, 0);
      });
}

cl_mem Wrappers::clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* description,
                               void* host, cl_int* error_ret) {
  return create(
      Entry::clCreateImage, error_ret,
      [&](cl_int* error) { return target().clCreateImage(context, flags, format, description, host, error); },
      [&](cl_mem memory) { image_created(memory, context); });
}

cl_mem Wrappers::clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                             const cl_image_format* format, const cl_image_desc* description, void* host,
                                             cl_int* error_ret) {
  return create(
      Entry::clCreateImageWithProperties, error_ret,
      [&](cl_int* error) { return target().clCreateImageWithProperties(context, properties, flags, format, description, host, error); },
      [&](cl_mem memory) { image_created(memory, context); });
}

cl_mem Wrappers::clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format, std::size_t width,
                                 std::size_t height, std::size_t row_pitch, void* host, cl_int* error_ret) {
  return create(
      Entry::clCreateImage2D, error_ret,
      [&](cl_int* error) { return target().clCreateImage2D(context, flags, format, width, height, row_pitch, host, error); },
      [&](cl_mem memory) { image_created(memory, context); });
}

cl_mem Wrappers::clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format, std::size_t width,
                                 std::size_t height, std::size_t depth, std::size_t row_pitch, std::size_t slice_pitch, void* host,
                                 cl_int* error_ret) {
  return create(
      Entry::clCreateImage3D, error_ret,
      [&](cl_int* error) {
        return target().clCreateImage3D(context, flags, format, width, height, depth, row_pitch, slice_pitch, host, error);
      },
      [&](cl_mem memory) { image_created(memory, context); });
}

cl_mem Wrappers::clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                              const cl_pipe_properties* properties, cl_int* error_ret) {
  return create(
      Entry::clCreatePipe, error_ret,
      [&](cl_int* error) { return target().clCreatePipe(context, flags, packet_bytes, packets, properties, error); },
      [&](cl_mem memory) { pipe_created(memory, context); });
}

cl_mem Wrappers::clCreateFromGLBuffer(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int* error_ret) {
  return create(
      Entry::clCreateFromGLBuffer, error_ret, [&](cl_int* error) { return target().clCreateFromGLBuffer(context, flags, object, error); },
      [&](cl_mem memory) { external_created(memory, context, false); });
}

cl_mem Wrappers::clCreateFromGLTexture(cl_context context, cl_mem_flags flags, cl_GLenum texture_target, cl_GLint level, cl_GLuint texture,
                                       cl_int* error_ret) {
  return create(
      Entry::clCreateFromGLTexture, error_ret,
      [&](cl_int* error) { return target().clCreateFromGLTexture(context, flags, texture_target, level, texture, error); },
      [&](cl_mem memory) { external_created(memory, context, true); });
}

cl_mem Wrappers::clCreateFromGLTexture2D(cl_context context, cl_mem_flags flags, cl_GLenum texture_target, cl_GLint level,
                                         cl_GLuint texture, cl_int* error_ret) {
  return create(
      Entry::clCreateFromGLTexture2D, error_ret,
      [&](cl_int* error) { return target().clCreateFromGLTexture2D(context, flags, texture_target, level, texture, error); },
      [&](cl_mem memory) { external_created(memory, context, true); });
}

cl_mem Wrappers::clCreateFromGLTexture3D(cl_context context, cl_mem_flags flags, cl_GLenum texture_target, cl_GLint level,
                                         cl_GLuint texture, cl_int* error_ret) {
  return create(
      Entry::clCreateFromGLTexture3D, error_ret,
      [&](cl_int* error) { return target().clCreateFromGLTexture3D(context, flags, texture_target, level, texture, error); },
      [&](cl_mem memory) { external_created(memory, context, true); });
}

cl_mem Wrappers::clCreateFromGLRenderbuffer(cl_context context, cl_mem_flags flags, cl_GLuint buffer, cl_int* error_ret) {
  return create(
      Entry::clCreateFromGLRenderbuffer, error_ret,
      [&](cl_int* error) { return target().clCreateFromGLRenderbuffer(context, flags, buffer, error); },
      [&](cl_mem memory) { external_created(memory, context, true); });
}

cl_mem Wrappers::clCreateFromEGLImageKHR(cl_context context, CLeglDisplayKHR display, CLeglImageKHR image, cl_mem_flags flags,
                                         const cl_egl_image_properties_khr* properties, cl_int* error_ret) {
  return create(
      Entry::clCreateFromEGLImageKHR, error_ret,
      [&](cl_int* error) { return target().clCreateFromEGLImageKHR(context, display, image, flags, properties, error); },
      [&](cl_mem memory) { external_created(memory, context, true); });
}

cl_int Wrappers::clRetainMemObject(cl_mem memory) {
  Call call(Entry::clRetainMemObject);
  const cl_int result = target().clRetainMemObject(memory);
  if (result == CL_SUCCESS && is_tracking()) g_objects.memory.retain(memory);
  return call.finish(result);
}

cl_int Wrappers::clReleaseMemObject(cl_mem memory) {
  Call call(Entry::clReleaseMemObject);
  if (is_tracking()) memory_released(memory);
  return call.finish(target().clReleaseMemObject(memory));
}

}  // namespace xpu::interceptors::opencl
