#include <string>
#include <vector>

#include "programs/entries/registry.hpp"

namespace xpu::opencl_programs::entries {
namespace {

cl_int platform_ids(Fixture&) {
  cl_uint count = 0;
  return clGetPlatformIDs(0, nullptr, &count);
}
cl_int platform_info(Fixture& f) {
  std::size_t bytes = 0;
  return clGetPlatformInfo(f.platform(), CL_PLATFORM_NAME, 0, nullptr, &bytes);
}
cl_int device_ids(Fixture& f) {
  cl_uint count = 0;
  return clGetDeviceIDs(f.platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
}
cl_int device_info(Fixture& f) {
  cl_uint units = 0;
  return clGetDeviceInfo(f.device(), CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
}
cl_int context_info(Fixture& f) {
  cl_uint count = 0;
  return clGetContextInfo(f.context(), CL_CONTEXT_NUM_DEVICES, sizeof count, &count, nullptr);
}
cl_int queue_info(Fixture& f) {
  cl_command_queue_properties properties = 0;
  return clGetCommandQueueInfo(f.queue(), CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr);
}
cl_int image_formats(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  cl_uint count = 0;
  return clGetSupportedImageFormats(f.context(), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count);
}
cl_int memory_info(Fixture& f) {
  std::size_t bytes = 0;
  return clGetMemObjectInfo(f.buffer(), CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
}
cl_int image_info(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  std::size_t width = 0;
  return clGetImageInfo(f.image(), CL_IMAGE_WIDTH, sizeof width, &width, nullptr);
}
cl_int pipe_info(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_mem pipe = clCreatePipe(f.context(), 0, 16, 16, nullptr, &error);
  if (pipe == nullptr) return kUnsupported;
  cl_uint packets = 0;
  const cl_int code = clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, sizeof packets, &packets, nullptr);
  clReleaseMemObject(pipe);
  return code;
}
cl_int sampler_info(Fixture& f) {
  cl_filter_mode filter = 0;
  return clGetSamplerInfo(f.sampler(), CL_SAMPLER_FILTER_MODE, sizeof filter, &filter, nullptr);
}
cl_int program_info(Fixture& f) {
  std::size_t count = 0;
  return clGetProgramInfo(f.program(), CL_PROGRAM_NUM_KERNELS, sizeof count, &count, nullptr);
}
cl_int build_info(Fixture& f) {
  cl_build_status status = 0;
  return clGetProgramBuildInfo(f.program(), f.device(), CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr);
}
cl_int kernel_info(Fixture& f) {
  std::size_t bytes = 0;
  return clGetKernelInfo(f.kernel(), CL_KERNEL_FUNCTION_NAME, 0, nullptr, &bytes);
}
cl_int argument_info(Fixture& f) {
  std::size_t bytes = 0;
  return clGetKernelArgInfo(f.kernel(), 0, CL_KERNEL_ARG_NAME, 0, nullptr, &bytes);
}
cl_int work_group_info(Fixture& f) {
  std::size_t size = 0;
  return clGetKernelWorkGroupInfo(f.kernel(), f.device(), CL_KERNEL_WORK_GROUP_SIZE, sizeof size, &size, nullptr);
}
cl_int sub_group_info(Fixture& f) {
  const std::size_t local = 16;
  std::size_t size = 0;
  const cl_int code = clGetKernelSubGroupInfo(f.kernel(), f.device(), CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof local, &local,
                                              sizeof size, &size, nullptr);
  return code == CL_INVALID_OPERATION ? kUnsupported : code;
}
cl_int event_info(Fixture& f) {
  cl_int status = 0;
  return clGetEventInfo(f.event(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
}
/// The queue has no profiling, so the valid answer is that there is nothing to tell.
cl_int profiling_info(Fixture& f) {
  cl_event event = f.event();
  XPU_CL(clWaitForEvents(1, &event));
  cl_ulong time_ns = 0;
  const cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time_ns, &time_ns, nullptr);
  return code == CL_PROFILING_INFO_NOT_AVAILABLE ? CL_SUCCESS : CL_INVALID_VALUE;
}
cl_int wait_for_events(Fixture& f) {
  cl_event event = f.event();
  return clWaitForEvents(1, &event);
}
cl_int flush(Fixture& f) { return clFlush(f.queue()); }
cl_int finish(Fixture& f) { return clFinish(f.queue()); }

cl_int device_and_host_timer(Fixture& f) {
  cl_ulong device_ns = 0, host_ns = 0;
  const cl_int code = clGetDeviceAndHostTimer(f.device(), &device_ns, &host_ns);
  return f.has_timer() ? code : kUnsupported;
}
cl_int host_timer(Fixture& f) {
  cl_ulong host_ns = 0;
  const cl_int code = clGetHostTimer(f.device(), &host_ns);
  return f.has_timer() ? code : kUnsupported;
}

/// Nobody has a function of this name: a null pointer is the valid answer.
cl_int extension_address(Fixture&) { return clGetExtensionFunctionAddress("clNoSuchFunction") == nullptr ? CL_SUCCESS : CL_INVALID_VALUE; }
cl_int extension_address_for_platform(Fixture& f) {
  return clGetExtensionFunctionAddressForPlatform(f.platform(), "clNoSuchFunction") == nullptr ? CL_SUCCESS : CL_INVALID_VALUE;
}

constexpr EntryCall kCalls[] = {
    {"clGetPlatformIDs", platform_ids},
    {"clGetPlatformInfo", platform_info},
    {"clGetDeviceIDs", device_ids},
    {"clGetDeviceInfo", device_info},
    {"clGetContextInfo", context_info},
    {"clGetCommandQueueInfo", queue_info},
    {"clGetSupportedImageFormats", image_formats},
    {"clGetMemObjectInfo", memory_info},
    {"clGetImageInfo", image_info},
    {"clGetPipeInfo", pipe_info},
    {"clGetSamplerInfo", sampler_info},
    {"clGetProgramInfo", program_info},
    {"clGetProgramBuildInfo", build_info},
    {"clGetKernelInfo", kernel_info},
    {"clGetKernelArgInfo", argument_info},
    {"clGetKernelWorkGroupInfo", work_group_info},
    {"clGetKernelSubGroupInfo", sub_group_info},
    {"clGetEventInfo", event_info},
    {"clGetEventProfilingInfo", profiling_info},
    {"clWaitForEvents", wait_for_events},
    {"clFlush", flush},
    {"clFinish", finish},
    {"clGetDeviceAndHostTimer", device_and_host_timer},
    {"clGetHostTimer", host_timer},
    {"clGetExtensionFunctionAddress", extension_address},
    {"clGetExtensionFunctionAddressForPlatform", extension_address_for_platform},
};

}  // namespace

std::span<const EntryCall> query_calls() { return kCalls; }

}  // namespace xpu::opencl_programs::entries
