#include "null_driver/api.hpp"
#include "null_driver/platforms.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;
using xpu::null_driver::settings;

namespace xpu::null_driver {
namespace {

struct QueueRequest {
  cl_command_queue_properties properties = 0;
  cl_uint size = 0;
};

/// Reads a list pair by pair: a value may be equal to a key.
cl_int read_properties(const cl_queue_properties* list, QueueRequest& request) {
  bool has_properties = false;
  bool has_size = false;
  for (const auto* next = list; next != nullptr && next[0] != 0; next += 2) {
    switch (next[0]) {
      case CL_QUEUE_PROPERTIES:
        if (has_properties) return CL_INVALID_VALUE;
        has_properties = true;
        request.properties = next[1];
        break;
      case CL_QUEUE_SIZE:
        if (has_size) return CL_INVALID_VALUE;
        has_size = true;
        request.size = static_cast<cl_uint>(next[1]);
        break;
      case CL_QUEUE_PRIORITY_KHR:
      case CL_QUEUE_THROTTLE_KHR:
        if (next[1] == 0 || next[1] > 4) return CL_INVALID_VALUE;
        break;
      default: return CL_INVALID_VALUE;
    }
  }
  if ((request.properties & ~kDeviceQueueProperties) != 0) return CL_INVALID_VALUE;
  const bool on_device = (request.properties & CL_QUEUE_ON_DEVICE) != 0;
  if (on_device && (request.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) return CL_INVALID_VALUE;
  if (!on_device && ((request.properties & CL_QUEUE_ON_DEVICE_DEFAULT) != 0 || has_size)) return CL_INVALID_VALUE;
  if (request.size > kMaxDeviceQueueBytes) return CL_INVALID_QUEUE_PROPERTIES;
  if (on_device && request.size == 0) request.size = 16 << 10;
  return CL_SUCCESS;
}

cl_command_queue create_queue(cl_context context, cl_device_id device, const QueueRequest& request, const cl_queue_properties* list,
                              cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (!is_valid(device) || !contains_device(context, device)) return refuse(error, CL_INVALID_DEVICE);
  if (settings.faults.refuse_profiling_queues && (request.properties & CL_QUEUE_PROFILING_ENABLE) != 0) {
    return refuse(error, CL_INVALID_QUEUE_PROPERTIES);
  }
  auto* queue = new _cl_command_queue;
  queue->context = keep(context);
  queue->device = keep(device);
  queue->properties.store(request.properties, std::memory_order_relaxed);
  queue->properties_array = copy_properties(list);
  queue->device_queue_size = request.size;
  if ((request.properties & CL_QUEUE_ON_DEVICE_DEFAULT) != 0) device->default_queue.store(queue, std::memory_order_relaxed);
  return created(error, queue);
}

}  // namespace

void destroy(cl_command_queue queue) {
  cl_command_queue expected = queue;
  queue->device->default_queue.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
  let_go(queue->device);
  let_go(queue->context);
  delete queue;
}

}  // namespace xpu::null_driver

cl_command_queue Api::clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* error) {
  if ((properties & ~xpu::null_driver::kHostQueueProperties) != 0) return refuse(error, CL_INVALID_VALUE);
  return xpu::null_driver::create_queue(context, device, {properties, 0}, nullptr, error);
}

cl_command_queue Api::clCreateCommandQueueWithProperties(cl_context context, cl_device_id device, const cl_queue_properties* list,
                                                         cl_int* error) {
  xpu::null_driver::QueueRequest request;
  if (const cl_int code = xpu::null_driver::read_properties(list, request); code != CL_SUCCESS) return refuse(error, code);
  return xpu::null_driver::create_queue(context, device, request, list, error);
}

cl_int Api::clSetDefaultDeviceCommandQueue(cl_context context, cl_device_id device, cl_command_queue queue) {
  if (!is_valid(context)) return CL_INVALID_CONTEXT;
  if (!is_valid(device) || !xpu::null_driver::contains_device(context, device)) return CL_INVALID_DEVICE;
  if (!is_valid(queue) || queue->device_queue_size == 0) return CL_INVALID_COMMAND_QUEUE;
  device->default_queue.store(queue, std::memory_order_relaxed);
  return CL_SUCCESS;
}

cl_int Api::clRetainCommandQueue(cl_command_queue queue) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  xpu::null_driver::retain(queue);
  return CL_SUCCESS;
}

cl_int Api::clReleaseCommandQueue(cl_command_queue queue) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  xpu::null_driver::release(queue);
  return CL_SUCCESS;
}

cl_int Api::clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info query, std::size_t room, void* value,
                                  std::size_t* size_ret) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  switch (query) {
    case CL_QUEUE_CONTEXT: return answer<cl_context>(queue->context, room, value, size_ret);
    case CL_QUEUE_DEVICE: return answer<cl_device_id>(queue->device, room, value, size_ret);
    case CL_QUEUE_REFERENCE_COUNT: return answer<cl_uint>(queue->reference_count(), room, value, size_ret);
    case CL_QUEUE_PROPERTIES:
      return answer<cl_command_queue_properties>(queue->properties.load(std::memory_order_relaxed), room, value, size_ret);
    case CL_QUEUE_PROPERTIES_ARRAY: return xpu::null_driver::answer_list(queue->properties_array, room, value, size_ret);
    case CL_QUEUE_SIZE:
      if (queue->device_queue_size == 0) return CL_INVALID_COMMAND_QUEUE;
      return answer<cl_uint>(queue->device_queue_size, room, value, size_ret);
    case CL_QUEUE_DEVICE_DEFAULT:
      return answer<cl_command_queue>(queue->device->default_queue.load(std::memory_order_relaxed), room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clSetCommandQueueProperty(cl_command_queue queue, cl_command_queue_properties properties, cl_bool enable,
                                      cl_command_queue_properties* old_properties) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if ((properties & ~xpu::null_driver::kHostQueueProperties) != 0) return CL_INVALID_VALUE;
  xpu::null_driver::wait_for(queue);  // the call is defined to wait before the order of execution changes
  const cl_command_queue_properties before = enable != CL_FALSE ? queue->properties.fetch_or(properties, std::memory_order_relaxed)
                                                                : queue->properties.fetch_and(~properties, std::memory_order_relaxed);
  if (old_properties != nullptr) *old_properties = before;
  return CL_SUCCESS;
}

cl_int Api::clFlush(cl_command_queue queue) { return is_valid(queue) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE; }

cl_int Api::clFinish(cl_command_queue queue) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  xpu::null_driver::wait_for(queue);
  return CL_SUCCESS;
}
