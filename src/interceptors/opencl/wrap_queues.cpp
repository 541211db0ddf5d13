#include <algorithm>
#include <cstring>

#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/extensions.hpp"
#include "interceptors/opencl/lifecycle.hpp"
#include "interceptors/opencl/queue_properties.hpp"

namespace xpu::interceptors::opencl {
namespace {

using CreateFunction = cl_command_queue(CL_API_CALL*)(cl_context, cl_device_id, const cl_queue_properties*, cl_int*);

/// The program's queue with profiling switched on; without, when the driver refuses that: its commands are then untimed.
cl_command_queue create_queue(CreateFunction create, cl_context context, cl_device_id device, const cl_queue_properties* list,
                              cl_int* error) noexcept {
  const QueueProperties properties = edit_queue_properties(list);
  bool is_timed = (properties.program_properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  cl_command_queue queue = nullptr;
  if (properties.is_edited) {
    queue = create(context, device, properties.edited_list, error);
    is_timed = queue != nullptr;
  }
  if (queue == nullptr) queue = create(context, device, list, error);
  if (queue != nullptr) {
    queue_created(queue, context, device, properties, true, is_timed);
    queue_exists();
  }
  return queue;
}

/// The extension's own function where the driver has one; found when the program asks for it.
constinit std::atomic<CreateFunction> g_create_khr{nullptr};

cl_int answer(const void* data, std::size_t bytes, std::size_t room, void* value, std::size_t* bytes_ret) noexcept {
  if (value != nullptr && room < bytes) return CL_INVALID_VALUE;
  if (value != nullptr && bytes != 0) std::memcpy(value, data, bytes);
  if (bytes_ret != nullptr) *bytes_ret = bytes;
  return CL_SUCCESS;
}

}  // namespace

void set_create_queue_khr(void* function) noexcept {
  g_create_khr.store(reinterpret_cast<CreateFunction>(function), std::memory_order_release);
}

cl_command_queue Wrappers::clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                              const cl_queue_properties* properties, cl_int* error_ret) {
  Call call(Entry::clCreateCommandQueueWithProperties);
  cl_int error = CL_SUCCESS;
  const cl_command_queue queue = is_tracking()
                                     ? create_queue(target().clCreateCommandQueueWithProperties, context, device, properties, &error)
                                     : target().clCreateCommandQueueWithProperties(context, device, properties, &error);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(queue, error);
}

cl_command_queue Wrappers::clCreateCommandQueueWithPropertiesKHR(cl_context context, cl_device_id device,
                                                                 const cl_queue_properties_khr* properties, cl_int* error_ret) {
  Call call(Entry::clCreateCommandQueueWithPropertiesKHR);
  cl_int error = CL_SUCCESS;
  const CreateFunction create = g_create_khr.load(std::memory_order_acquire);
  const cl_command_queue queue =
      is_tracking() ? create_queue(create, context, device, properties, &error) : create(context, device, properties, &error);
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(queue, error);
}

cl_command_queue Wrappers::clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                                cl_int* error_ret) {
  Call call(Entry::clCreateCommandQueue);
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = nullptr;
  if (is_tracking()) {
    queue = target().clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, &error);
    bool is_timed = queue != nullptr;
    if (queue == nullptr) {
      queue = target().clCreateCommandQueue(context, device, properties, &error);
      is_timed = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    }
    if (queue != nullptr) {
      QueueProperties as_given;
      as_given.program_properties = properties;
      queue_created(queue, context, device, as_given, false, is_timed);
      queue_exists();
    }
  } else {
    queue = target().clCreateCommandQueue(context, device, properties, &error);
  }
  if (error_ret != nullptr) *error_ret = error;
  return call.finish(queue, error);
}

cl_int Wrappers::clRetainCommandQueue(cl_command_queue queue) {
  Call call(Entry::clRetainCommandQueue);
  const cl_int result = target().clRetainCommandQueue(queue);
  if (result == CL_SUCCESS && is_tracking()) g_objects.queues.retain(queue);
  return call.finish(result);
}

cl_int Wrappers::clReleaseCommandQueue(cl_command_queue queue) {
  Call call(Entry::clReleaseCommandQueue);
  if (is_tracking()) queue_released(queue);
  return call.finish(target().clReleaseCommandQueue(queue));
}

// What the driver says of a queue that we edited is what we made of it. Its list is longer than the program's, so the driver must not write
// it where the program has room for its own.
cl_int Wrappers::clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info name, std::size_t room, void* value,
                                       std::size_t* bytes_ret) {
  Call call(Entry::clGetCommandQueueInfo);
  const bool is_about_properties = name == CL_QUEUE_PROPERTIES || name == CL_QUEUE_PROPERTIES_ARRAY;
  const Queue* queue = is_about_properties ? g_objects.queues.find(handle) : nullptr;
  const bool is_edited =
      queue != nullptr && queue->is_timed.load(std::memory_order_relaxed) && !queue->program_profiles.load(std::memory_order_relaxed);
  if (!is_edited) return call.finish(target().clGetCommandQueueInfo(handle, name, room, value, bytes_ret));

  if (name == CL_QUEUE_PROPERTIES) {
    const cl_int result = target().clGetCommandQueueInfo(handle, name, room, value, bytes_ret);
    if (result == CL_SUCCESS && value != nullptr && room >= sizeof(cl_command_queue_properties)) {
      cl_command_queue_properties properties = 0;
      std::memcpy(&properties, value, sizeof properties);
      properties &= ~static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE);
      std::memcpy(value, &properties, sizeof properties);
    }
    return call.finish(result);
  }
  // Drivers before 3.0 do not know the list, and a queue of clCreateCommandQueue has none.
  std::size_t drivers_bytes = 0;
  const bool is_known = queue->has_list && target().clGetCommandQueueInfo(handle, name, 0, nullptr, &drivers_bytes) == CL_SUCCESS;
  if (!is_known) return call.finish(target().clGetCommandQueueInfo(handle, name, room, value, bytes_ret));
  const QueueProperties& properties = queue->properties;
  return call.finish(answer(properties.program_list, properties.program_entries * sizeof(cl_queue_properties), room, value, bytes_ret));
}

// OpenCL 1.0: may switch profiling off behind our back.
cl_int Wrappers::clSetCommandQueueProperty(cl_command_queue handle, cl_command_queue_properties properties, cl_bool enable,
                                           cl_command_queue_properties* old_ret) {
  Call call(Entry::clSetCommandQueueProperty);
  Queue* queue = is_tracking() ? g_objects.queues.find(handle) : nullptr;
  if (queue == nullptr) return call.finish(target().clSetCommandQueueProperty(handle, properties, enable, old_ret));

  const bool is_about_profiling = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  const bool stays_on = is_about_profiling && enable == CL_FALSE && queue->is_timed.load(std::memory_order_relaxed);
  cl_command_queue_properties old = 0;
  cl_int result = CL_SUCCESS;
  const cl_command_queue_properties rest = properties & ~static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE);
  if (!stays_on) {
    result = target().clSetCommandQueueProperty(handle, properties, enable, &old);
  } else {
    // Asked for what is so already, the driver says whether it has this call at all.
    result = target().clSetCommandQueueProperty(handle, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, &old);
    if (result == CL_SUCCESS && rest != 0) {
      cl_command_queue_properties ignored = 0;
      result = target().clSetCommandQueueProperty(handle, rest, enable, &ignored);
    }
  }
  if (result != CL_SUCCESS) return call.finish(result);

  if (old_ret != nullptr) {
    *old_ret = old;
    if (!queue->program_profiles.load(std::memory_order_relaxed))
      *old_ret &= ~static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE);
  }
  if (is_about_profiling) {
    queue->program_profiles.store(enable != CL_FALSE, std::memory_order_relaxed);
    if (enable != CL_FALSE) queue->is_timed.store(true, std::memory_order_relaxed);
  }
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
    queue->is_out_of_order.store(enable != CL_FALSE, std::memory_order_relaxed);
  return call.finish(result);
}

}  // namespace xpu::interceptors::opencl
