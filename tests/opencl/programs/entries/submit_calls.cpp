#include <array>

#include "programs/entries/registry.hpp"

namespace xpu::opencl_programs::entries {
namespace {

constexpr std::size_t kOrigin[3] = {0, 0, 0};
constexpr std::size_t kRegion[3] = {8, 8, 1};

char* host_bytes() {
  static std::array<char, 4096> bytes{};
  return bytes.data();
}

void CL_CALLBACK native_function(void* arguments) { ++**static_cast<int**>(arguments); }

cl_int read_buffer(Fixture& f) {
  return f.submitted(clEnqueueReadBuffer(f.queue(), f.buffer(), CL_TRUE, 0, 64, host_bytes(), 0, nullptr, nullptr));
}
cl_int write_buffer(Fixture& f) {
  return f.submitted(clEnqueueWriteBuffer(f.queue(), f.buffer(), CL_TRUE, 0, 64, host_bytes(), 0, nullptr, nullptr));
}
cl_int copy_buffer(Fixture& f) {
  return f.submitted(clEnqueueCopyBuffer(f.queue(), f.buffer(), f.other_buffer(), 0, 64, 128, 0, nullptr, nullptr));
}
cl_int read_buffer_rect(Fixture& f) {
  return f.submitted(
      clEnqueueReadBufferRect(f.queue(), f.buffer(), CL_TRUE, kOrigin, kOrigin, kRegion, 16, 0, 32, 0, host_bytes(), 0, nullptr, nullptr));
}
cl_int write_buffer_rect(Fixture& f) {
  return f.submitted(
      clEnqueueWriteBufferRect(f.queue(), f.buffer(), CL_TRUE, kOrigin, kOrigin, kRegion, 16, 0, 32, 0, host_bytes(), 0, nullptr, nullptr));
}
cl_int copy_buffer_rect(Fixture& f) {
  return f.submitted(
      clEnqueueCopyBufferRect(f.queue(), f.buffer(), f.other_buffer(), kOrigin, kOrigin, kRegion, 16, 0, 32, 0, 0, nullptr, nullptr));
}
cl_int fill_buffer(Fixture& f) {
  const cl_uint pattern = 7;
  return f.submitted(clEnqueueFillBuffer(f.queue(), f.buffer(), &pattern, sizeof pattern, 0, 64, 0, nullptr, nullptr));
}

cl_int read_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  return f.submitted(clEnqueueReadImage(f.queue(), f.image(), CL_TRUE, kOrigin, kRegion, 0, 0, host_bytes(), 0, nullptr, nullptr));
}
cl_int write_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  return f.submitted(clEnqueueWriteImage(f.queue(), f.image(), CL_TRUE, kOrigin, kRegion, 0, 0, host_bytes(), 0, nullptr, nullptr));
}
cl_int copy_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  constexpr std::size_t kOther[3] = {8, 8, 0};
  return f.submitted(clEnqueueCopyImage(f.queue(), f.image(), f.image(), kOrigin, kOther, kRegion, 0, nullptr, nullptr));
}
cl_int copy_image_to_buffer(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  return f.submitted(clEnqueueCopyImageToBuffer(f.queue(), f.image(), f.buffer(), kOrigin, kRegion, 0, 0, nullptr, nullptr));
}
cl_int copy_buffer_to_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  return f.submitted(clEnqueueCopyBufferToImage(f.queue(), f.buffer(), f.image(), 0, kOrigin, kRegion, 0, nullptr, nullptr));
}
cl_int fill_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  const cl_uint color[4] = {1, 2, 3, 4};
  return f.submitted(clEnqueueFillImage(f.queue(), f.image(), color, kOrigin, kRegion, 0, nullptr, nullptr));
}

cl_int unmap(Fixture& f, cl_mem memory, void* pointer) {
  return f.submitted(clEnqueueUnmapMemObject(f.queue(), memory, pointer, 0, nullptr, nullptr));
}
/// Maps and unmaps: a map alone is an incomplete program.
cl_int map_buffer(Fixture& f) {
  cl_int error = CL_SUCCESS;
  void* pointer = clEnqueueMapBuffer(f.queue(), f.buffer(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 64, 0, nullptr, nullptr, &error);
  if (f.submitted(error) != CL_SUCCESS) return error;
  *static_cast<char*>(pointer) = 1;
  return unmap(f, f.buffer(), pointer);
}
cl_int map_image(Fixture& f) {
  if (!f.has_images()) return kUnsupported;
  cl_int error = CL_SUCCESS;
  std::size_t row_pitch = 0;
  void* pointer = clEnqueueMapImage(f.queue(), f.image(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, kOrigin, kRegion, &row_pitch, nullptr, 0,
                                    nullptr, nullptr, &error);
  if (f.submitted(error) != CL_SUCCESS) return error;
  *static_cast<char*>(pointer) = 1;
  return unmap(f, f.image(), pointer);
}

cl_int nd_range(Fixture& f) {
  const std::size_t offset[3] = {0, 0, 0};
  const std::size_t global[3] = {4, 2, 2};
  const std::size_t local[3] = {2, 1, 1};
  return f.submitted(clEnqueueNDRangeKernel(f.queue(), f.kernel(), 3, offset, global, local, 0, nullptr, nullptr));
}
cl_int task(Fixture& f) { return f.submitted(clEnqueueTask(f.queue(), f.kernel(), 0, nullptr, nullptr)); }
cl_int native_kernel(Fixture& f) {
  if (!f.has_native_kernels()) return kUnsupported;
  static int calls = 0;
  int* arguments = &calls;
  const cl_int code = f.submitted(
      clEnqueueNativeKernel(f.queue(), native_function, &arguments, sizeof arguments, 0, nullptr, nullptr, 0, nullptr, nullptr));
  if (code != CL_SUCCESS) return code;
  XPU_CL(clFinish(f.queue()));
  return calls > 0 ? CL_SUCCESS : CL_INVALID_KERNEL;
}
cl_int marker(Fixture& f) {
  cl_event event = nullptr;
  const cl_int code = f.submitted(clEnqueueMarker(f.queue(), &event));
  return code != CL_SUCCESS ? code : clReleaseEvent(event);
}
cl_int wait_for_events(Fixture& f) {
  if (f.driver_dies_of_rare_calls()) return kUnsupported;
  cl_event event = f.event();
  return f.submitted(clEnqueueWaitForEvents(f.queue(), 1, &event));
}
cl_int barrier(Fixture& f) { return f.submitted(clEnqueueBarrier(f.queue())); }
cl_int marker_with_list(Fixture& f) {
  cl_event event = f.event();
  return f.submitted(clEnqueueMarkerWithWaitList(f.queue(), 1, &event, nullptr));
}
cl_int barrier_with_list(Fixture& f) { return f.submitted(clEnqueueBarrierWithWaitList(f.queue(), 0, nullptr, nullptr)); }
cl_int migrate(Fixture& f) {
  cl_mem memory = f.buffer();
  return f.submitted(clEnqueueMigrateMemObjects(f.queue(), 1, &memory, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr));
}

cl_int svm_free(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  void* pointer = clSVMAlloc(f.context(), CL_MEM_READ_WRITE, 256, 0);
  if (pointer == nullptr) return CL_OUT_OF_RESOURCES;
  return f.submitted(clEnqueueSVMFree(f.queue(), 1, &pointer, nullptr, nullptr, 0, nullptr, nullptr));
}
cl_int svm_memcpy(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  return f.submitted(clEnqueueSVMMemcpy(f.queue(), CL_TRUE, f.svm(), host_bytes(), 64, 0, nullptr, nullptr));
}
cl_int svm_fill(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  const cl_uint pattern = 7;
  return f.submitted(clEnqueueSVMMemFill(f.queue(), f.svm(), &pattern, sizeof pattern, 64, 0, nullptr, nullptr));
}
cl_int svm_map(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  const cl_int code = f.submitted(clEnqueueSVMMap(f.queue(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, f.svm(), 64, 0, nullptr, nullptr));
  if (code != CL_SUCCESS) return code;
  return f.submitted(clEnqueueSVMUnmap(f.queue(), f.svm(), 0, nullptr, nullptr));
}
cl_int svm_migrate(Fixture& f) {
  if (!f.has_svm()) return kUnsupported;
  const void* pointer = f.svm();
  const std::size_t bytes = 0;
  return f.submitted(clEnqueueSVMMigrateMem(f.queue(), 1, &pointer, &bytes, 0, 0, nullptr, nullptr));
}

constexpr EntryCall kCalls[] = {
    {"clEnqueueReadBuffer", read_buffer},
    {"clEnqueueWriteBuffer", write_buffer},
    {"clEnqueueCopyBuffer", copy_buffer},
    {"clEnqueueReadBufferRect", read_buffer_rect},
    {"clEnqueueWriteBufferRect", write_buffer_rect},
    {"clEnqueueCopyBufferRect", copy_buffer_rect},
    {"clEnqueueFillBuffer", fill_buffer},
    {"clEnqueueReadImage", read_image},
    {"clEnqueueWriteImage", write_image},
    {"clEnqueueCopyImage", copy_image},
    {"clEnqueueCopyImageToBuffer", copy_image_to_buffer},
    {"clEnqueueCopyBufferToImage", copy_buffer_to_image},
    {"clEnqueueFillImage", fill_image},
    {"clEnqueueMapBuffer", map_buffer},
    {"clEnqueueMapImage", map_image},
    {"clEnqueueUnmapMemObject", map_buffer},
    {"clEnqueueNDRangeKernel", nd_range},
    {"clEnqueueTask", task},
    {"clEnqueueNativeKernel", native_kernel},
    {"clEnqueueMarker", marker},
    {"clEnqueueWaitForEvents", wait_for_events},
    {"clEnqueueBarrier", barrier},
    {"clEnqueueMarkerWithWaitList", marker_with_list},
    {"clEnqueueBarrierWithWaitList", barrier_with_list},
    {"clEnqueueMigrateMemObjects", migrate},
    {"clEnqueueSVMFree", svm_free},
    {"clEnqueueSVMMemcpy", svm_memcpy},
    {"clEnqueueSVMMemFill", svm_fill},
    {"clEnqueueSVMMap", svm_map},
    {"clEnqueueSVMUnmap", svm_map},
    {"clEnqueueSVMMigrateMem", svm_migrate},
};

}  // namespace

std::span<const EntryCall> submit_calls() { return kCalls; }

}  // namespace xpu::opencl_programs::entries
