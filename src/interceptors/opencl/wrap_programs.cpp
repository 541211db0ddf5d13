#include <cstdint>
#include <cstring>
#include <string_view>

#include "interceptors/opencl/command.hpp"

namespace xpu::interceptors::opencl {
namespace {

/// FNV-1a: tells programs apart, nothing more.
class Hash {
 public:
  void add(std::string_view bytes) noexcept {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3u;
    size_ += bytes.size();
  }
  std::uint64_t value() const noexcept { return size_ == 0 ? 0 : value_; }
  std::uint64_t size() const noexcept { return size_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
  std::uint64_t size_ = 0;
};

/// Texts as clCreateProgramWithSource takes them: without lengths, or with a length of 0, they end with a zero.
Hash hash_of_sources(cl_uint count, const char* const* texts, const std::size_t* lengths) noexcept {
  Hash hash;
  for (cl_uint index = 0; texts != nullptr && index < count; ++index) {
    if (texts[index] == nullptr) continue;
    const std::size_t length = lengths != nullptr && lengths[index] != 0 ? lengths[index] : std::strlen(texts[index]);
    hash.add({texts[index], length});
  }
  return hash;
}

}  // namespace

// What is hashed is read after the driver accepted it: its arguments were sound.
cl_program Wrappers::clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts, const std::size_t* lengths,
                                               cl_int* error_ret) {
  Call call(Entry::clCreateProgramWithSource);
  cl_int error = CL_SUCCESS;
  const cl_program program = target().clCreateProgramWithSource(context, count, texts, lengths, &error);
  if (program != nullptr && is_tracking()) {
    const Hash hash = hash_of_sources(count, texts, lengths);
    program_created(program, context, "source", hash.size(), hash.value());
  }
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(program, error);
}

cl_program Wrappers::clCreateProgramWithBinary(cl_context context, cl_uint device_count, const cl_device_id* devices,
                                               const std::size_t* lengths, const unsigned char** binaries, cl_int* statuses,
                                               cl_int* error_ret) {
  Call call(Entry::clCreateProgramWithBinary);
  cl_int error = CL_SUCCESS;
  const cl_program program = target().clCreateProgramWithBinary(context, device_count, devices, lengths, binaries, statuses, &error);
  if (program != nullptr && is_tracking()) {
    Hash hash;
    if (device_count != 0 && lengths != nullptr && binaries != nullptr && binaries[0] != nullptr) {
      hash.add({reinterpret_cast<const char*>(binaries[0]), lengths[0]});
    }
    program_created(program, context, "binary", hash.size(), hash.value());
  }
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(program, error);
}

cl_program Wrappers::clCreateProgramWithBuiltInKernels(cl_context context, cl_uint device_count, const cl_device_id* devices,
                                                       const char* names, cl_int* error_ret) {
  Call call(Entry::clCreateProgramWithBuiltInKernels);
  cl_int error = CL_SUCCESS;
  const cl_program program = target().clCreateProgramWithBuiltInKernels(context, device_count, devices, names, &error);
  if (program != nullptr && is_tracking()) program_created(program, context, "built-in kernels", 0, 0);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(program, error);
}

cl_program Wrappers::clCreateProgramWithIL(cl_context context, const void* code, std::size_t bytes, cl_int* error_ret) {
  Call call(Entry::clCreateProgramWithIL);
  cl_int error = CL_SUCCESS;
  const cl_program program = target().clCreateProgramWithIL(context, code, bytes, &error);
  if (program != nullptr && is_tracking()) {
    Hash hash;
    if (code != nullptr) hash.add({static_cast<const char*>(code), bytes});
    program_created(program, context, "intermediate language", hash.size(), hash.value());
  }
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(program, error);
}

cl_program Wrappers::clLinkProgram(cl_context context, cl_uint device_count, const cl_device_id* devices, const char* options,
                                   cl_uint program_count, const cl_program* programs, void(CL_CALLBACK* notify)(cl_program, void*),
                                   void* user_data, cl_int* error_ret) {
  Call call(Entry::clLinkProgram);
  cl_int error = CL_SUCCESS;
  const cl_program program =
      target().clLinkProgram(context, device_count, devices, options, program_count, programs, notify, user_data, &error);
  if (program != nullptr && is_tracking()) program_created(program, context, "linked", 0, 0);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(program, error);
}

cl_int Wrappers::clRetainProgram(cl_program program) {
  Call call(Entry::clRetainProgram);
  const cl_int result = target().clRetainProgram(program);
  if (result == CL_SUCCESS && is_tracking()) g_objects.programs.retain(program);
  return call.finish(result);
}

cl_int Wrappers::clReleaseProgram(cl_program program) {
  Call call(Entry::clReleaseProgram);
  if (is_tracking()) program_released(program);
  return call.finish(target().clReleaseProgram(program));
}

// ---- kernels

cl_kernel Wrappers::clCreateKernel(cl_program program, const char* name, cl_int* error_ret) {
  Call call(Entry::clCreateKernel);
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = target().clCreateKernel(program, name, &error);
  if (kernel != nullptr && is_tracking()) kernel_created(kernel, program, name);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(kernel, error);
}

cl_int Wrappers::clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel* kernels, cl_uint* count_ret) {
  Call call(Entry::clCreateKernelsInProgram);
  cl_uint count = 0;
  const cl_int result = target().clCreateKernelsInProgram(program, room, kernels, &count);
  if (result == CL_SUCCESS && kernels != nullptr && is_tracking()) {
    for (cl_uint index = 0; index < count && index < room; ++index) kernel_created(kernels[index], program, nullptr);
  }
  if (result == CL_SUCCESS && count_ret != nullptr) *count_ret = count;
  return call.finish(result);
}

cl_kernel Wrappers::clCloneKernel(cl_kernel source, cl_int* error_ret) {
  Call call(Entry::clCloneKernel);
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = target().clCloneKernel(source, &error);
  if (kernel != nullptr && is_tracking()) kernel_cloned(kernel, source);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(kernel, error);
}

cl_int Wrappers::clRetainKernel(cl_kernel kernel) {
  Call call(Entry::clRetainKernel);
  const cl_int result = target().clRetainKernel(kernel);
  if (result == CL_SUCCESS && is_tracking()) g_objects.kernels.retain(kernel);
  return call.finish(result);
}

cl_int Wrappers::clReleaseKernel(cl_kernel kernel) {
  Call call(Entry::clReleaseKernel);
  if (is_tracking()) kernel_released(kernel);
  return call.finish(target().clReleaseKernel(kernel));
}

}  // namespace xpu::interceptors::opencl
