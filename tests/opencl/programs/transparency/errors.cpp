#include <cstdio>

#include "programs/transparency/transparency.hpp"

namespace xpu::opencl_programs::transparency {
namespace {

/// A place for an event that no driver returns: after a refused call it must hold this still, or null where the driver writes null.
cl_event untouched() { return reinterpret_cast<cl_event>(0x10); }

void print(const char* label, cl_int code, cl_event event) {
  std::printf("%s: %d event %s\n", label, code, event == untouched() ? "untouched" : event == nullptr ? "null" : "changed");
}

}  // namespace

/// Refused calls: the codes, and what happens to the places that the program gave for results.
void print_errors(const Setup& setup) {
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  cl_kernel incomplete = setup.kernel("tiny");
  cl_mem data = setup.buffer(4096);
  const std::size_t one = 1;
  const std::size_t too_many = std::size_t{1} << 20;
  char bytes[64] = {};

  cl_event event = untouched();
  cl_int code = clEnqueueNDRangeKernel(nullptr, kernel, 1, nullptr, &one, nullptr, 0, nullptr, &event);
  print("launch without queue", code, event);
  event = untouched();
  code = clEnqueueNDRangeKernel(queue, kernel, 4, nullptr, &one, nullptr, 0, nullptr, &event);
  print("launch with four dimensions", code, event);
  event = untouched();
  code = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &too_many, &too_many, 0, nullptr, &event);
  print("launch with a huge work group", code, event);
  event = untouched();
  code = clEnqueueNDRangeKernel(queue, incomplete, 1, nullptr, &one, nullptr, 0, nullptr, &event);
  print("launch without arguments", code, event);

  event = untouched();
  code = clEnqueueReadBuffer(queue, data, CL_TRUE, 4000, 4000, bytes, 0, nullptr, &event);
  print("read beyond the end", code, event);
  event = untouched();
  cl_int error = 99;
  void* mapped = clEnqueueMapBuffer(queue, data, CL_TRUE, CL_MAP_READ, 4000, 4000, 0, nullptr, &event, &error);
  print("map beyond the end", error, event);
  std::printf("mapped %s\n", mapped == nullptr ? "null" : "something");
  mapped = clEnqueueMapBuffer(queue, data, CL_TRUE, CL_MAP_READ, 4000, 4000, 0, nullptr, nullptr, nullptr);
  std::printf("mapped without pointers %s\n", mapped == nullptr ? "null" : "something");

  std::printf("wait for no event: %d\n", clWaitForEvents(0, nullptr));
  std::printf("finish without queue: %d, flush: %d\n", clFinish(nullptr), clFlush(nullptr));
  std::printf("release null: %d %d %d\n", clReleaseEvent(nullptr), clReleaseCommandQueue(nullptr), clReleaseKernel(nullptr));
  std::printf("argument out of range: %d\n", clSetKernelArg(kernel, 99, sizeof one, &one));
  error = 99;
  cl_kernel missing = clCreateKernel(setup.program, "no_such_kernel", &error);
  std::printf("no such kernel: %s %d\n", missing == nullptr ? "null" : "something", error);
  std::printf("still working: %d\n", clFinish(queue));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseKernel(incomplete));
  XPU_CL(clReleaseMemObject(data));
  XPU_CL(clReleaseCommandQueue(queue));
}

void print_null_handles(const Setup& setup) {
  cl_command_queue queue = setup.queue();
  const std::size_t one = 1;
  const char bytes[64] = {};
  cl_event event = untouched();
  cl_int code = clEnqueueNDRangeKernel(queue, nullptr, 1, nullptr, &one, nullptr, 0, nullptr, &event);
  print("launch without kernel", code, event);
  code = clEnqueueNDRangeKernel(queue, nullptr, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
  std::printf("launch without kernel and event: %d\n", code);
  event = untouched();
  code = clEnqueueWriteBuffer(queue, nullptr, CL_TRUE, 0, sizeof bytes, bytes, 0, nullptr, &event);
  print("write without memory", code, event);
  event = untouched();
  code = clEnqueueTask(queue, nullptr, 0, nullptr, &event);
  print("task without kernel", code, event);
  cl_mem nothing = nullptr;
  code = clEnqueueMigrateMemObjects(queue, 1, &nothing, 0, 0, nullptr, &event);
  print("migration of nothing", code, event);
  event = untouched();
  code = clEnqueueMarkerWithWaitList(queue, 1, nullptr, &event);
  print("marker with a missing wait list", code, event);
  cl_event no_event = nullptr;
  code = clEnqueueMarkerWithWaitList(queue, 1, &no_event, &event);
  print("marker behind no event", code, event);
  std::printf("still working: %d\n", clFinish(queue));
  XPU_CL(clReleaseCommandQueue(queue));
}

}  // namespace xpu::opencl_programs::transparency
