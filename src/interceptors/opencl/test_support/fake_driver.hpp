#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/probe.hpp"
#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/opencl_headers.hpp"

namespace xpu::interceptors::opencl {

/// A driver of a few entry points below the layer, in the test's own process: the test says which command has ended and what it answers.
/// One at a time; it installs itself as the layer's target.
class FakeDriver {
 public:
  struct Event {
    cl_int status = CL_COMPLETE;
    cl_ulong queued = 1'000, submit = 1'100, start = 1'200, end = 1'300;
    bool has_times = true;
    int references = 1;
  };

  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  cl_event make_event(cl_int status = CL_COMPLETE);
  static Event& at(cl_event event) { return *reinterpret_cast<Event*>(event); }

  int status_questions = 0, time_questions = 0, releases = 0;
  /// What clGetDeviceAndHostTimer shows; an error code makes it fail.
  cl_int timer_result = CL_SUCCESS;
  std::uint64_t timer_ahead_ns = 0;
  int timer_questions = 0;

 private:
  static cl_int CL_API_CALL get_event_info(cl_event, cl_event_info, std::size_t, void*, std::size_t*);
  static cl_int CL_API_CALL get_event_profiling_info(cl_event, cl_profiling_info, std::size_t, void*, std::size_t*);
  static cl_int CL_API_CALL release_event(cl_event);
  static cl_int CL_API_CALL get_device_and_host_timer(cl_device_id, cl_ulong*, cl_ulong*);

  std::vector<std::unique_ptr<Event>> events_;
};

/// Subscribes to the probe for its life and remembers what it is told.
class ScriptedSubscriber {
 public:
  explicit ScriptedSubscriber(std::uint32_t wanted = probe::kOperations | probe::kAllTicks);
  ~ScriptedSubscriber();
  ScriptedSubscriber(const ScriptedSubscriber&) = delete;
  ScriptedSubscriber& operator=(const ScriptedSubscriber&) = delete;

  struct Completed {
    probe::OperationId id;
    probe::Completion completion;
  };
  std::vector<Completed> completed;
  std::vector<probe::Loss> losses;
  std::vector<probe::ClockReading> readings;

 private:
  probe::Subscriber table_;
};

}  // namespace xpu::interceptors::opencl
