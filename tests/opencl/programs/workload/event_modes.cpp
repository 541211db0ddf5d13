#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "programs/workload/modes.hpp"

namespace xpu::opencl_programs::workload {
namespace {

struct Callbacks {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t count = 0;

  static void CL_CALLBACK arrived(cl_event, cl_int, void* self) {
    auto& callbacks = *static_cast<Callbacks*>(self);
    const std::lock_guard<std::mutex> lock(callbacks.mutex);
    ++callbacks.count;
    callbacks.changed.notify_one();
  }

  bool wait_for(std::uint64_t wanted) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return count == wanted; });
  }
};

/// Every launch has an event; what happens to it is the mode.
class EventLoop {
 public:
  explicit EventLoop(Run& run) : run_(run) {
    const cl_command_queue_properties properties = run.mode == "ooo"       ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
                                                   : run.mode == "profile" ? CL_QUEUE_PROFILING_ENABLE
                                                                           : 0;
    queue_ = run.setup.queue(properties);
    kernel_ = run.setup.ready_kernel("tiny", 0);
  }

  void operator()() {
    launch(queue_, kernel_);
    XPU_CL(clFinish(queue_));
    BatchLoop loop(run_.latencies, queue_, run_.batch);
    for (std::uint64_t i = 0; i < run_.count; ++i) {
      const auto value = static_cast<cl_int>(i);
      XPU_CL(clSetKernelArg(kernel_, 1, sizeof value, &value));
      submit_one();
      if (loop.after(i)) read_profile();
    }
    loop.finish(run_.enqueue_ns, run_.total_ns);
    read_profile();
    if (last_ != nullptr) XPU_CL(clReleaseEvent(last_));
    run_.submitted = run_.count + 1;
    if (run_.mode == "callback") {
      if (!callbacks_.wait_for(run_.count)) {
        std::fprintf(stderr, "xpu_test_workload: callbacks are missing\n");
        std::exit(4);
      }
      run_.more = " callbacks=" + std::to_string(callbacks_.count);
    }
    if (run_.mode == "profile") run_.more = " device_ns=" + std::to_string(device_ns_);
    XPU_CL(clReleaseKernel(kernel_));
    XPU_CL(clReleaseCommandQueue(queue_));
  }

 private:
  void submit_one() {
    const std::size_t one = 1;
    const bool waits = run_.mode == "ooo" && last_ != nullptr;
    cl_event event = nullptr;
    XPU_CL(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &one, &one, waits ? 1 : 0, waits ? &last_ : nullptr, &event));
    if (run_.mode == "profile") {
      profiled_.push_back(event);
    } else if (run_.mode == "ooo") {
      if (last_ != nullptr) XPU_CL(clReleaseEvent(last_));
      last_ = event;
    } else {
      if (run_.mode == "callback") XPU_CL(clSetEventCallback(event, CL_COMPLETE, Callbacks::arrived, &callbacks_));
      XPU_CL(clReleaseEvent(event));
    }
  }

  void read_profile() {
    for (cl_event event : profiled_) {
      cl_ulong start_ns = 0, end_ns = 0;
      XPU_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start_ns, &start_ns, nullptr));
      XPU_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end_ns, &end_ns, nullptr));
      device_ns_ += end_ns - start_ns;
      XPU_CL(clReleaseEvent(event));
    }
    profiled_.clear();
  }

  Run& run_;
  cl_command_queue queue_ = nullptr;
  cl_kernel kernel_ = nullptr;
  cl_event last_ = nullptr;
  std::vector<cl_event> profiled_;
  std::uint64_t device_ns_ = 0;
  Callbacks callbacks_;
};

/// At most `batch` launches in flight: the program waits for the oldest before it submits the next.
void run_window(Run& run) {
  cl_command_queue queue = run.setup.queue();
  cl_kernel kernel = run.setup.ready_kernel("tiny", 0);
  std::vector<cl_event> in_flight(run.batch == 0 ? 1 : run.batch, nullptr);
  BatchLoop loop(run.latencies, queue, 0);
  for (std::uint64_t i = 0; i < run.count; ++i) {
    cl_event& slot = in_flight[i % in_flight.size()];
    if (slot != nullptr) {
      XPU_CL(clWaitForEvents(1, &slot));
      XPU_CL(clReleaseEvent(slot));
    }
    launch(queue, kernel, &slot);
    loop.after(i);
  }
  loop.finish(run.enqueue_ns, run.total_ns);
  for (cl_event event : in_flight) {
    if (event != nullptr) XPU_CL(clReleaseEvent(event));
  }
  run.submitted = run.count;
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(queue));
}

}  // namespace

bool run_event_modes(Run& run) {
  if (run.mode == "window") {
    run_window(run);
  } else if (run.mode == "events" || run.mode == "callback" || run.mode == "ooo" || run.mode == "profile") {
    EventLoop loop(run);
    loop();
  } else {
    return false;
  }
  return true;
}

}  // namespace xpu::opencl_programs::workload
