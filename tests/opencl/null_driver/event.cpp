#include "null_driver/api.hpp"
#include "null_driver/call_counts.hpp"
#include "null_driver/callbacks.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;
using xpu::null_driver::settings;

namespace xpu::null_driver {
namespace {

/// Events that this thread destroyed, linked through their first bytes.
struct EventPool {
  static constexpr std::size_t kMost = 1024;
  void* first;
  std::size_t count;
};
constinit thread_local EventPool t_pool __attribute__((tls_model("initial-exec"))) = {nullptr, 0};

/// Gives a thread's pool back to the heap when it ends. Apart from the pool, whose use then needs no check for it.
struct PoolEnd {
  ~PoolEnd() {
    while (t_pool.first != nullptr) {
      void* next = *static_cast<void**>(t_pool.first);
      ::operator delete(t_pool.first);
      t_pool.first = next;
    }
    t_pool.count = EventPool::kMost;  // what is destroyed later on this thread goes straight to the heap
  }
};
thread_local PoolEnd t_pool_end;

}  // namespace

void destroy(cl_event event) {
  if (event->queue != nullptr) {
    let_go(event->queue);  // which keeps the context
  } else {
    let_go(event->context);
  }
  if (counting_calls) count_event_destroyed();
  delete event;
}

}  // namespace xpu::null_driver

void* _cl_event::operator new(std::size_t bytes) {
  auto& pool = xpu::null_driver::t_pool;
  if (pool.first == nullptr) {
    static_cast<void>(xpu::null_driver::t_pool_end);
    return ::operator new(bytes);
  }
  --pool.count;
  void* event = pool.first;
  pool.first = *static_cast<void**>(event);
  return event;
}

void _cl_event::operator delete(void* event) noexcept {
  auto& pool = xpu::null_driver::t_pool;
  if (pool.count >= xpu::null_driver::EventPool::kMost) return ::operator delete(event);
  ++pool.count;
  *static_cast<void**>(event) = pool.first;
  pool.first = event;
}

cl_int Api::clWaitForEvents(cl_uint count, const cl_event* events) {
  if (count == 0 || events == nullptr) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    if (!is_valid(events[i])) return CL_INVALID_EVENT;
    if (events[i]->context != events[0]->context) return CL_INVALID_CONTEXT;
  }
  cl_int result = CL_SUCCESS;
  for (cl_uint i = 0; i < count; ++i) {
    if (xpu::null_driver::wait_for(events[i]) < 0) result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return result;
}

cl_int Api::clGetEventInfo(cl_event event, cl_event_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(event)) return CL_INVALID_EVENT;
  switch (query) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS: return answer<cl_int>(xpu::null_driver::status_of(event), room, value, size_ret);
    case CL_EVENT_COMMAND_QUEUE: return answer<cl_command_queue>(event->queue, room, value, size_ret);
    case CL_EVENT_CONTEXT: return answer<cl_context>(event->context, room, value, size_ret);
    case CL_EVENT_COMMAND_TYPE: return answer<cl_command_type>(event->type, room, value, size_ret);
    case CL_EVENT_REFERENCE_COUNT: return answer<cl_uint>(event->reference_count(), room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_event Api::clCreateUserEvent(cl_context context, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  auto* event = new _cl_event;
  event->context = xpu::null_driver::keep(context);
  event->type = CL_COMMAND_USER;
  if (xpu::null_driver::counting_calls) xpu::null_driver::count_event_created();
  return xpu::null_driver::created(error, event);
}

cl_int Api::clSetUserEventStatus(cl_event event, cl_int status) {
  if (!is_valid(event) || event->queue != nullptr) return CL_INVALID_EVENT;
  if (status > CL_COMPLETE) return CL_INVALID_VALUE;
  return xpu::null_driver::end_user_event(event, status) ? CL_SUCCESS : CL_INVALID_OPERATION;
}

cl_int Api::clRetainEvent(cl_event event) {
  if (!is_valid(event)) return CL_INVALID_EVENT;
  xpu::null_driver::retain(event);
  return CL_SUCCESS;
}

cl_int Api::clReleaseEvent(cl_event event) {
  if (!is_valid(event)) return CL_INVALID_EVENT;
  xpu::null_driver::release(event);
  return CL_SUCCESS;
}

cl_int Api::clGetEventProfilingInfo(cl_event event, cl_profiling_info query, std::size_t room, void* value, std::size_t* size_ret) {
  constexpr std::uint64_t kLateNs = 1'000'000;
  constexpr std::uint64_t kBackwardNs = 1000;
  if (!is_valid(event)) return CL_INVALID_EVENT;
  const xpu::null_driver::Faults& faults = settings.faults;
  const std::uint64_t end_ns = event->end_ns.load(std::memory_order_acquire);
  if (!event->profiled || faults.no_profiling || !xpu::null_driver::is_complete(event) || event->failure < 0) {
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  if (event->late && xpu::null_driver::host_now_ns() < end_ns + kLateNs) return CL_PROFILING_INFO_NOT_AVAILABLE;
  std::uint64_t host_ns = 0;
  std::uint64_t backward_ns = 0;
  switch (query) {
    case CL_PROFILING_COMMAND_QUEUED: host_ns = event->queued_ns; break;
    case CL_PROFILING_COMMAND_SUBMIT: host_ns = event->submit_ns; break;
    case CL_PROFILING_COMMAND_START: host_ns = event->start_ns; break;
    case CL_PROFILING_COMMAND_END:
    case CL_PROFILING_COMMAND_COMPLETE:
      host_ns = faults.backward ? event->start_ns : end_ns;
      backward_ns = faults.backward ? kBackwardNs : 0;
      break;
    default: return CL_INVALID_VALUE;
  }
  return answer<cl_ulong>(faults.zero_times ? 0 : xpu::null_driver::device_time(host_ns) - backward_ns, room, value, size_ret);
}

cl_int Api::clSetEventCallback(cl_event event, cl_int status, void(CL_CALLBACK* function)(cl_event, cl_int, void*), void* user_data) {
  if (!is_valid(event)) return CL_INVALID_EVENT;
  if (function == nullptr || status < CL_COMPLETE || status > CL_SUBMITTED) return CL_INVALID_VALUE;
  xpu::null_driver::add_callback(event, status, function, user_data);
  return CL_SUCCESS;
}
