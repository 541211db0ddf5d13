// A libOpenCL.so.1 that knows no layers and no drivers: one platform, one device, and commands that are forgotten. It stands for the
// loaders of the field that a layer cannot enter.

#include <cstring>

#include "null_driver/opencl_headers.hpp"

#define XPU_STUB_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

char platform, device, context, queue, program, kernel, memory;

template <class Handle>
Handle handle(char& object, cl_int* error) {
  if (error != nullptr) *error = CL_SUCCESS;
  return reinterpret_cast<Handle>(&object);
}

}  // namespace

XPU_STUB_EXPORT cl_int clGetPlatformIDs(cl_uint entries, cl_platform_id* list, cl_uint* count) {
  if (list != nullptr && entries > 0) list[0] = handle<cl_platform_id>(platform, nullptr);
  if (count != nullptr) *count = 1;
  return CL_SUCCESS;
}

XPU_STUB_EXPORT cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info, size_t room, void* value, size_t* size_ret) {
  constexpr char kText[] = "stub without layers";
  if (size_ret != nullptr) *size_ret = sizeof kText;
  if (value == nullptr) return CL_SUCCESS;
  if (room < sizeof kText) return CL_INVALID_VALUE;
  std::memcpy(value, kText, sizeof kText);
  return CL_SUCCESS;
}

XPU_STUB_EXPORT cl_int clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint entries, cl_device_id* list, cl_uint* count) {
  if (list != nullptr && entries > 0) list[0] = handle<cl_device_id>(device, nullptr);
  if (count != nullptr) *count = 1;
  return CL_SUCCESS;
}

XPU_STUB_EXPORT cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                                           void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*, cl_int* error) {
  return handle<cl_context>(context, error);
}

XPU_STUB_EXPORT cl_command_queue clCreateCommandQueueWithProperties(cl_context, cl_device_id, const cl_queue_properties*, cl_int* error) {
  return handle<cl_command_queue>(queue, error);
}

XPU_STUB_EXPORT cl_program clCreateProgramWithSource(cl_context, cl_uint, const char**, const size_t*, cl_int* error) {
  return handle<cl_program>(program, error);
}

XPU_STUB_EXPORT cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char*, void(CL_CALLBACK*)(cl_program, void*), void*) {
  return CL_SUCCESS;
}

XPU_STUB_EXPORT cl_kernel clCreateKernel(cl_program, const char*, cl_int* error) { return handle<cl_kernel>(kernel, error); }

XPU_STUB_EXPORT cl_mem clCreateBuffer(cl_context, cl_mem_flags, size_t, void*, cl_int* error) { return handle<cl_mem>(memory, error); }

XPU_STUB_EXPORT cl_int clSetKernelArg(cl_kernel, cl_uint, size_t, const void*) { return CL_SUCCESS; }

XPU_STUB_EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint,
                                              const cl_event*, cl_event*) {
  return CL_SUCCESS;
}

XPU_STUB_EXPORT cl_int clFlush(cl_command_queue) { return CL_SUCCESS; }

XPU_STUB_EXPORT cl_int clFinish(cl_command_queue) { return CL_SUCCESS; }
