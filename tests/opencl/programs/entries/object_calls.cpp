#include <array>
#include <cstring>
#include <vector>

#include "programs/entries/registry.hpp"

namespace xpu::opencl_programs::entries {
namespace {

void CL_CALLBACK ignore_context(cl_context, void*) {}
void CL_CALLBACK ignore_program(cl_program, void*) {}
void CL_CALLBACK ignore_memory(cl_mem, void*) {}
void CL_CALLBACK ignore_event(cl_event, cl_int, void*) {}

/// Releases a handle that a creating call returned, whatever its type, and answers the creating call's result.
cl_int dispose(cl_int created, cl_int (*release)(cl_context), cl_context handle) {
  return created != CL_SUCCESS ? created : release(handle);
}
cl_int dispose(cl_int created, cl_int (*release)(cl_command_queue), cl_command_queue handle) {
  return created != CL_SUCCESS ? created : release(handle);
}
cl_int dispose(cl_int created, cl_int (*release)(cl_mem), cl_mem handle) { return created != CL_SUCCESS ? created : release(handle); }
cl_int dispose(cl_int created, cl_int (*release)(cl_sampler), cl_sampler handle) {
  return created != CL_SUCCESS ? created : release(handle);
}
cl_int dispose(cl_int created, cl_int (*release)(cl_program), cl_program handle) {
  return created != CL_SUCCESS ? created : release(handle);
}
cl_int dispose(cl_int created, cl_int (*release)(cl_kernel), cl_kernel handle) { return created != CL_SUCCESS ? created : release(handle); }

cl_int create_context(Fixture& f) {
  cl_device_id device = f.device();
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  return dispose(error, clReleaseContext, context);
}
cl_int create_context_from_type(Fixture& f) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(f.platform()), 0};
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, nullptr, nullptr, &error);
  return dispose(error, clReleaseContext, context);
}
cl_int retain_and_release_context(Fixture& f) {
  XPU_CL(clRetainContext(f.context()));
  return clReleaseContext(f.context());
}
cl_int context_callback(Fixture& f) {
  cl_device_id device = f.device();
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return error;
  return dispose(clSetContextDestructorCallback(context, ignore_context, nullptr), clReleaseContext, context);
}

cl_int create_queue(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(f.context(), f.device(), 0, &error);
  return dispose(error, clReleaseCommandQueue, queue);
}
cl_int create_queue_with_properties(Fixture& f) {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, 0, 0};
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueueWithProperties(f.context(), f.device(), properties, &error);
  return dispose(error, clReleaseCommandQueue, queue);
}
cl_int retain_and_release_queue(Fixture& f) {
  XPU_CL(clRetainCommandQueue(f.queue()));
  return clReleaseCommandQueue(f.queue());
}
/// An entry point of OpenCL 1.0 that later drivers may refuse.
cl_int set_queue_property(Fixture& f) {
  if (f.driver_dies_of_rare_calls()) return kUnsupported;
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(f.context(), f.device(), 0, &error);
  if (error != CL_SUCCESS) return error;
  cl_command_queue_properties before = 0;
  const cl_int code = clSetCommandQueueProperty(queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, &before);
  XPU_CL(clReleaseCommandQueue(queue));
  return code == CL_INVALID_OPERATION || code == CL_INVALID_QUEUE_PROPERTIES ? kUnsupported : code;
}
cl_int set_default_queue(Fixture& f) {
  if (f.driver_dies_of_rare_calls()) return kUnsupported;
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                            CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueueWithProperties(f.context(), f.device(), properties, &error);
  if (error != CL_SUCCESS) return kUnsupported;
  return dispose(clSetDefaultDeviceCommandQueue(f.context(), f.device(), queue), clReleaseCommandQueue, queue);
}

cl_int create_buffer(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateBuffer(f.context(), CL_MEM_READ_WRITE, 256, nullptr, &error);
  return dispose(error, clReleaseMemObject, memory);
}
cl_int create_buffer_with_properties(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateBufferWithProperties(f.context(), nullptr, CL_MEM_READ_WRITE, 256, nullptr, &error);
  return dispose(error, clReleaseMemObject, memory);
}
cl_int create_sub_buffer(Fixture& f) {
  const cl_buffer_region region{0, 256};
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateSubBuffer(f.buffer(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  return dispose(error, clReleaseMemObject, memory);
}
constexpr cl_image_format kFormat = {CL_RGBA, CL_UNSIGNED_INT8};
cl_image_desc description_2d() {
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = 8;
  description.image_height = 8;
  return description;
}
cl_int create_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  const cl_image_desc description = description_2d();
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateImage(f.context(), CL_MEM_READ_WRITE, &kFormat, &description, nullptr, &error);
  return dispose(error, clReleaseMemObject, memory);
}
cl_int create_image_with_properties(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  const cl_image_desc description = description_2d();
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateImageWithProperties(f.context(), nullptr, CL_MEM_READ_WRITE, &kFormat, &description, nullptr, &error);
  return dispose(error, clReleaseMemObject, memory);
}
cl_int create_image_2d(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateImage2D(f.context(), CL_MEM_READ_WRITE, &kFormat, 8, 8, 0, nullptr, &error);
  return dispose(error, clReleaseMemObject, memory);
}
cl_int create_image_3d(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateImage3D(f.context(), CL_MEM_READ_WRITE, &kFormat, 8, 8, 8, 0, 0, nullptr, &error);
  return dispose(error, clReleaseMemObject, memory);
}
cl_int create_pipe(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreatePipe(f.context(), 0, 16, 16, nullptr, &error);
  if (memory == nullptr) return kUnsupported;
  return dispose(error, clReleaseMemObject, memory);
}
cl_int retain_and_release_memory(Fixture& f) {
  XPU_CL(clRetainMemObject(f.buffer()));
  return clReleaseMemObject(f.buffer());
}
cl_int memory_callback(Fixture& f) { return clSetMemObjectDestructorCallback(f.buffer(), ignore_memory, nullptr); }
cl_int svm_alloc_and_free(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  void* pointer = clSVMAlloc(f.context(), CL_MEM_READ_WRITE, 256, 0);
  if (pointer == nullptr) return CL_OUT_OF_RESOURCES;
  clSVMFree(f.context(), pointer);
  return CL_SUCCESS;
}

cl_int create_sampler(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_sampler sampler = clCreateSampler(f.context(), CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &error);
  return dispose(error, clReleaseSampler, sampler);
}
cl_int create_sampler_with_properties(Fixture& f) {
  const cl_sampler_properties properties[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, 0};
  cl_int error = CL_SUCCESS;
  cl_sampler sampler = clCreateSamplerWithProperties(f.context(), properties, &error);
  return dispose(error, clReleaseSampler, sampler);
}
cl_int retain_and_release_sampler(Fixture& f) {
  XPU_CL(clRetainSampler(f.sampler()));
  return clReleaseSampler(f.sampler());
}

cl_int create_program(Fixture& f, cl_program& program) {
  const char* source = "kernel void one(global int* data) { data[0] = 1; }";
  cl_int error = CL_SUCCESS;
  program = clCreateProgramWithSource(f.context(), 1, &source, nullptr, &error);
  return error;
}
cl_int program_with_source(Fixture& f) {
  cl_program program = nullptr;
  const cl_int code = create_program(f, program);
  return dispose(code, clReleaseProgram, program);
}
cl_int program_with_binary(Fixture& f) {
  std::size_t bytes = 0;
  XPU_CL(clGetProgramInfo(f.program(), CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr));
  std::vector<unsigned char> binary(bytes);
  unsigned char* target = binary.data();
  XPU_CL(clGetProgramInfo(f.program(), CL_PROGRAM_BINARIES, sizeof target, &target, nullptr));
  cl_device_id device = f.device();
  const unsigned char* given = binary.data();
  cl_int status = CL_SUCCESS;
  cl_int error = CL_SUCCESS;
  cl_program program = clCreateProgramWithBinary(f.context(), 1, &device, &bytes, &given, &status, &error);
  return dispose(error, clReleaseProgram, program);
}
cl_int program_with_built_in_kernels(Fixture& f) {
  std::size_t bytes = 0;
  XPU_CL(clGetDeviceInfo(f.device(), CL_DEVICE_BUILT_IN_KERNELS, 0, nullptr, &bytes));
  std::vector<char> names(bytes + 1);
  XPU_CL(clGetDeviceInfo(f.device(), CL_DEVICE_BUILT_IN_KERNELS, bytes, names.data(), nullptr));
  if (names[0] == '\0') return kUnsupported;
  if (char* separator = std::strchr(names.data(), ';')) *separator = '\0';
  cl_device_id device = f.device();
  cl_int error = CL_SUCCESS;
  cl_program program = clCreateProgramWithBuiltInKernels(f.context(), 1, &device, names.data(), &error);
  return dispose(error, clReleaseProgram, program);
}

/// A SPIR-V module with one empty kernel `one`, assembled by hand.
constexpr std::array<cl_uint, 30> kModule = {
    0x07230203, 0x00010000, 0, 6,          0,  // header: version 1.0, ids below 6
    0x00020011, 4,                             // OpCapability Addresses
    0x00020011, 6,                             // OpCapability Kernel
    0x0003000e, 2,          2,                 // OpMemoryModel Physical64 OpenCL
    0x0004000f, 6,          3, 0x00656e6f,     // OpEntryPoint Kernel %3 "one"
    0x00020013, 1,                             // %1 = OpTypeVoid
    0x00030021, 2,          1,                 // %2 = OpTypeFunction %1
    0x00050036, 1,          3, 0,          2,  // %3 = OpFunction %1 None %2
    0x000200f8, 4,                             // %4 = OpLabel
    0x000100fd,                                // OpReturn
    0x00010038,                                // OpFunctionEnd
};
cl_program create_from_module(Fixture& f, cl_int& error) {
  return clCreateProgramWithIL(f.context(), kModule.data(), sizeof kModule, &error);
}
cl_int program_with_il(Fixture& f) {
  if (!f.has_intermediate_language()) return kUnsupported;
  cl_int error = CL_SUCCESS;
  cl_program program = create_from_module(f, error);
  return dispose(error, clReleaseProgram, program);
}
cl_int specialization_constant(Fixture& f) {
  if (!f.has_intermediate_language()) return kUnsupported;
  cl_int error = CL_SUCCESS;
  cl_program program = create_from_module(f, error);
  if (error != CL_SUCCESS) return error;
  const cl_uint value = 1;
  const cl_int code = clSetProgramSpecializationConstant(program, 0, sizeof value, &value);
  clReleaseProgram(program);
  return code == CL_INVALID_SPEC_ID || code == CL_INVALID_OPERATION ? kUnsupported : code;
}
cl_int retain_and_release_program(Fixture& f) {
  XPU_CL(clRetainProgram(f.program()));
  return clReleaseProgram(f.program());
}
cl_int build_program(Fixture& f) {
  cl_program program = nullptr;
  XPU_CL(create_program(f, program));
  return dispose(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), clReleaseProgram, program);
}
cl_int compile_program(Fixture& f) {
  cl_program program = nullptr;
  XPU_CL(create_program(f, program));
  return dispose(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), clReleaseProgram, program);
}
cl_int link_program(Fixture& f) {
  cl_program program = nullptr;
  XPU_CL(create_program(f, program));
  XPU_CL(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr));
  cl_int error = CL_SUCCESS;
  cl_program linked = clLinkProgram(f.context(), 0, nullptr, "", 1, &program, nullptr, nullptr, &error);
  XPU_CL(clReleaseProgram(program));
  return dispose(error, clReleaseProgram, linked);
}
cl_int unload_compiler(Fixture&) { return clUnloadCompiler(); }
cl_int unload_platform_compiler(Fixture& f) { return clUnloadPlatformCompiler(f.platform()); }
cl_int program_callback(Fixture& f) {
  cl_program program = nullptr;
  XPU_CL(create_program(f, program));
  const cl_int code = clSetProgramReleaseCallback(program, ignore_program, nullptr);
  clReleaseProgram(program);
  return code == CL_INVALID_OPERATION ? kUnsupported : code;
}

cl_int create_kernel(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(f.program(), "empty", &error);
  return dispose(error, clReleaseKernel, kernel);
}
cl_int create_kernels(Fixture& f) {
  cl_uint count = 0;
  XPU_CL(clCreateKernelsInProgram(f.program(), 0, nullptr, &count));
  std::vector<cl_kernel> kernels(count);
  XPU_CL(clCreateKernelsInProgram(f.program(), count, kernels.data(), nullptr));
  for (cl_kernel kernel : kernels) XPU_CL(clReleaseKernel(kernel));
  return count == 4 ? CL_SUCCESS : CL_INVALID_KERNEL;
}
cl_int clone_kernel(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = clCloneKernel(f.kernel(), &error);
  if (kernel == nullptr) return error == CL_INVALID_OPERATION ? kUnsupported : error;
  return dispose(error, clReleaseKernel, kernel);
}
cl_int retain_and_release_kernel(Fixture& f) {
  XPU_CL(clRetainKernel(f.kernel()));
  return clReleaseKernel(f.kernel());
}
cl_int set_argument(Fixture& f) {
  const cl_int value = 1;
  return clSetKernelArg(f.kernel(), 1, sizeof value, &value);
}
cl_int set_svm_argument(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  return clSetKernelArgSVMPointer(f.kernel(), 0, f.svm());
}
cl_int set_exec_info(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  void* pointer = f.svm();
  const cl_int code = clSetKernelExecInfo(f.kernel(), CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointer, &pointer);
  return code == CL_INVALID_OPERATION ? kUnsupported : code;
}

cl_int user_event(Fixture& f) {
  cl_int error = CL_SUCCESS;
  cl_event event = clCreateUserEvent(f.context(), &error);
  if (error != CL_SUCCESS) return error;
  XPU_CL(clSetUserEventStatus(event, CL_COMPLETE));
  return clReleaseEvent(event);
}
cl_int retain_and_release_event(Fixture& f) {
  XPU_CL(clRetainEvent(f.event()));
  return clReleaseEvent(f.event());
}
cl_int event_callback(Fixture& f) {
  XPU_CL(clSetEventCallback(f.event(), CL_COMPLETE, ignore_event, nullptr));
  return clFinish(f.queue());
}

cl_int sub_devices(Fixture& f) {
  const cl_device_partition_property properties[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_uint count = 0;
  if (clCreateSubDevices(f.device(), properties, 0, nullptr, &count) != CL_SUCCESS || count == 0) return kUnsupported;
  std::vector<cl_device_id> parts(count);
  XPU_CL(clCreateSubDevices(f.device(), properties, count, parts.data(), nullptr));
  for (cl_device_id part : parts) XPU_CL(clReleaseDevice(part));
  return CL_SUCCESS;
}
cl_int retain_and_release_device(Fixture& f) {
  XPU_CL(clRetainDevice(f.device()));
  return clReleaseDevice(f.device());
}

constexpr EntryCall kCalls[] = {
    {"clCreateContext", create_context},
    {"clCreateContextFromType", create_context_from_type},
    {"clRetainContext", retain_and_release_context},
    {"clReleaseContext", retain_and_release_context},
    {"clSetContextDestructorCallback", context_callback},
    {"clCreateCommandQueue", create_queue},
    {"clCreateCommandQueueWithProperties", create_queue_with_properties},
    {"clRetainCommandQueue", retain_and_release_queue},
    {"clReleaseCommandQueue", retain_and_release_queue},
    {"clSetCommandQueueProperty", set_queue_property},
    {"clSetDefaultDeviceCommandQueue", set_default_queue},
    {"clCreateBuffer", create_buffer},
    {"clCreateBufferWithProperties", create_buffer_with_properties},
    {"clCreateSubBuffer", create_sub_buffer},
    {"clCreateImage", create_image},
    {"clCreateImageWithProperties", create_image_with_properties},
    {"clCreateImage2D", create_image_2d},
    {"clCreateImage3D", create_image_3d},
    {"clCreatePipe", create_pipe},
    {"clRetainMemObject", retain_and_release_memory},
    {"clReleaseMemObject", retain_and_release_memory},
    {"clSetMemObjectDestructorCallback", memory_callback},
    {"clSVMAlloc", svm_alloc_and_free},
    {"clSVMFree", svm_alloc_and_free},
    {"clCreateSampler", create_sampler},
    {"clCreateSamplerWithProperties", create_sampler_with_properties},
    {"clRetainSampler", retain_and_release_sampler},
    {"clReleaseSampler", retain_and_release_sampler},
    {"clCreateProgramWithSource", program_with_source},
    {"clCreateProgramWithBinary", program_with_binary},
    {"clCreateProgramWithBuiltInKernels", program_with_built_in_kernels},
    {"clCreateProgramWithIL", program_with_il},
    {"clSetProgramSpecializationConstant", specialization_constant},
    {"clRetainProgram", retain_and_release_program},
    {"clReleaseProgram", retain_and_release_program},
    {"clBuildProgram", build_program},
    {"clCompileProgram", compile_program},
    {"clLinkProgram", link_program},
    {"clUnloadCompiler", unload_compiler},
    {"clUnloadPlatformCompiler", unload_platform_compiler},
    {"clSetProgramReleaseCallback", program_callback},
    {"clCreateKernel", create_kernel},
    {"clCreateKernelsInProgram", create_kernels},
    {"clCloneKernel", clone_kernel},
    {"clRetainKernel", retain_and_release_kernel},
    {"clReleaseKernel", retain_and_release_kernel},
    {"clSetKernelArg", set_argument},
    {"clSetKernelArgSVMPointer", set_svm_argument},
    {"clSetKernelExecInfo", set_exec_info},
    {"clCreateUserEvent", user_event},
    {"clSetUserEventStatus", user_event},
    {"clRetainEvent", retain_and_release_event},
    {"clReleaseEvent", retain_and_release_event},
    {"clSetEventCallback", event_callback},
    {"clCreateSubDevices", sub_devices},
    {"clRetainDevice", retain_and_release_device},
    {"clReleaseDevice", retain_and_release_device},
};

}  // namespace

std::span<const EntryCall> object_calls() { return kCalls; }

}  // namespace xpu::opencl_programs::entries
