#include <cstdio>

#include "programs/transparency/transparency.hpp"

namespace xpu::opencl_programs::transparency {
namespace {

constexpr cl_profiling_info kTimes[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
                                        CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_COMPLETE};

/// Never the times themselves, only whether there are any and whether they are in order.
void print_profiling(cl_event event) {
  std::printf("; profiling");
  cl_ulong times[5] = {};
  bool all = true;
  for (int i = 0; i < 5; ++i) {
    const cl_int code = clGetEventProfilingInfo(event, kTimes[i], sizeof times[i], &times[i], nullptr);
    std::printf(" %d", code);
    if (i < 4 && code != CL_SUCCESS) all = false;
  }
  if (all) std::printf(" ordered %d", times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
  std::size_t bytes = 99;
  cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 0, nullptr, &bytes);
  std::printf("; size %d %zu", code, bytes);
  code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 4, times, nullptr);
  std::printf("; too little room %d", code);
  code = clGetEventProfilingInfo(event, 0x9999, sizeof times[0], times, nullptr);
  std::printf("; unknown %d", code);
}

void print_event(const char* label, const Setup& setup, cl_command_queue queue, cl_int submitted, cl_event event) {
  std::printf("%s: %d", label, submitted);
  if (submitted != CL_SUCCESS || event == nullptr) {
    std::printf(" event %s\n", event == nullptr ? "null" : "untouched");
    return;
  }
  cl_command_type type = 0;
  cl_command_queue of_event = nullptr;
  cl_context context = nullptr;
  cl_int status = 99;
  XPU_CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr));
  XPU_CL(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof of_event, &of_event, nullptr));
  XPU_CL(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, nullptr));
  std::printf("; type 0x%x; queue %s; context %s", type, of_event == queue ? "ours" : "another",
              context == setup.context ? "ours" : "another");
  std::printf("; wait %d", clWaitForEvents(1, &event));
  XPU_CL(clFinish(queue));
  XPU_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
  std::printf("; status %d", status);
  print_profiling(event);
  std::printf("; release %d\n", clReleaseEvent(event));
}

void print_commands(const Setup& setup, const char* label, cl_command_queue_properties properties) {
  std::printf("-- %s\n", label);
  cl_command_queue queue = setup.queue(properties);
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  cl_mem data = setup.buffer(4096), other = setup.buffer(4096);
  const std::size_t one = 1;
  char bytes[64] = {};
  const cl_uint pattern = 7;
  cl_event event = nullptr;
  cl_int code = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, &event);
  print_event("launch", setup, queue, code, event);
  code = clEnqueueWriteBuffer(queue, data, CL_FALSE, 0, sizeof bytes, bytes, 0, nullptr, &event);
  print_event("write", setup, queue, code, event);
  code = clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof bytes, bytes, 0, nullptr, &event);
  print_event("blocking read", setup, queue, code, event);
  code = clEnqueueCopyBuffer(queue, data, other, 0, 0, 64, 0, nullptr, &event);
  print_event("copy", setup, queue, code, event);
  code = clEnqueueFillBuffer(queue, other, &pattern, sizeof pattern, 0, 64, 0, nullptr, &event);
  print_event("fill", setup, queue, code, event);
  code = clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event);
  print_event("marker", setup, queue, code, event);
  code = clEnqueueBarrierWithWaitList(queue, 0, nullptr, &event);
  print_event("barrier", setup, queue, code, event);
  cl_int error = 99;
  void* mapped = clEnqueueMapBuffer(queue, other, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, &event, &error);
  print_event("map", setup, queue, error, event);
  if (mapped != nullptr) {
    code = clEnqueueUnmapMemObject(queue, other, mapped, 0, nullptr, &event);
    print_event("unmap", setup, queue, code, event);
  }
  // Without an event and without a place for the error.
  mapped = clEnqueueMapBuffer(queue, other, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, nullptr, nullptr);
  std::printf("map without pointers: %s\n", mapped != nullptr ? "mapped" : "null");
  if (mapped != nullptr) XPU_CL(clEnqueueUnmapMemObject(queue, other, mapped, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  cl_uint map_count = 99;
  XPU_CL(clGetMemObjectInfo(other, CL_MEM_MAP_COUNT, sizeof map_count, &map_count, nullptr));
  std::printf("map count %u\n", map_count);
  XPU_CL(clReleaseMemObject(data));
  XPU_CL(clReleaseMemObject(other));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(queue));
}

void CL_CALLBACK store_status(cl_event, cl_int status, void* stored) { *static_cast<cl_int*>(stored) = status; }

void print_user_events(const Setup& setup) {
  std::printf("-- user events\n");
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  cl_int error = 99;
  cl_event user = clCreateUserEvent(setup.context, &error);
  cl_command_type type = 0;
  cl_command_queue of_event = queue;
  XPU_CL(clGetEventInfo(user, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr));
  XPU_CL(clGetEventInfo(user, CL_EVENT_COMMAND_QUEUE, sizeof of_event, &of_event, nullptr));
  std::printf("user event: %d; type 0x%x; queue %s\n", error, type, of_event == nullptr ? "null" : "another");

  const std::size_t one = 1;
  cl_event gated = nullptr;
  cl_int code = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 1, &user, &gated);
  cl_int status = 99;
  XPU_CL(clGetEventInfo(gated, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
  std::printf("gated launch: %d; not complete %d", code, status > 0);
  print_profiling(gated);
  static cl_int called_with = 99;
  code = clSetEventCallback(user, CL_COMPLETE, store_status, &called_with);
  std::printf("; callback %d", code);
  std::printf("; set %d", clSetUserEventStatus(user, CL_COMPLETE));
  std::printf("; set again %d", clSetUserEventStatus(user, CL_COMPLETE));
  std::printf("; wait %d", clWaitForEvents(1, &gated));
  print_profiling(gated);
  std::printf("; user profiling");
  print_profiling(user);
  std::printf("\n");
  XPU_CL(clReleaseEvent(gated));
  XPU_CL(clReleaseEvent(user));
  XPU_CL(clFinish(queue));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(queue));
}

/// A program may give the event away before the command ends.
void print_early_release(const Setup& setup) {
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("spin", 100'000);
  cl_event event = nullptr;
  launch(queue, kernel, &event);
  std::printf("release before completion: %d", clReleaseEvent(event));
  std::printf("; finish %d\n", clFinish(queue));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(queue));
}

}  // namespace

void print_events(const Setup& setup) {
  print_commands(setup, "queue without profiling", 0);
  print_commands(setup, "queue with profiling", CL_QUEUE_PROFILING_ENABLE);
  print_commands(setup, "queue out of order", CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  print_user_events(setup);
  print_early_release(setup);
}

}  // namespace xpu::opencl_programs::transparency
