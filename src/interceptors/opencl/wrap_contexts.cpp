#include "interceptors/opencl/command.hpp"

namespace xpu::interceptors::opencl {

cl_context Wrappers::clCreateContext(const cl_context_properties* properties, cl_uint device_count, const cl_device_id* devices,
                                     void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* user_data,
                                     cl_int* error_ret) {
  Call call(Entry::clCreateContext);
  cl_int error = CL_SUCCESS;
  const cl_context context = target().clCreateContext(properties, device_count, devices, notify, user_data, &error);
  if (context != nullptr && is_tracking()) context_created(context);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(context, error);
}

cl_context Wrappers::clCreateContextFromType(const cl_context_properties* properties, cl_device_type type,
                                             void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* user_data,
                                             cl_int* error_ret) {
  Call call(Entry::clCreateContextFromType);
  cl_int error = CL_SUCCESS;
  const cl_context context = target().clCreateContextFromType(properties, type, notify, user_data, &error);
  if (context != nullptr && is_tracking()) context_created(context);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(context, error);
}

cl_int Wrappers::clRetainContext(cl_context context) {
  Call call(Entry::clRetainContext);
  const cl_int result = target().clRetainContext(context);
  if (result == CL_SUCCESS && is_tracking()) g_objects.contexts.retain(context);
  return call.finish(result);
}

cl_int Wrappers::clReleaseContext(cl_context context) {
  Call call(Entry::clReleaseContext);
  if (is_tracking()) context_released(context);
  return call.finish(target().clReleaseContext(context));
}

cl_int Wrappers::clRetainDevice(cl_device_id device) {
  Call call(Entry::clRetainDevice);
  const cl_int result = target().clRetainDevice(device);
  if (result == CL_SUCCESS && is_tracking()) g_objects.devices.retain(device);
  return call.finish(result);
}

cl_int Wrappers::clReleaseDevice(cl_device_id device) {
  Call call(Entry::clReleaseDevice);
  if (is_tracking()) device_released(device);
  return call.finish(target().clReleaseDevice(device));
}

cl_int Wrappers::clRetainDeviceEXT(cl_device_id device) {
  Call call(Entry::clRetainDeviceEXT);
  const cl_int result = target().clRetainDeviceEXT(device);
  if (result == CL_SUCCESS && is_tracking()) g_objects.devices.retain(device);
  return call.finish(result);
}

cl_int Wrappers::clReleaseDeviceEXT(cl_device_id device) {
  Call call(Entry::clReleaseDeviceEXT);
  if (is_tracking()) device_released(device);
  return call.finish(target().clReleaseDeviceEXT(device));
}

}  // namespace xpu::interceptors::opencl
