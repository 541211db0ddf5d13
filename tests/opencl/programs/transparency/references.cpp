#include <cstdio>

#include "programs/transparency/transparency.hpp"

namespace xpu::opencl_programs::transparency {
namespace {

cl_uint references(cl_context context) {
  cl_uint count = 0;
  XPU_CL(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}
cl_uint references(cl_program program) {
  cl_uint count = 0;
  XPU_CL(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}
cl_uint references(cl_kernel kernel) {
  cl_uint count = 0;
  XPU_CL(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}
cl_uint references(cl_mem memory) {
  cl_uint count = 0;
  XPU_CL(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}
cl_uint references(cl_command_queue queue) {
  cl_uint count = 0;
  XPU_CL(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}
cl_uint references(cl_event event) {
  cl_uint count = 0;
  XPU_CL(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}

/// Everything a launch refers to, before it, while it may run, and after it.
void print_references_around_a_launch(const Setup& setup) {
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.kernel("tiny");
  cl_mem data = setup.buffer(4096);
  const cl_int value = 1;
  const auto print = [&](const char* when) {
    std::printf("references %s: context %u program %u kernel %u memory %u queue %u\n", when, references(setup.context),
                references(setup.program), references(kernel), references(data), references(queue));
  };
  print("at first");
  XPU_CL(clSetKernelArg(kernel, 0, sizeof data, &data));
  XPU_CL(clSetKernelArg(kernel, 1, sizeof value, &value));
  print("with arguments");
  launch(queue, kernel);
  XPU_CL(clFinish(queue));
  print("after a launch");
  char bytes[64] = {};
  XPU_CL(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof bytes, bytes, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  print("after a read");
  XPU_CL(clRetainCommandQueue(queue));
  XPU_CL(clRetainContext(setup.context));
  print("retained");
  XPU_CL(clReleaseCommandQueue(queue));
  XPU_CL(clReleaseContext(setup.context));
  print("released");
  XPU_CL(clReleaseCommandQueue(queue));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseMemObject(data));
}

/// `event` belongs to a command on `queue`, or to the program.
void print_event(const char* label, cl_command_queue queue, cl_event event) {
  std::printf("references of %s: %u", label, references(event));
  XPU_CL(clFinish(queue));
  std::printf(" finished %u", references(event));
  XPU_CL(clRetainEvent(event));
  std::printf(" retained %u", references(event));
  XPU_CL(clReleaseEvent(event));
  std::printf(" released %u\n", references(event));
  XPU_CL(clReleaseEvent(event));
}

void print_event_references(const Setup& setup, const char* label, cl_command_queue_properties properties) {
  std::printf("-- %s\n", label);
  cl_command_queue queue = setup.queue(properties);
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  cl_mem data = setup.buffer(4096);
  char bytes[64] = {};
  cl_event event = nullptr;
  launch(queue, kernel, &event);
  print_event("launch", queue, event);
  XPU_CL(clEnqueueWriteBuffer(queue, data, CL_TRUE, 0, sizeof bytes, bytes, 0, nullptr, &event));
  print_event("blocking write", queue, event);
  XPU_CL(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event));
  print_event("marker", queue, event);
  cl_int error = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(queue, data, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, &event, &error);
  check(error, "clEnqueueMapBuffer");
  print_event("map", queue, event);
  XPU_CL(clEnqueueUnmapMemObject(queue, data, mapped, 0, nullptr, &event));
  print_event("unmap", queue, event);
  cl_event user = clCreateUserEvent(setup.context, &error);
  check(error, "clCreateUserEvent");
  XPU_CL(clSetUserEventStatus(user, CL_COMPLETE));
  print_event("user event", queue, user);
  XPU_CL(clReleaseMemObject(data));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(queue));
}

}  // namespace

void print_references(const Setup& setup) {
  print_references_around_a_launch(setup);
  print_event_references(setup, "queue without profiling", 0);
  print_event_references(setup, "queue with profiling", CL_QUEUE_PROFILING_ENABLE);
  print_event_references(setup, "queue out of order", CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

}  // namespace xpu::opencl_programs::transparency
