#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "null_driver/opencl_headers.hpp"

namespace xpu::null_driver {

struct KernelArgument {
  std::string name;
  std::string type;
  cl_kernel_arg_address_qualifier address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
  cl_kernel_arg_type_qualifier qualifiers = CL_KERNEL_ARG_TYPE_NONE;
};

/// What the driver must know about a kernel it never compiles.
struct KernelSource {
  std::string name;
  std::vector<KernelArgument> arguments;
  bool arguments_known = true;                       // false: any index and size is taken
  std::array<std::size_t, 3> required_work_group{};  // reqd_work_group_size, zeros without it
  std::string attributes;                            // as CL_KERNEL_ATTRIBUTES shows them
};

/// The kernels of an OpenCL C source, by looking for `kernel … void NAME(ARGUMENTS)`. Comments are skipped; macros are not expanded.
std::vector<KernelSource> kernels_of_source(std::string_view source);

/// The entry points of a SPIR-V module, without arguments; empty when it is none.
std::vector<KernelSource> kernels_of_intermediate_language(std::string_view module);

/// Whether `module` begins as SPIR-V does.
bool is_intermediate_language(std::string_view module) noexcept;

}  // namespace xpu::null_driver
