#include <algorithm>

#include "null_driver/api.hpp"
#include "null_driver/platforms.hpp"

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;

namespace xpu::null_driver {
namespace {

cl_int check_properties(const cl_context_properties* properties, cl_platform_id& platform) {
  for (const auto* next = properties; next != nullptr && next[0] != 0; next += 2) {
    if (next[0] == CL_CONTEXT_PLATFORM) {
      platform = reinterpret_cast<cl_platform_id>(next[1]);
      if (!is_valid(platform)) return CL_INVALID_PLATFORM;
    } else if (next[0] != CL_CONTEXT_INTEROP_USER_SYNC) {
      return CL_INVALID_PROPERTY;
    }
  }
  return CL_SUCCESS;
}

cl_context create_context(const cl_context_properties* properties, const cl_device_id* devices, std::size_t count) {
  auto* context = new _cl_context;
  context->properties = copy_properties(properties);
  for (std::size_t i = 0; i < count; ++i) context->devices.push_back(keep(devices[i]));
  return context;
}

}  // namespace

bool contains_device(cl_context context, cl_device_id device) noexcept {
  return std::find(context->devices.begin(), context->devices.end(), device) != context->devices.end();
}

void destroy(cl_context context) {
  for (auto callback = context->callbacks.rbegin(); callback != context->callbacks.rend(); ++callback) {
    callback->function(context, callback->user_data);
  }
  for (cl_device_id device : context->devices) let_go(device);
  delete context;
}

}  // namespace xpu::null_driver

cl_context Api::clCreateContext(const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
                                void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* user_data, cl_int* error) {
  cl_platform_id platform = nullptr;
  if (const cl_int code = xpu::null_driver::check_properties(properties, platform); code != CL_SUCCESS) return refuse(error, code);
  if (devices == nullptr || count == 0 || (notify == nullptr && user_data != nullptr)) return refuse(error, CL_INVALID_VALUE);
  for (cl_uint i = 0; i < count; ++i) {
    if (!is_valid(devices[i]) || devices[i]->platform != devices[0]->platform) return refuse(error, CL_INVALID_DEVICE);
    if (platform != nullptr && devices[i]->platform != platform) return refuse(error, CL_INVALID_DEVICE);
  }
  return xpu::null_driver::created(error, xpu::null_driver::create_context(properties, devices, count));
}

cl_context Api::clCreateContextFromType(const cl_context_properties* properties, cl_device_type type,
                                        void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* user_data,
                                        cl_int* error) {
  cl_platform_id platform = nullptr;
  if (const cl_int code = xpu::null_driver::check_properties(properties, platform); code != CL_SUCCESS) return refuse(error, code);
  if (notify == nullptr && user_data != nullptr) return refuse(error, CL_INVALID_VALUE);
  if (platform == nullptr) platform = xpu::null_driver::platforms().front();
  std::vector<cl_device_id> devices(platform->devices.size());
  cl_uint count = 0;
  const cl_int code = clGetDeviceIDs(platform, type, static_cast<cl_uint>(devices.size()), devices.data(), &count);
  if (code != CL_SUCCESS) return refuse(error, code);
  return xpu::null_driver::created(error, xpu::null_driver::create_context(properties, devices.data(), count));
}

cl_int Api::clRetainContext(cl_context context) {
  if (!is_valid(context)) return CL_INVALID_CONTEXT;
  xpu::null_driver::retain(context);
  return CL_SUCCESS;
}

cl_int Api::clReleaseContext(cl_context context) {
  if (!is_valid(context)) return CL_INVALID_CONTEXT;
  xpu::null_driver::release(context);
  return CL_SUCCESS;
}

cl_int Api::clGetContextInfo(cl_context context, cl_context_info query, std::size_t room, void* value, std::size_t* size_ret) {
  using xpu::null_driver::answer;
  if (!is_valid(context)) return CL_INVALID_CONTEXT;
  switch (query) {
    case CL_CONTEXT_REFERENCE_COUNT: return answer<cl_uint>(context->reference_count(), room, value, size_ret);
    case CL_CONTEXT_NUM_DEVICES: return answer<cl_uint>(static_cast<cl_uint>(context->devices.size()), room, value, size_ret);
    case CL_CONTEXT_DEVICES: return xpu::null_driver::answer_list(context->devices, room, value, size_ret);
    case CL_CONTEXT_PROPERTIES: return xpu::null_driver::answer_list(context->properties, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clSetContextDestructorCallback(cl_context context, void(CL_CALLBACK* function)(cl_context, void*), void* user_data) {
  if (!is_valid(context)) return CL_INVALID_CONTEXT;
  if (function == nullptr) return CL_INVALID_VALUE;
  context->lock.lock();
  context->callbacks.push_back({function, user_data});
  context->lock.unlock();
  return CL_SUCCESS;
}
