#include <cstdio>
#include <string>

#include "programs/transparency/transparency.hpp"

namespace xpu::opencl_programs::transparency {
namespace {

void print_kernel(const Setup& setup, const char* name) {
  cl_kernel kernel = setup.kernel(name);
  char text[64] = {};
  cl_uint arguments = 0;
  cl_program program = nullptr;
  std::size_t work_group = 0, multiple = 0;
  cl_ulong local_bytes = 0, private_bytes = 0;
  cl_int code = clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof text, text, nullptr);
  std::printf("kernel %d \"%s\"", code, text);
  code = clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr);
  std::printf("; arguments %d %u", code, arguments);
  code = clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr);
  std::printf("; program %d %s", code, program == setup.program ? "ours" : "another");
  code = clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof work_group, &work_group, nullptr);
  std::printf("; work group %d %zu", code, work_group);
  code = clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof multiple, &multiple, nullptr);
  std::printf(" %d %zu", code, multiple);
  code = clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes, nullptr);
  std::printf("; local %d %llu", code, static_cast<unsigned long long>(local_bytes));
  code = clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private_bytes, &private_bytes, nullptr);
  std::printf("; private %d %llu\n", code, static_cast<unsigned long long>(private_bytes));
  XPU_CL(clReleaseKernel(kernel));
}

unsigned destroyed = 0;
void CL_CALLBACK count_memory(cl_mem, void*) { ++destroyed; }
void CL_CALLBACK count_context(cl_context, void*) { ++destroyed; }

/// Objects die at the program's last release: a tracer that keeps one of them shows here.
void print_destruction(const Setup& setup) {
  cl_mem data = setup.buffer(4096);
  XPU_CL(clSetMemObjectDestructorCallback(data, count_memory, nullptr));
  cl_command_queue queue = setup.queue();
  const char bytes[64] = {};
  XPU_CL(clEnqueueWriteBuffer(queue, data, CL_TRUE, 0, sizeof bytes, bytes, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  XPU_CL(clReleaseMemObject(data));
  std::printf("memory destroyed: %u\n", destroyed);
  XPU_CL(clReleaseCommandQueue(queue));

  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &setup.device, nullptr, nullptr, &error);
  check(error, "clCreateContext");
  const cl_int code = clSetContextDestructorCallback(context, count_context, nullptr);
  queue = clCreateCommandQueueWithProperties(context, setup.device, nullptr, &error);
  check(error, "clCreateCommandQueueWithProperties");
  XPU_CL(clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr));
  XPU_CL(clFinish(queue));
  XPU_CL(clReleaseCommandQueue(queue));
  XPU_CL(clReleaseContext(context));
  std::printf("context callback %d, context destroyed: %u\n", code, destroyed - 1);
}

}  // namespace

void print_objects(const Setup& setup) {
  for (const char* name : {"tiny", "empty", "scratch"}) print_kernel(setup, name);
  print_destruction(setup);
  std::printf("device \"%s\"\n", device_name(setup.device).c_str());
  cl_uint count = 0;
  const cl_int code = clGetDeviceIDs(setup.platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  std::printf("devices %d %u\n", code, count);
}

}  // namespace xpu::opencl_programs::transparency
