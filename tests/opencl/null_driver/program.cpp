#include "null_driver/api.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;

namespace xpu::null_driver {
namespace {

/// A binary of this driver is this mark and the source (or the intermediate language) that it was made of.
constexpr std::string_view kBinaryMark = "XPUNULL1";

cl_program create_program(cl_context context) {
  auto* program = new _cl_program;
  program->context = keep(context);
  return program;
}

std::string binary_of(cl_program program) {
  if (program->status != CL_BUILD_SUCCESS) return {};
  return std::string(kBinaryMark) + (program->source.empty() ? program->intermediate_language : program->source);
}

void find_kernels(cl_program program) {
  program->kernels =
      program->source.empty() ? kernels_of_intermediate_language(program->intermediate_language) : kernels_of_source(program->source);
}

/// Compiles or builds. A source with an #error line fails, as it would with a compiler.
cl_int make(cl_program program, const char* options, cl_program_binary_type made, cl_int failure) {
  program->options = options != nullptr ? options : "";
  if (program->source.find("#error") != std::string::npos) {
    program->status = CL_BUILD_ERROR;
    program->log = "error: #error";
    return failure;
  }
  find_kernels(program);
  program->status = CL_BUILD_SUCCESS;
  program->binary_type = made;
  program->log.clear();
  return CL_SUCCESS;
}

cl_int check_devices(cl_program program, cl_uint count, const cl_device_id* devices) {
  if ((count == 0) != (devices == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    if (!is_valid(devices[i]) || !contains_device(program->context, devices[i])) return CL_INVALID_DEVICE;
  }
  return CL_SUCCESS;
}

std::string names_of(cl_program program) {
  std::string names;
  for (const KernelSource& kernel : program->kernels) names += (names.empty() ? "" : ";") + kernel.name;
  return names;
}

}  // namespace

void destroy(cl_program program) {
  for (auto callback = program->callbacks.rbegin(); callback != program->callbacks.rend(); ++callback) {
    callback->function(program, callback->user_data);
  }
  let_go(program->context);
  delete program;
}

}  // namespace xpu::null_driver

cl_program Api::clCreateProgramWithSource(cl_context context, cl_uint count, const char** strings, const std::size_t* lengths,
                                          cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (count == 0 || strings == nullptr) return refuse(error, CL_INVALID_VALUE);
  std::string source;
  for (cl_uint i = 0; i < count; ++i) {
    if (strings[i] == nullptr) return refuse(error, CL_INVALID_VALUE);
    const bool terminated = lengths == nullptr || lengths[i] == 0;
    source.append(strings[i], terminated ? std::strlen(strings[i]) : lengths[i]);
  }
  cl_program program = xpu::null_driver::create_program(context);
  program->source = std::move(source);
  return xpu::null_driver::created(error, program);
}

cl_program Api::clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices, const std::size_t* lengths,
                                          const unsigned char** binaries, cl_int* statuses, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (count == 0 || devices == nullptr || lengths == nullptr || binaries == nullptr) return refuse(error, CL_INVALID_VALUE);
  constexpr std::string_view kMark = xpu::null_driver::kBinaryMark;
  std::string text;
  for (cl_uint i = 0; i < count; ++i) {
    if (!is_valid(devices[i]) || !xpu::null_driver::contains_device(context, devices[i])) return refuse(error, CL_INVALID_DEVICE);
    const bool has_bytes = lengths[i] != 0 && binaries[i] != nullptr;
    text = has_bytes ? std::string(reinterpret_cast<const char*>(binaries[i]), lengths[i]) : "";
    const bool known = text.compare(0, kMark.size(), kMark) == 0;
    if (statuses != nullptr) statuses[i] = !has_bytes ? CL_INVALID_VALUE : known ? CL_SUCCESS : CL_INVALID_BINARY;
    if (!known) return refuse(error, has_bytes ? CL_INVALID_BINARY : CL_INVALID_VALUE);
  }
  cl_program program = xpu::null_driver::create_program(context);
  const std::string content = text.substr(kMark.size());
  (xpu::null_driver::is_intermediate_language(content) ? program->intermediate_language : program->source) = content;
  program->from_binary = true;
  program->binary_type = CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
  return xpu::null_driver::created(error, program);
}

cl_program Api::clCreateProgramWithBuiltInKernels(cl_context context, cl_uint count, const cl_device_id* devices, const char* names,
                                                  cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (count == 0 || devices == nullptr || names == nullptr || std::strcmp(names, "null_built_in") != 0)
    return refuse(error, CL_INVALID_VALUE);
  cl_program program = xpu::null_driver::create_program(context);
  program->source = "kernel void null_built_in(global int* data) {}";
  xpu::null_driver::make(program, "", CL_PROGRAM_BINARY_TYPE_EXECUTABLE, CL_BUILD_PROGRAM_FAILURE);
  return xpu::null_driver::created(error, program);
}

cl_program Api::clCreateProgramWithIL(cl_context context, const void* module, std::size_t bytes, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  const std::string_view text(static_cast<const char*>(module), module != nullptr ? bytes : 0);
  if (!xpu::null_driver::is_intermediate_language(text)) return refuse(error, CL_INVALID_VALUE);
  cl_program program = xpu::null_driver::create_program(context);
  program->intermediate_language = std::string(text);
  return xpu::null_driver::created(error, program);
}

cl_int Api::clRetainProgram(cl_program program) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  xpu::null_driver::retain(program);
  return CL_SUCCESS;
}

cl_int Api::clReleaseProgram(cl_program program) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  xpu::null_driver::release(program);
  return CL_SUCCESS;
}

cl_int Api::clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                           void(CL_CALLBACK* notify)(cl_program, void*), void* user_data) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  if (const cl_int code = xpu::null_driver::check_devices(program, count, devices); code != CL_SUCCESS) return code;
  if (notify == nullptr && user_data != nullptr) return CL_INVALID_VALUE;
  const cl_int code = xpu::null_driver::make(program, options, CL_PROGRAM_BINARY_TYPE_EXECUTABLE, CL_BUILD_PROGRAM_FAILURE);
  if (notify == nullptr) return code;
  notify(program, user_data);
  return CL_SUCCESS;
}

cl_int Api::clCompileProgram(cl_program program, cl_uint count, const cl_device_id* devices, const char* options, cl_uint header_count,
                             const cl_program* headers, const char** header_names, void(CL_CALLBACK* notify)(cl_program, void*),
                             void* user_data) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  if (const cl_int code = xpu::null_driver::check_devices(program, count, devices); code != CL_SUCCESS) return code;
  if ((header_count == 0) != (headers == nullptr) || (header_count == 0) != (header_names == nullptr)) return CL_INVALID_VALUE;
  if (notify == nullptr && user_data != nullptr) return CL_INVALID_VALUE;
  const cl_int code = xpu::null_driver::make(program, options, CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT, CL_COMPILE_PROGRAM_FAILURE);
  if (notify == nullptr) return code;
  notify(program, user_data);
  return CL_SUCCESS;
}

cl_program Api::clLinkProgram(cl_context context, cl_uint device_count, const cl_device_id* devices, const char* options, cl_uint count,
                              const cl_program* inputs, void(CL_CALLBACK* notify)(cl_program, void*), void* user_data, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (count == 0 || inputs == nullptr || (device_count == 0) != (devices == nullptr)) return refuse(error, CL_INVALID_VALUE);
  for (cl_uint i = 0; i < count; ++i) {
    if (!is_valid(inputs[i])) return refuse(error, CL_INVALID_PROGRAM);
    if (inputs[i]->binary_type == CL_PROGRAM_BINARY_TYPE_NONE) return refuse(error, CL_INVALID_OPERATION);
  }
  cl_program program = xpu::null_driver::create_program(context);
  program->options = options != nullptr ? options : "";
  program->status = CL_BUILD_SUCCESS;
  program->binary_type = CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
  for (cl_uint i = 0; i < count; ++i) {
    program->source += inputs[i]->source + "\n";
    program->kernels.insert(program->kernels.end(), inputs[i]->kernels.begin(), inputs[i]->kernels.end());
  }
  if (notify != nullptr) notify(program, user_data);
  return xpu::null_driver::created(error, program);
}

cl_int Api::clSetProgramReleaseCallback(cl_program program, void(CL_CALLBACK* function)(cl_program, void*), void* user_data) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  if (function == nullptr) return CL_INVALID_VALUE;
  program->callbacks.push_back({function, user_data});
  return CL_SUCCESS;
}

cl_int Api::clSetProgramSpecializationConstant(cl_program program, cl_uint, std::size_t, const void* value) {
  if (!is_valid(program) || program->intermediate_language.empty()) return CL_INVALID_PROGRAM;
  return value != nullptr ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int Api::clGetProgramInfo(cl_program program, cl_program_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  const std::vector<cl_device_id>& devices = program->context->devices;
  switch (query) {
    case CL_PROGRAM_REFERENCE_COUNT: return answer<cl_uint>(program->reference_count(), room, value, size_ret);
    case CL_PROGRAM_CONTEXT: return answer<cl_context>(program->context, room, value, size_ret);
    case CL_PROGRAM_NUM_DEVICES: return answer<cl_uint>(static_cast<cl_uint>(devices.size()), room, value, size_ret);
    case CL_PROGRAM_DEVICES: return xpu::null_driver::answer_list(devices, room, value, size_ret);
    case CL_PROGRAM_SOURCE:
      return xpu::null_driver::answer_text(program->from_binary ? std::string() : program->source, room, value, size_ret);
    case CL_PROGRAM_IL:
      return xpu::null_driver::answer_bytes(program->intermediate_language.data(), program->intermediate_language.size(), room, value,
                                            size_ret);
    case CL_PROGRAM_BINARY_SIZES:
      return xpu::null_driver::answer_list(std::vector<std::size_t>(devices.size(), xpu::null_driver::binary_of(program).size()), room,
                                           value, size_ret);
    case CL_PROGRAM_BINARIES: {
      if (size_ret != nullptr) *size_ret = devices.size() * sizeof(unsigned char*);
      if (value == nullptr) return CL_SUCCESS;
      if (room < devices.size() * sizeof(unsigned char*)) return CL_INVALID_VALUE;
      const std::string binary = xpu::null_driver::binary_of(program);
      auto* const* targets = static_cast<unsigned char* const*>(value);
      for (std::size_t i = 0; i < devices.size(); ++i) {
        if (targets[i] != nullptr) std::memcpy(targets[i], binary.data(), binary.size());
      }
      return CL_SUCCESS;
    }
    case CL_PROGRAM_NUM_KERNELS:
      if (program->status != CL_BUILD_SUCCESS) return CL_INVALID_PROGRAM_EXECUTABLE;
      return answer<std::size_t>(program->kernels.size(), room, value, size_ret);
    case CL_PROGRAM_KERNEL_NAMES:
      if (program->status != CL_BUILD_SUCCESS) return CL_INVALID_PROGRAM_EXECUTABLE;
      return xpu::null_driver::answer_text(xpu::null_driver::names_of(program), room, value, size_ret);
    case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
    case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT: return answer<cl_bool>(CL_FALSE, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info query, std::size_t room, void* value,
                                  std::size_t* size_ret) {
  if (!is_valid(program)) return CL_INVALID_PROGRAM;
  if (!is_valid(device) || !xpu::null_driver::contains_device(program->context, device)) return CL_INVALID_DEVICE;
  switch (query) {
    case CL_PROGRAM_BUILD_STATUS: return answer<cl_build_status>(program->status, room, value, size_ret);
    case CL_PROGRAM_BUILD_OPTIONS: return xpu::null_driver::answer_text(program->options, room, value, size_ret);
    case CL_PROGRAM_BUILD_LOG: return xpu::null_driver::answer_text(program->log, room, value, size_ret);
    case CL_PROGRAM_BINARY_TYPE: return answer<cl_program_binary_type>(program->binary_type, room, value, size_ret);
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE: return answer<std::size_t>(0, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}
