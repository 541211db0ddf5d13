#include <algorithm>
#include <array>

#include "null_driver/api.hpp"
#include "null_driver/platforms.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::answer_text;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;

namespace xpu::null_driver {
namespace {

cl_kernel create_kernel(cl_program program, const KernelSource& source) {
  auto* kernel = new _cl_kernel;
  kernel->program = keep(program);
  kernel->context = program->context;  // kept by the program
  kernel->source = source;
  kernel->argument_count = static_cast<std::uint32_t>(source.arguments.size());
  kernel->local_bytes.assign(source.arguments.size(), 0);
  // Arguments behind the 64th are not looked after.
  for (std::size_t i = 0; i < std::min<std::size_t>(source.arguments.size(), 64); ++i) {
    kernel->missing_arguments |= std::uint64_t{1} << i;
    if (source.arguments[i].address == CL_KERNEL_ARG_ADDRESS_LOCAL) kernel->local_arguments |= std::uint64_t{1} << i;
  }
  return kernel;
}

/// What clGetKernelWorkGroupInfo answers: local memory as the arguments ask for it, and 16 private bytes per argument, so that two kernels
/// can be told apart.
cl_ulong local_bytes_of(cl_kernel kernel) {
  cl_ulong sum = 0;
  for (const std::uint64_t bytes : kernel->local_bytes) sum += bytes;
  return sum;
}
constexpr cl_ulong kPrivateBytesPerArgument = 16;

std::size_t product_of(const std::size_t* sizes, std::size_t dimensions) {
  std::size_t product = 1;
  for (std::size_t i = 0; i < dimensions; ++i) product *= sizes[i];
  return product;
}

std::uint64_t bit_of(cl_uint index) noexcept { return index < 64 ? std::uint64_t{1} << index : 0; }

}  // namespace

void destroy(cl_kernel kernel) {
  let_go(kernel->program);
  delete kernel;
}

}  // namespace xpu::null_driver

cl_kernel Api::clCreateKernel(cl_program program, const char* name, cl_int* error) {
  if (!is_valid(program)) return refuse(error, CL_INVALID_PROGRAM);
  if (name == nullptr) return refuse(error, CL_INVALID_VALUE);
  if (program->status != CL_BUILD_SUCCESS || program->binary_type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE) {
    return refuse(error, CL_INVALID_PROGRAM_EXECUTABLE);
  }
  for (const auto& source : program->kernels) {
    if (source.name == name) return xpu::null_driver::created(error, xpu::null_driver::create_kernel(program, source));
  }
  return refuse(error, CL_INVALID_KERNEL_NAME);
}

cl_int Api::clCreateKernelsInProgram(cl_program program, cl_uint entries, cl_kernel* list, cl_uint* count) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  if (program->status != CL_BUILD_SUCCESS) return CL_INVALID_PROGRAM_EXECUTABLE;
  if (list != nullptr) {
    if (entries < program->kernels.size()) return CL_INVALID_VALUE;
    for (const auto& source : program->kernels) *list++ = xpu::null_driver::create_kernel(program, source);
  }
  if (count != nullptr) *count = static_cast<cl_uint>(program->kernels.size());
  return CL_SUCCESS;
}

cl_kernel Api::clCloneKernel(cl_kernel original, cl_int* error) {
  if (!is_valid(original)) return refuse(error, CL_INVALID_KERNEL);
  cl_kernel clone = xpu::null_driver::create_kernel(original->program, original->source);
  clone->local_bytes = original->local_bytes;
  clone->missing_arguments = original->missing_arguments;
  return xpu::null_driver::created(error, clone);
}

cl_int Api::clRetainKernel(cl_kernel kernel) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  xpu::null_driver::retain(kernel);
  return CL_SUCCESS;
}

cl_int Api::clReleaseKernel(cl_kernel kernel) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  xpu::null_driver::release(kernel);
  return CL_SUCCESS;
}

cl_int Api::clSetKernelArg(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (index >= kernel->argument_count) return kernel->source.arguments_known ? CL_INVALID_ARG_INDEX : CL_SUCCESS;
  if (bytes == 0) return CL_INVALID_ARG_SIZE;
  const std::uint64_t bit = xpu::null_driver::bit_of(index);
  if ((kernel->local_arguments & bit) != 0) {
    if (value != nullptr) return CL_INVALID_ARG_VALUE;
    kernel->local_bytes[index] = bytes;
  }
  kernel->missing_arguments &= ~bit;
  return CL_SUCCESS;
}

cl_int Api::clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void*) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (index >= kernel->argument_count) return kernel->source.arguments_known ? CL_INVALID_ARG_INDEX : CL_SUCCESS;
  kernel->missing_arguments &= ~xpu::null_driver::bit_of(index);
  return CL_SUCCESS;
}

cl_int Api::clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info name, std::size_t bytes, const void* value) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (name != CL_KERNEL_EXEC_INFO_SVM_PTRS && name != CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM) return CL_INVALID_VALUE;
  return value != nullptr && bytes != 0 ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int Api::clGetKernelInfo(cl_kernel kernel, cl_kernel_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  switch (query) {
    case CL_KERNEL_FUNCTION_NAME: return answer_text(kernel->source.name, room, value, size_ret);
    case CL_KERNEL_NUM_ARGS: return answer<cl_uint>(kernel->argument_count, room, value, size_ret);
    case CL_KERNEL_REFERENCE_COUNT: return answer<cl_uint>(kernel->reference_count(), room, value, size_ret);
    case CL_KERNEL_CONTEXT: return answer<cl_context>(kernel->context, room, value, size_ret);
    case CL_KERNEL_PROGRAM: return answer<cl_program>(kernel->program, room, value, size_ret);
    case CL_KERNEL_ATTRIBUTES: return answer_text(kernel->source.attributes, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info query, std::size_t room, void* value,
                               std::size_t* size_ret) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (index >= kernel->source.arguments.size()) return CL_INVALID_ARG_INDEX;
  const auto& argument = kernel->source.arguments[index];
  switch (query) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER: return answer<cl_kernel_arg_address_qualifier>(argument.address, room, value, size_ret);
    case CL_KERNEL_ARG_ACCESS_QUALIFIER: return answer<cl_kernel_arg_access_qualifier>(argument.access, room, value, size_ret);
    case CL_KERNEL_ARG_TYPE_NAME: return answer_text(argument.type, room, value, size_ret);
    case CL_KERNEL_ARG_TYPE_QUALIFIER: return answer<cl_kernel_arg_type_qualifier>(argument.qualifiers, room, value, size_ret);
    case CL_KERNEL_ARG_NAME: return answer_text(argument.name, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info query, std::size_t room, void* value,
                                     std::size_t* size_ret) {
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (device == nullptr ? kernel->context->devices.size() != 1 : !is_valid(device)) return CL_INVALID_DEVICE;
  switch (query) {
    case CL_KERNEL_WORK_GROUP_SIZE: return answer<std::size_t>(xpu::null_driver::kMaxWorkGroup, room, value, size_ret);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
      return answer<std::array<std::size_t, 3>>(kernel->source.required_work_group, room, value, size_ret);
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE: return answer<std::size_t>(xpu::null_driver::kSubGroupSize, room, value, size_ret);
    case CL_KERNEL_LOCAL_MEM_SIZE: return answer<cl_ulong>(xpu::null_driver::local_bytes_of(kernel), room, value, size_ret);
    case CL_KERNEL_PRIVATE_MEM_SIZE:
      return answer<cl_ulong>(xpu::null_driver::kPrivateBytesPerArgument * kernel->source.arguments.size(), room, value, size_ret);
    default: return CL_INVALID_VALUE;  // CL_KERNEL_GLOBAL_WORK_SIZE is for built-in kernels of custom devices
  }
}

cl_int Api::clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info query, std::size_t input_bytes,
                                    const void* input, std::size_t room, void* value, std::size_t* size_ret) {
  using xpu::null_driver::kMaxWorkGroup;
  using xpu::null_driver::kSubGroupSize;
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (device == nullptr ? kernel->context->devices.size() != 1 : !is_valid(device)) return CL_INVALID_DEVICE;
  const auto* sizes = static_cast<const std::size_t*>(input);
  const std::size_t dimensions = input_bytes / sizeof(std::size_t);
  switch (query) {
    case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE:
      if (sizes == nullptr || dimensions == 0 || dimensions > 3) return CL_INVALID_VALUE;
      return answer<std::size_t>(std::min(kSubGroupSize, xpu::null_driver::product_of(sizes, dimensions)), room, value, size_ret);
    case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE:
      if (sizes == nullptr || dimensions == 0 || dimensions > 3) return CL_INVALID_VALUE;
      return answer<std::size_t>((xpu::null_driver::product_of(sizes, dimensions) + kSubGroupSize - 1) / kSubGroupSize, room, value,
                                 size_ret);
    case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT: {
      if (sizes == nullptr || dimensions != 1) return CL_INVALID_VALUE;
      const std::size_t local = sizes[0] * kSubGroupSize <= kMaxWorkGroup ? sizes[0] * kSubGroupSize : 0;
      return answer<std::array<std::size_t, 3>>({local, local != 0 ? 1u : 0u, local != 0 ? 1u : 0u}, room, value, size_ret);
    }
    case CL_KERNEL_MAX_NUM_SUB_GROUPS: return answer<std::size_t>(kMaxWorkGroup / kSubGroupSize, room, value, size_ret);
    case CL_KERNEL_COMPILE_NUM_SUB_GROUPS: return answer<std::size_t>(0, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clGetKernelSubGroupInfoKHR(cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info query, std::size_t input_bytes,
                                       const void* input, std::size_t room, void* value, std::size_t* size_ret) {
  return clGetKernelSubGroupInfo(kernel, device, query, input_bytes, input, room, value, size_ret);
}
