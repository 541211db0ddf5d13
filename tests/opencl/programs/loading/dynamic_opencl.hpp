#pragma once

#include <cstdint>

#include "null_driver/opencl_headers.hpp"

namespace xpu::opencl_programs {

/// The few functions that a program needs which opens the loader itself instead of being linked with it.
class DynamicOpenCl {
 public:
  /// Opens `path`; ends the program with exit code 3 if it cannot be opened or lacks a function.
  explicit DynamicOpenCl(const char* path);
  DynamicOpenCl(const DynamicOpenCl&) = delete;
  DynamicOpenCl& operator=(const DynamicOpenCl&) = delete;

  /// Makes a context, a queue and a kernel on the first device of the platform that XPU_TEST_PLATFORM names (or the first), launches
  /// `count` times without waiting, and prints "process PID submitted COUNT".
  void launch_without_waiting(std::uint64_t count, cl_int rounds);

  void finish();

  /// Closes the loader, with whatever is in flight. Nothing may be called afterwards.
  void close();

 private:
  template <class Function>
  void find(Function& function, const char* name);
  cl_platform_id pick_platform();

  void* library_ = nullptr;
  cl_command_queue queue_ = nullptr;
  decltype(&clGetPlatformIDs) get_platform_ids_ = nullptr;
  decltype(&clGetPlatformInfo) get_platform_info_ = nullptr;
  decltype(&clGetDeviceIDs) get_device_ids_ = nullptr;
  decltype(&clCreateContext) create_context_ = nullptr;
  decltype(&clCreateCommandQueueWithProperties) create_queue_ = nullptr;
  decltype(&clCreateProgramWithSource) create_program_ = nullptr;
  decltype(&clBuildProgram) build_program_ = nullptr;
  decltype(&clCreateKernel) create_kernel_ = nullptr;
  decltype(&clCreateBuffer) create_buffer_ = nullptr;
  decltype(&clSetKernelArg) set_kernel_argument_ = nullptr;
  decltype(&clEnqueueNDRangeKernel) launch_ = nullptr;
  decltype(&clFlush) flush_ = nullptr;
  decltype(&clFinish) finish_ = nullptr;
};

}  // namespace xpu::opencl_programs
