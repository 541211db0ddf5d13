#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/transfers.hpp"

namespace xpu::interceptors::opencl {
namespace {

std::uint64_t image_bytes(cl_mem image, const std::size_t* region) noexcept { return volume_of(region) * element_bytes_of(image); }

constexpr std::size_t kColourBytes = 16;  // a fill colour is four floats or four integers, whatever the image's elements are

}  // namespace

cl_int Wrappers::clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool is_blocking, const std::size_t* origin,
                                    const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch, void* host,
                                    cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueReadImage, probe::Command::read, queue, event);
  if (!command.is_recorded()) {
    return command.pass(
        target().clEnqueueReadImage(queue, image, is_blocking, origin, region, row_pitch, slice_pitch, host, wait_count, wait_list, event));
  }
  const probe::Rectangle rectangle = rectangle_of(origin, nullptr, region, {0, 0, row_pitch, slice_pitch});
  const probe::CopyDetail detail =
      copy_between(in_memory(image), in_host(host), image_bytes(image, region), probe::CopyForm::image, &rectangle);
  command.set_copy(detail);
  return command.finish_transfer(target().clEnqueueReadImage(queue, image, is_blocking, origin, region, row_pitch, slice_pitch, host,
                                                             wait_count, wait_list, command.start()),
                                 is_blocking);
}

cl_int Wrappers::clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool is_blocking, const std::size_t* origin,
                                     const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch, const void* host,
                                     cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueWriteImage, probe::Command::write, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueWriteImage(queue, image, is_blocking, origin, region, row_pitch, slice_pitch, host, wait_count,
                                                     wait_list, event));
  }
  const probe::Rectangle rectangle = rectangle_of(nullptr, origin, region, {row_pitch, slice_pitch, 0, 0});
  const probe::CopyDetail detail =
      copy_between(in_host(host), in_memory(image), image_bytes(image, region), probe::CopyForm::image, &rectangle);
  command.set_copy(detail);
  return command.finish_transfer(target().clEnqueueWriteImage(queue, image, is_blocking, origin, region, row_pitch, slice_pitch, host,
                                                              wait_count, wait_list, command.start()),
                                 is_blocking);
}

cl_int Wrappers::clEnqueueCopyImage(cl_command_queue queue, cl_mem source, cl_mem destination, const std::size_t* source_origin,
                                    const std::size_t* destination_origin, const std::size_t* region, cl_uint wait_count,
                                    const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueCopyImage, probe::Command::copy, queue, event);
  if (!command.is_recorded()) {
    return command.pass(
        target().clEnqueueCopyImage(queue, source, destination, source_origin, destination_origin, region, wait_count, wait_list, event));
  }
  const probe::Rectangle rectangle = rectangle_of(source_origin, destination_origin, region, {});
  const probe::CopyDetail detail =
      copy_between(in_memory(source), in_memory(destination), image_bytes(source, region), probe::CopyForm::image, &rectangle);
  command.set_copy(detail);
  return command.finish(target().clEnqueueCopyImage(queue, source, destination, source_origin, destination_origin, region, wait_count,
                                                    wait_list, command.start()));
}

cl_int Wrappers::clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const std::size_t* origin,
                                            const std::size_t* region, std::size_t offset, cl_uint wait_count, const cl_event* wait_list,
                                            cl_event* event) {
  Command command(Entry::clEnqueueCopyImageToBuffer, probe::Command::copy, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, wait_count, wait_list, event));
  }
  const std::size_t buffer_origin[3] = {offset, 0, 0};
  const probe::Rectangle rectangle = rectangle_of(origin, buffer_origin, region, {});
  const probe::CopyDetail detail =
      copy_between(in_memory(image), in_memory(buffer), image_bytes(image, region), probe::CopyForm::image, &rectangle);
  command.set_copy(detail);
  return command.finish(
      target().clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, std::size_t offset,
                                            const std::size_t* origin, const std::size_t* region, cl_uint wait_count,
                                            const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueCopyBufferToImage, probe::Command::copy, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, wait_count, wait_list, event));
  }
  const std::size_t buffer_origin[3] = {offset, 0, 0};
  const probe::Rectangle rectangle = rectangle_of(buffer_origin, origin, region, {});
  const probe::CopyDetail detail =
      copy_between(in_memory(buffer), in_memory(image), image_bytes(image, region), probe::CopyForm::image, &rectangle);
  command.set_copy(detail);
  return command.finish(
      target().clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void* colour, const std::size_t* origin,
                                    const std::size_t* region, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueFillImage, probe::Command::fill, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueFillImage(queue, image, colour, origin, region, wait_count, wait_list, event));
  }
  const probe::Rectangle rectangle = rectangle_of(nullptr, origin, region, {});
  probe::CopyDetail detail = fill_of(in_memory(image), colour, kColourBytes, image_bytes(image, region));
  detail.rectangle = &rectangle;
  command.set_copy(detail);
  return command.finish(target().clEnqueueFillImage(queue, image, colour, origin, region, wait_count, wait_list, command.start()));
}

void* Wrappers::clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool is_blocking, cl_map_flags flags, const std::size_t* origin,
                                  const std::size_t* region, std::size_t* row_pitch, std::size_t* slice_pitch, cl_uint wait_count,
                                  const cl_event* wait_list, cl_event* event, cl_int* error_ret) {
  Command command(Entry::clEnqueueMapImage, probe::Command::map, queue, event);
  cl_int error = CL_SUCCESS;
  if (!command.is_recorded()) {
    void* const result = target().clEnqueueMapImage(queue, image, is_blocking, flags, origin, region, row_pitch, slice_pitch, wait_count,
                                                    wait_list, event, &error);
    command.pass(error);
    if (error_ret != nullptr) *error_ret = error;
    return result;
  }
  const probe::Rectangle rectangle = rectangle_of(origin, nullptr, region, {});
  probe::CopyDetail detail = map_of(in_memory(image), nullptr, flags, image_bytes(image, region));
  detail.form = probe::CopyForm::image;
  detail.rectangle = &rectangle;
  command.set_copy(detail);
  void* const result = target().clEnqueueMapImage(queue, image, is_blocking, flags, origin, region, row_pitch, slice_pitch, wait_count,
                                                  wait_list, command.start(), &error);
  command.finish_transfer(error, is_blocking);
  if (error_ret != nullptr) *error_ret = error;
  return result;
}

// ---- images and buffers of graphics APIs

cl_int Wrappers::clEnqueueAcquireGLObjects(cl_command_queue queue, cl_uint count, const cl_mem* objects, cl_uint wait_count,
                                           const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueAcquireGLObjects, probe::Command::acquire_external, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueAcquireGLObjects(queue, count, objects, wait_count, wait_list, event));
  return command.finish(target().clEnqueueAcquireGLObjects(queue, count, objects, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueReleaseGLObjects(cl_command_queue queue, cl_uint count, const cl_mem* objects, cl_uint wait_count,
                                           const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueReleaseGLObjects, probe::Command::release_external, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueReleaseGLObjects(queue, count, objects, wait_count, wait_list, event));
  return command.finish(target().clEnqueueReleaseGLObjects(queue, count, objects, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueAcquireEGLObjectsKHR(cl_command_queue queue, cl_uint count, const cl_mem* objects, cl_uint wait_count,
                                               const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueAcquireEGLObjectsKHR, probe::Command::acquire_external, queue, event);
  if (!command.is_recorded())
    return command.pass(target().clEnqueueAcquireEGLObjectsKHR(queue, count, objects, wait_count, wait_list, event));
  return command.finish(target().clEnqueueAcquireEGLObjectsKHR(queue, count, objects, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueReleaseEGLObjectsKHR(cl_command_queue queue, cl_uint count, const cl_mem* objects, cl_uint wait_count,
                                               const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueReleaseEGLObjectsKHR, probe::Command::release_external, queue, event);
  if (!command.is_recorded())
    return command.pass(target().clEnqueueReleaseEGLObjectsKHR(queue, count, objects, wait_count, wait_list, event));
  return command.finish(target().clEnqueueReleaseEGLObjectsKHR(queue, count, objects, wait_count, wait_list, command.start()));
}

}  // namespace xpu::interceptors::opencl
