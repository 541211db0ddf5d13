#include "programs/loading/dynamic_opencl.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace xpu::opencl_programs {
namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why != nullptr ? why : "failed");
  std::exit(3);
}

void expect_success(cl_int code, const char* what) {
  if (code != CL_SUCCESS) give_up(what, std::to_string(code).c_str());
}

// The kernel spin of the other programs, which this one cannot share: they are linked with the loader.
const char* const kSource = R"(
kernel void spin(global int* data, int rounds) {
  int sum = data[1];
  for (int i = 0; i < rounds; ++i) sum += i ^ data[i & 7];
  data[0] = sum;
}
)";

}  // namespace

template <class Function>
void DynamicOpenCl::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  if (function == nullptr) give_up(name, "the library has no such function");
}

DynamicOpenCl::DynamicOpenCl(const char* path) {
  library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) give_up(path, dlerror());
  find(get_platform_ids_, "clGetPlatformIDs");
  find(get_platform_info_, "clGetPlatformInfo");
  find(get_device_ids_, "clGetDeviceIDs");
  find(create_context_, "clCreateContext");
  find(create_queue_, "clCreateCommandQueueWithProperties");
  find(create_program_, "clCreateProgramWithSource");
  find(build_program_, "clBuildProgram");
  find(create_kernel_, "clCreateKernel");
  find(create_buffer_, "clCreateBuffer");
  find(set_kernel_argument_, "clSetKernelArg");
  find(launch_, "clEnqueueNDRangeKernel");
  find(flush_, "clFlush");
  find(finish_, "clFinish");
}

cl_platform_id DynamicOpenCl::pick_platform() {
  cl_uint count = 0;
  expect_success(get_platform_ids_(0, nullptr, &count), "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  expect_success(get_platform_ids_(count, platforms.data(), nullptr), "clGetPlatformIDs");
  const char* wanted = std::getenv("XPU_TEST_PLATFORM");
  for (cl_platform_id platform : platforms) {
    char name[256] = {};
    expect_success(get_platform_info_(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr), "clGetPlatformInfo");
    if (wanted == nullptr || std::string(name).find(wanted) != std::string::npos) return platform;
  }
  give_up("XPU_TEST_PLATFORM", "no platform of this name");
}

void DynamicOpenCl::launch_without_waiting(std::uint64_t count, cl_int rounds) {
  cl_device_id device = nullptr;
  expect_success(get_device_ids_(pick_platform(), CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_int error = CL_SUCCESS;
  cl_context context = create_context_(nullptr, 1, &device, nullptr, nullptr, &error);
  expect_success(error, "clCreateContext");
  queue_ = create_queue_(context, device, nullptr, &error);
  expect_success(error, "clCreateCommandQueueWithProperties");
  const char* source = kSource;
  cl_program program = create_program_(context, 1, &source, nullptr, &error);
  expect_success(error, "clCreateProgramWithSource");
  expect_success(build_program_(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  cl_kernel kernel = create_kernel_(program, "spin", &error);
  expect_success(error, "clCreateKernel");
  cl_mem data = create_buffer_(context, CL_MEM_READ_WRITE, 4096, nullptr, &error);
  expect_success(error, "clCreateBuffer");
  expect_success(set_kernel_argument_(kernel, 0, sizeof data, &data), "clSetKernelArg");
  expect_success(set_kernel_argument_(kernel, 1, sizeof rounds, &rounds), "clSetKernelArg");
  const std::size_t one = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    expect_success(launch_(queue_, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
  }
  expect_success(flush_(queue_), "clFlush");
  std::printf("process %d submitted %" PRIu64 "\n", static_cast<int>(getpid()), count);
  std::fflush(stdout);
}

void DynamicOpenCl::finish() { expect_success(finish_(queue_), "clFinish"); }

void DynamicOpenCl::close() { dlclose(library_); }

}  // namespace xpu::opencl_programs
