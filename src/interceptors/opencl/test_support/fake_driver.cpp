#include "interceptors/opencl/test_support/fake_driver.hpp"

#include <cstring>

namespace xpu::interceptors::opencl {
namespace {

FakeDriver* g_driver = nullptr;
ScriptedSubscriber* g_subscriber = nullptr;

}  // namespace

FakeDriver::FakeDriver() {
  g_driver = this;
  g_layer.target = {};
  g_layer.target.clGetEventInfo = get_event_info;
  g_layer.target.clGetEventProfilingInfo = get_event_profiling_info;
  g_layer.target.clReleaseEvent = release_event;
  g_layer.target.clGetDeviceAndHostTimer = get_device_and_host_timer;
}

FakeDriver::~FakeDriver() {
  g_layer.target = {};
  g_driver = nullptr;
}

cl_event FakeDriver::make_event(cl_int status) {
  events_.push_back(std::make_unique<Event>());
  events_.back()->status = status;
  return reinterpret_cast<cl_event>(events_.back().get());
}

cl_int FakeDriver::get_event_info(cl_event event, cl_event_info name, std::size_t room, void* value, std::size_t*) {
  if (name != CL_EVENT_COMMAND_EXECUTION_STATUS || room < sizeof(cl_int)) return CL_INVALID_VALUE;
  ++g_driver->status_questions;
  std::memcpy(value, &at(event).status, sizeof(cl_int));
  return CL_SUCCESS;
}

cl_int FakeDriver::get_event_profiling_info(cl_event event, cl_profiling_info name, std::size_t, void* value, std::size_t*) {
  ++g_driver->time_questions;
  const Event& asked = at(event);
  if (asked.status != CL_COMPLETE || !asked.has_times) return CL_PROFILING_INFO_NOT_AVAILABLE;
  const cl_ulong ticks = name == CL_PROFILING_COMMAND_QUEUED   ? asked.queued
                         : name == CL_PROFILING_COMMAND_SUBMIT ? asked.submit
                         : name == CL_PROFILING_COMMAND_START  ? asked.start
                                                               : asked.end;
  std::memcpy(value, &ticks, sizeof ticks);
  return CL_SUCCESS;
}

cl_int FakeDriver::release_event(cl_event event) {
  ++g_driver->releases;
  --at(event).references;
  return CL_SUCCESS;
}

cl_int FakeDriver::get_device_and_host_timer(cl_device_id, cl_ulong* device_ticks, cl_ulong* host_ticks) {
  ++g_driver->timer_questions;
  *host_ticks = now_ns();
  *device_ticks = *host_ticks + g_driver->timer_ahead_ns;
  return g_driver->timer_result;
}

ScriptedSubscriber::ScriptedSubscriber(std::uint32_t wanted) {
  g_subscriber = this;
  table_.wanted = wanted;
  table_.begin = [](const probe::Operation&) { return probe::OperationId{1}; };
  table_.submitted = [](probe::OperationId, const probe::Operation&, const probe::Submission&) { return true; };
  table_.complete = [](probe::OperationId id, const probe::Completion& completion) { g_subscriber->completed.push_back({id, completion}); };
  table_.lost = [](const probe::Loss& loss) { g_subscriber->losses.push_back(loss); };
  table_.call_begin = [](probe::Id, std::uint64_t) {};
  table_.call = [](const probe::Call&) {};
  table_.wait = [](const probe::Wait&) {};
  table_.memory = [](const probe::MemoryEvent&) {};
  table_.object = [](probe::ObjectKind, probe::Id, probe::ObjectEvent, const void*) {};
  table_.clock = [](const probe::ClockReading& reading) { g_subscriber->readings.push_back(reading); };
  table_.annotate = [](const probe::Annotation&) {};
  table_.string = [](probe::Id, std::string_view) {};
  table_.communicate = [](const probe::Communication&) {};
  table_.overhead = [](probe::OverheadType, std::uint64_t, std::uint64_t, std::uint32_t) {};
  probe::subscribe(&table_);
}

// The test has no other threads, so nobody uses the table any more.
ScriptedSubscriber::~ScriptedSubscriber() {
  probe::unsubscribe();
  g_subscriber = nullptr;
}

}  // namespace xpu::interceptors::opencl
