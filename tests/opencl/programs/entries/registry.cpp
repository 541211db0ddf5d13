#include "programs/entries/registry.hpp"

#include <algorithm>

namespace xpu::opencl_programs::entries {
namespace {

constexpr EntryName kNames[] = {
#define XPU_CL_ENTRY(name) {#name, false},
#define XPU_CL_SUBMIT(name) {#name, true},
#include "core_entries.inc"
};

}  // namespace

std::span<const EntryName> entry_names() { return kNames; }

const EntryCall* find_call(std::string_view name) {
  for (const auto calls : {object_calls(), query_calls(), submit_calls()}) {
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const EntryCall& call) { return call.name == name; });
    if (found != calls.end()) return &*found;
  }
  return nullptr;
}

cl_platform_id Fixture::platform() {
  if (platform_ == nullptr) platform_ = pick_platform();
  return platform_;
}

cl_device_id Fixture::device() {
  if (device_ == nullptr) XPU_CL(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 1, &device_, nullptr));
  return device_;
}

cl_context Fixture::context() {
  if (context_ == nullptr) {
    cl_device_id chosen = device();
    cl_int error = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &chosen, nullptr, nullptr, &error);
    check(error, "clCreateContext");
  }
  return context_;
}

cl_command_queue Fixture::queue() {
  if (queue_ == nullptr) {
    cl_int error = CL_SUCCESS;
    queue_ = clCreateCommandQueueWithProperties(context(), device(), nullptr, &error);
    check(error, "clCreateCommandQueueWithProperties");
  }
  return queue_;
}

cl_program Fixture::program() {
  if (program_ == nullptr) {
    cl_int error = CL_SUCCESS;
    const char* source = kKernelSource;
    program_ = clCreateProgramWithSource(context(), 1, &source, nullptr, &error);
    check(error, "clCreateProgramWithSource");
    // Argument names are kept only on request.
    XPU_CL(clBuildProgram(program_, 0, nullptr, "-cl-kernel-arg-info", nullptr, nullptr));
  }
  return program_;
}

cl_kernel Fixture::kernel() {
  if (kernel_ == nullptr) {
    cl_int error = CL_SUCCESS;
    kernel_ = clCreateKernel(program(), "tiny", &error);
    check(error, "clCreateKernel");
    cl_mem data = buffer();
    const cl_int value = 7;
    XPU_CL(clSetKernelArg(kernel_, 0, sizeof data, &data));
    XPU_CL(clSetKernelArg(kernel_, 1, sizeof value, &value));
  }
  return kernel_;
}

namespace {

cl_mem create_buffer(cl_context context) {
  cl_int error = CL_SUCCESS;
  cl_mem created = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, nullptr, &error);
  check(error, "clCreateBuffer");
  return created;
}

}  // namespace

cl_mem Fixture::buffer() {
  if (buffer_ == nullptr) buffer_ = create_buffer(context());
  return buffer_;
}

cl_mem Fixture::other_buffer() {
  if (other_buffer_ == nullptr) other_buffer_ = create_buffer(context());
  return other_buffer_;
}

cl_mem Fixture::image() {
  if (image_ == nullptr) {
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = 16;
    description.image_height = 16;
    cl_int error = CL_SUCCESS;
    image_ = clCreateImage(context(), CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
    check(error, "clCreateImage");
  }
  return image_;
}

Fixture::~Fixture() {
  if (event_ != nullptr) clReleaseEvent(event_);
  if (queue_ != nullptr) clFinish(queue_);
  if (svm_ != nullptr) clSVMFree(context_, svm_);
  if (sampler_ != nullptr) clReleaseSampler(sampler_);
  for (cl_mem memory : {buffer_, other_buffer_, image_}) {
    if (memory != nullptr) clReleaseMemObject(memory);
  }
  if (kernel_ != nullptr) clReleaseKernel(kernel_);
  if (program_ != nullptr) clReleaseProgram(program_);
  if (queue_ != nullptr) clReleaseCommandQueue(queue_);
  if (context_ != nullptr) clReleaseContext(context_);
}

cl_sampler Fixture::sampler() {
  if (sampler_ == nullptr) {
    cl_int error = CL_SUCCESS;
    const cl_sampler_properties properties[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, 0};  // PoCL 3.1 refuses a null list
    sampler_ = clCreateSamplerWithProperties(context(), properties, &error);
    check(error, "clCreateSamplerWithProperties");
  }
  return sampler_;
}

cl_event Fixture::event() {
  if (event_ == nullptr) XPU_CL(submitted(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event_)));
  return event_;
}

void* Fixture::svm() {
  if (svm_ == nullptr) svm_ = clSVMAlloc(context(), CL_MEM_READ_WRITE, 4096, 0);
  return svm_;
}

bool Fixture::has_images() {
  cl_bool support = CL_FALSE;
  return clGetDeviceInfo(device(), CL_DEVICE_IMAGE_SUPPORT, sizeof support, &support, nullptr) == CL_SUCCESS && support != CL_FALSE;
}

bool Fixture::has_svm() {
  cl_device_svm_capabilities capabilities = 0;
  return clGetDeviceInfo(device(), CL_DEVICE_SVM_CAPABILITIES, sizeof capabilities, &capabilities, nullptr) == CL_SUCCESS &&
         capabilities != 0;
}

bool Fixture::has_native_kernels() {
  cl_device_exec_capabilities capabilities = 0;
  return clGetDeviceInfo(device(), CL_DEVICE_EXECUTION_CAPABILITIES, sizeof capabilities, &capabilities, nullptr) == CL_SUCCESS &&
         (capabilities & CL_EXEC_NATIVE_KERNEL) != 0;
}

std::size_t Fixture::device_text_bytes(cl_device_info query) {
  std::size_t bytes = 0;
  return clGetDeviceInfo(device(), query, 0, nullptr, &bytes) == CL_SUCCESS ? bytes : 0;
}

bool Fixture::has_intermediate_language() { return device_text_bytes(CL_DEVICE_IL_VERSION) > 1; }

bool Fixture::has_timer() {
  cl_ulong resolution_ns = 0;
  return clGetPlatformInfo(platform(), CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof resolution_ns, &resolution_ns, nullptr) == CL_SUCCESS &&
         resolution_ns != 0;
}

bool Fixture::driver_dies_of_rare_calls() {
  char name[64] = {};
  return clGetPlatformInfo(platform(), CL_PLATFORM_NAME, sizeof name, name, nullptr) == CL_SUCCESS &&
         std::string_view(name) == "Portable Computing Language";
}

}  // namespace xpu::opencl_programs::entries
