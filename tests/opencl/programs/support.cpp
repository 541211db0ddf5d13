#include "programs/support.hpp"

#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace xpu::opencl_programs {

void check(cl_int code, const char* call) {
  if (code >= 0) return;
  std::fprintf(stderr, "%s failed with %d\n", call, code);
  std::exit(3);
}

const char* const kKernelSource = R"(
kernel void tiny(global int* data, int value) { if (get_global_id(0) == 0) data[0] = value; }
kernel void empty(global int* data) {}
kernel void spin(global int* data, int rounds) {
  int sum = data[1];
  for (int i = 0; i < rounds; ++i) sum += i ^ data[i & 7];
  data[0] = sum;
}
kernel void scratch(global int* data, local int* local_data) {
  local_data[get_local_id(0)] = data[0];
  data[1] = local_data[0];
}
)";

cl_platform_id pick_platform() {
  cl_uint count = 0;
  XPU_CL(clGetPlatformIDs(0, nullptr, &count));
  std::vector<cl_platform_id> platforms(count);
  XPU_CL(clGetPlatformIDs(count, platforms.data(), nullptr));
  const char* wanted = std::getenv("XPU_TEST_PLATFORM");
  for (cl_platform_id platform : platforms) {
    if (wanted == nullptr) return platform;
    std::size_t bytes = 0;
    XPU_CL(clGetPlatformInfo(platform, CL_PLATFORM_NAME, 0, nullptr, &bytes));
    std::string name(bytes, '\0');
    XPU_CL(clGetPlatformInfo(platform, CL_PLATFORM_NAME, bytes, name.data(), nullptr));
    if (name.find(wanted) != std::string::npos) return platform;
  }
  std::fprintf(stderr, "no OpenCL platform named \"%s\"\n", wanted != nullptr ? wanted : "");
  std::exit(3);
}

Setup::Setup() {
  platform = pick_platform();
  cl_uint count = 0;
  XPU_CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count));
  devices.resize(count);
  XPU_CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr));
  device = devices.front();
  cl_int error = CL_SUCCESS;
  context = clCreateContext(nullptr, count, devices.data(), nullptr, nullptr, &error);
  check(error, "clCreateContext");
  const char* source = kKernelSource;
  program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
  check(error, "clCreateProgramWithSource");
  XPU_CL(clBuildProgram(program, count, devices.data(), "", nullptr, nullptr));
}

cl_command_queue Setup::queue(cl_command_queue_properties properties) const { return queue_on(device, properties); }

cl_command_queue Setup::queue_on(cl_device_id chosen, cl_command_queue_properties properties) const {
  const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
  cl_int error = CL_SUCCESS;
  cl_command_queue created = clCreateCommandQueueWithProperties(context, chosen, properties != 0 ? list : nullptr, &error);
  check(error, "clCreateCommandQueueWithProperties");
  return created;
}

cl_kernel Setup::kernel(const char* name) const {
  cl_int error = CL_SUCCESS;
  cl_kernel created = clCreateKernel(program, name, &error);
  check(error, "clCreateKernel");
  return created;
}

cl_mem Setup::buffer(std::size_t bytes) const {
  cl_int error = CL_SUCCESS;
  cl_mem created = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  check(error, "clCreateBuffer");
  return created;
}

cl_kernel Setup::ready_kernel(const char* name, cl_int value) const {
  cl_kernel created = kernel(name);
  cl_mem data = buffer(4096);
  XPU_CL(clSetKernelArg(created, 0, sizeof data, &data));
  XPU_CL(clSetKernelArg(created, 1, sizeof value, &value));
  return created;
}

void launch(cl_command_queue queue, cl_kernel kernel, cl_event* event) {
  const std::size_t one = 1;
  XPU_CL(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, event));
}

std::uint64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

std::string device_name(cl_device_id device) {
  std::size_t bytes = 0;
  XPU_CL(clGetDeviceInfo(device, CL_DEVICE_NAME, 0, nullptr, &bytes));
  std::string name(bytes, '\0');
  XPU_CL(clGetDeviceInfo(device, CL_DEVICE_NAME, bytes, name.data(), nullptr));
  name.resize(bytes == 0 ? 0 : bytes - 1);
  return name;
}

std::uint64_t number_argument(int argc, char** argv, int index, std::uint64_t fallback) {
  return index < argc ? std::strtoull(argv[index], nullptr, 0) : fallback;
}

}  // namespace xpu::opencl_programs
