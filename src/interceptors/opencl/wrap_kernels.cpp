#include "interceptors/opencl/command.hpp"

namespace xpu::interceptors::opencl {
namespace {

/// As much of the index space as the arguments describe; a call with impossible ones is the driver's to refuse.
probe::Geometry geometry_of(cl_uint dimensions, const std::size_t* offset, const std::size_t* global, const std::size_t* local) noexcept {
  probe::Geometry geometry;
  geometry.dimensions = dimensions;
  if (dimensions == 1 && offset == nullptr && global != nullptr) [[likely]] {  // most launches, without three loops
    geometry.global[0] = *global;
    if (local == nullptr) return geometry;
    geometry.local[0] = *local;
    geometry.local[1] = geometry.local[2] = 1;
    return geometry;
  }
  const cl_uint known = dimensions <= 3 ? dimensions : 0;  // arrays of an impossible size are not read
  for (cl_uint index = 0; index < known; ++index) {
    if (offset != nullptr) geometry.offset[index] = offset[index];
    if (global != nullptr) geometry.global[index] = global[index];
    if (local != nullptr) geometry.local[index] = local[index];
  }
  if (local != nullptr) {
    for (cl_uint index = known; index < 3; ++index) geometry.local[index] = 1;
  }
  return geometry;
}

constexpr std::size_t kOne[3] = {1, 1, 1};

}  // namespace

cl_int Wrappers::clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
                                        const std::size_t* global, const std::size_t* local, cl_uint wait_count, const cl_event* wait_list,
                                        cl_event* event) {
  Command command(Entry::clEnqueueNDRangeKernel, probe::Command::ndrange_kernel, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, wait_count, wait_list, event));
  }
  const probe::Geometry geometry = geometry_of(dimensions, offset, global, local);
  command.set_kernel(kernel);
  command.set_geometry(geometry);
  return command.finish(
      target().clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueTask, probe::Command::task_kernel, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueTask(queue, kernel, wait_count, wait_list, event));
  const probe::Geometry geometry = geometry_of(1, nullptr, kOne, kOne);
  command.set_kernel(kernel);
  command.set_geometry(geometry);
  return command.finish(target().clEnqueueTask(queue, kernel, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK* function)(void*), void* arguments,
                                       std::size_t argument_bytes, cl_uint memory_count, const cl_mem* memory_list,
                                       const void** memory_places, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueNativeKernel, probe::Command::native_kernel, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueNativeKernel(queue, function, arguments, argument_bytes, memory_count, memory_list, memory_places,
                                                       wait_count, wait_list, event));
  }
  return command.finish(target().clEnqueueNativeKernel(queue, function, arguments, argument_bytes, memory_count, memory_list, memory_places,
                                                       wait_count, wait_list, command.start()));
}

}  // namespace xpu::interceptors::opencl
