// xpu_test_profiling [ROUNDS] [QUEUES]
// Enables profiling itself and prints what it reads, one line per command:
//   QUEUE SEQUENCE QUEUED SUBMIT START END        device times as the driver gave them
//   QUEUE SEQUENCE failed STATUS                  the command ended with an error
//   QUEUE SEQUENCE untimed CODE                   the driver has no times for it (also after waiting a second)
//   QUEUE SEQUENCE no_event                       the driver returned success and no event
// QUEUE counts the program's queues in the order of their creation from 0, SEQUENCE the commands accepted on a queue from 1. Queues with an
// odd number are out of order; queue i is on device i modulo the number of devices.

#include <cinttypes>
#include <cstdio>
#include <thread>
#include <vector>

#include "programs/support.hpp"

namespace {

using namespace xpu::opencl_programs;

class ProfiledQueue {
 public:
  ProfiledQueue(const Setup& setup, unsigned index) : index_(index) {
    const cl_command_queue_properties out_of_order = index % 2 != 0 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
    queue_ = setup.queue_on(setup.devices[index % setup.devices.size()], CL_QUEUE_PROFILING_ENABLE | out_of_order);
    kernel_ = setup.ready_kernel("tiny", 1);
    source_ = setup.buffer(4096);
    destination_ = setup.buffer(4096);
  }

  /// One command of each kind. A refused command is no command.
  void submit_round() {
    const std::size_t one = 1;
    const cl_uint pattern = 7;
    keep([&](cl_event* event) { return clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &one, nullptr, 0, nullptr, event); });
    keep([&](cl_event* event) { return clEnqueueWriteBuffer(queue_, source_, CL_FALSE, 0, sizeof bytes_, bytes_, 0, nullptr, event); });
    keep([&](cl_event* event) { return clEnqueueCopyBuffer(queue_, source_, destination_, 0, 0, 64, 0, nullptr, event); });
    keep([&](cl_event* event) { return clEnqueueFillBuffer(queue_, destination_, &pattern, sizeof pattern, 64, 64, 0, nullptr, event); });
    keep([&](cl_event* event) { return clEnqueueMarkerWithWaitList(queue_, 0, nullptr, event); });
    void* mapped = nullptr;
    keep([&](cl_event* event) {
      cl_int error = CL_SUCCESS;
      mapped = clEnqueueMapBuffer(queue_, destination_, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, event, &error);
      return error;
    });
    if (mapped != nullptr) {
      keep([&](cl_event* event) { return clEnqueueUnmapMemObject(queue_, destination_, mapped, 0, nullptr, event); });
    }
    keep([&](cl_event* event) { return clEnqueueReadBuffer(queue_, destination_, CL_TRUE, 0, 64, bytes_, 0, nullptr, event); });
  }

  void print() {
    XPU_CL(clFinish(queue_));
    for (std::size_t i = 0; i < events_.size(); ++i) print_one(i + 1, events_[i]);
  }

 private:
  template <class Submit>
  void keep(Submit submit) {
    cl_event event = nullptr;
    if (submit(&event) == CL_SUCCESS) events_.push_back(event);
  }

  void print_one(std::size_t sequence, cl_event event) {
    std::printf("%u %zu ", index_, sequence);
    if (event == nullptr) {
      std::printf("no_event\n");
      return;
    }
    cl_int status = CL_QUEUED;
    XPU_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
    cl_ulong times[4] = {};
    const cl_int code = read_times(event, times);
    if (status < 0) {
      std::printf("failed %d\n", status);
    } else if (code != CL_SUCCESS) {
      std::printf("untimed %d\n", code);
    } else {
      std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", times[0], times[1], times[2], times[3]);
    }
    XPU_CL(clReleaseEvent(event));
  }

  /// Some drivers have the times only a while after completion.
  static cl_int read_times(cl_event event, cl_ulong (&times)[4]) {
    constexpr cl_profiling_info kQueries[4] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
                                               CL_PROFILING_COMMAND_END};
    const std::uint64_t give_up_ns = now_ns() + 1'000'000'000;
    cl_int code = CL_SUCCESS;
    do {
      for (int i = 0; i < 4; ++i) {
        code = clGetEventProfilingInfo(event, kQueries[i], sizeof times[i], &times[i], nullptr);
        if (code != CL_SUCCESS) break;
      }
      if (code == CL_SUCCESS) return code;
      cl_int status = CL_COMPLETE;
      XPU_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
      if (status < 0) return code;
      std::this_thread::yield();
    } while (now_ns() < give_up_ns);
    return code;
  }

  unsigned index_;
  cl_command_queue queue_ = nullptr;
  cl_kernel kernel_ = nullptr;
  cl_mem source_ = nullptr;
  cl_mem destination_ = nullptr;
  char bytes_[64] = {};
  std::vector<cl_event> events_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t rounds = number_argument(argc, argv, 1, 100);
  const std::uint64_t count = number_argument(argc, argv, 2, 2);
  const Setup setup;
  std::vector<ProfiledQueue> queues;
  for (unsigned i = 0; i < count; ++i) queues.emplace_back(setup, i);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (ProfiledQueue& queue : queues) queue.submit_round();
  }
  for (ProfiledQueue& queue : queues) queue.print();
  return 0;
}
