#include <cstring>

#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/queries.hpp"

namespace xpu::interceptors::opencl {
namespace {

Queue* queue_of_event(cl_event event) noexcept {
  return g_objects.queues.find(ask<cl_command_queue>(target().clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, nullptr));
}

bool holds(const Queue& queue, cl_event event) noexcept {
  for (CommandRing* ring = queue.rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    if (ring->holds(event)) return true;
  }
  return false;
}

}  // namespace

// While a command is pending we hold its event too, and a program may count.
cl_int Wrappers::clGetEventInfo(cl_event event, cl_event_info name, std::size_t room, void* value, std::size_t* bytes_ret) {
  Call call(Entry::clGetEventInfo);
  const cl_int result = target().clGetEventInfo(event, name, room, value, bytes_ret);
  if (name != CL_EVENT_REFERENCE_COUNT || result != CL_SUCCESS || value == nullptr || room < sizeof(cl_uint) || !is_tracking())
    return call.finish(result);
  const Queue* queue = queue_of_event(event);
  if (queue == nullptr || !holds(*queue, event)) return call.finish(result);
  cl_uint count = 0;
  std::memcpy(&count, value, sizeof count);
  if (count > 1) --count;
  std::memcpy(value, &count, sizeof count);
  return call.finish(result);
}

// A queue that the program did not ask to profile tells it nothing, whatever we switched on. Drivers look at that before they look at the
// rest.
cl_int Wrappers::clGetEventProfilingInfo(cl_event event, cl_profiling_info name, std::size_t room, void* value, std::size_t* bytes_ret) {
  Call call(Entry::clGetEventProfilingInfo);
  const Queue* queue = queue_of_event(event);
  const bool is_hidden =
      queue != nullptr && queue->is_timed.load(std::memory_order_relaxed) && !queue->program_profiles.load(std::memory_order_relaxed);
  if (is_hidden) return call.finish(CL_PROFILING_INFO_NOT_AVAILABLE);
  return call.finish(target().clGetEventProfilingInfo(event, name, room, value, bytes_ret));
}

}  // namespace xpu::interceptors::opencl
