#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "null_driver/opencl_headers.hpp"

/// What the programs of this folder share. They are ordinary OpenCL programs: nothing here knows of tracing.
namespace xpu::opencl_programs {

/// Ends the program with exit code 3 and one line on standard error if `code` is an error.
void check(cl_int code, const char* call);

#define XPU_CL(call) ::xpu::opencl_programs::check((call), #call)

/// The first platform whose name contains XPU_TEST_PLATFORM, or just the first.
cl_platform_id pick_platform();

/// The kernels that all programs use:
///   tiny(global int* data, int value)            stores one value
///   empty(global int* data)
///   spin(global int* data, int rounds)           runs for a while on a device that runs anything
///   scratch(global int* data, local int* local_data)
extern const char* const kKernelSource;

/// Platform, device, context and built program. Never released: the programs test how processes end.
struct Setup {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::vector<cl_device_id> devices;
  cl_context context = nullptr;
  cl_program program = nullptr;

  Setup();

  cl_command_queue queue(cl_command_queue_properties properties = 0) const;
  cl_command_queue queue_on(cl_device_id chosen, cl_command_queue_properties properties = 0) const;
  cl_kernel kernel(const char* name) const;
  cl_mem buffer(std::size_t bytes) const;

  /// tiny or spin with its arguments set: data is a buffer of 4096 bytes of its own.
  cl_kernel ready_kernel(const char* name, cl_int value) const;
};

/// Launches one work item.
void launch(cl_command_queue queue, cl_kernel kernel, cl_event* event = nullptr);

/// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t now_ns() noexcept;

std::string device_name(cl_device_id device);

/// argv[index] as a number, or `fallback`.
std::uint64_t number_argument(int argc, char** argv, int index, std::uint64_t fallback);

}  // namespace xpu::opencl_programs
