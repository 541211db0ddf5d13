#include "interceptors/opencl/command.hpp"

namespace xpu::interceptors::opencl {
namespace {

/// Markers and barriers of OpenCL 1.0 say nothing about when they end. Since 1.2 there is a call that means the same and has an event.
bool has_barriers_with_events(const Command& command) noexcept {
  const Queue* queue = command.queue();
  const Device* device = queue == nullptr ? nullptr : queue->device.load(std::memory_order_acquire);
  return device != nullptr && device->version >= 12 && target().clEnqueueBarrierWithWaitList != nullptr;
}

}  // namespace

cl_int Wrappers::clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueMarkerWithWaitList, probe::Command::marker, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueMarkerWithWaitList(queue, wait_count, wait_list, event));
  return command.finish(target().clEnqueueMarkerWithWaitList(queue, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueBarrierWithWaitList, probe::Command::barrier, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueBarrierWithWaitList(queue, wait_count, wait_list, event));
  return command.finish(target().clEnqueueBarrierWithWaitList(queue, wait_count, wait_list, command.start()));
}

// Here a null event is an error of the program's, which an event of ours would hide.
cl_int Wrappers::clEnqueueMarker(cl_command_queue queue, cl_event* event) {
  Command command(Entry::clEnqueueMarker, probe::Command::marker, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueMarker(queue, event));
  cl_event* const place = command.start();
  return command.finish(target().clEnqueueMarker(queue, event != nullptr ? place : nullptr));
}

cl_int Wrappers::clEnqueueBarrier(cl_command_queue queue) {
  Command command(Entry::clEnqueueBarrier, probe::Command::barrier, queue, nullptr);
  if (!command.is_recorded()) return command.pass(target().clEnqueueBarrier(queue));
  cl_event* const place = command.start();
  if (place != nullptr && has_barriers_with_events(command)) {
    if (target().clEnqueueBarrierWithWaitList(queue, 0, nullptr, place) == CL_SUCCESS) return command.finish(CL_SUCCESS);
    command.start_again();
  }
  return command.finish(target().clEnqueueBarrier(queue));
}

cl_int Wrappers::clEnqueueWaitForEvents(cl_command_queue queue, cl_uint event_count, const cl_event* event_list) {
  Command command(Entry::clEnqueueWaitForEvents, probe::Command::barrier, queue, nullptr);
  if (!command.is_recorded()) return command.pass(target().clEnqueueWaitForEvents(queue, event_count, event_list));
  cl_event* const place = command.start();
  // An empty list is an error here and means "everything" there. What the other call refuses is asked again as the program put it, so that
  // the program gets the code that it would get without us.
  if (place != nullptr && event_count != 0 && event_list != nullptr && has_barriers_with_events(command)) {
    if (target().clEnqueueBarrierWithWaitList(queue, event_count, event_list, place) == CL_SUCCESS) return command.finish(CL_SUCCESS);
    command.start_again();
  }
  return command.finish(target().clEnqueueWaitForEvents(queue, event_count, event_list));
}

cl_int Wrappers::clFinish(cl_command_queue handle) {
  WaitCall wait(Entry::clFinish, probe::WaitType::queue);
  const cl_int result = target().clFinish(handle);
  if (listener_or_null() == nullptr || probe::inside_scope()) return result;
  Queue* queue = g_objects.queues.find(handle);
  wait.finish(result, handle, queue, 0);
  if (queue != nullptr && result == CL_SUCCESS) drain_queue(*queue);
  return result;
}

cl_int Wrappers::clWaitForEvents(cl_uint event_count, const cl_event* event_list) {
  WaitCall wait(Entry::clWaitForEvents, probe::WaitType::events);
  const cl_int result = target().clWaitForEvents(event_count, event_list);
  return wait.finish(result, event_count != 0 && event_list != nullptr ? event_list[0] : nullptr, nullptr, event_count);
}

}  // namespace xpu::interceptors::opencl
