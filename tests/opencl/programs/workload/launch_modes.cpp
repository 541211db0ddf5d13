#include <algorithm>
#include <thread>
#include <vector>

#include "programs/workload/modes.hpp"

namespace xpu::opencl_programs::workload {
namespace {

/// What one thread did.
struct Part {
  Latencies latencies;
  std::uint64_t submitted = 0;
  std::uint64_t enqueue_ns = 0;
  std::uint64_t total_ns = 0;
};

void launch_loop(const Setup& setup, cl_command_queue queue, std::uint64_t count, std::uint64_t batch, bool set_argument, Part& part) {
  cl_kernel kernel = setup.kernel("tiny");
  cl_mem data = setup.buffer(4096);
  cl_int value = 0;
  XPU_CL(clSetKernelArg(kernel, 0, sizeof data, &data));
  XPU_CL(clSetKernelArg(kernel, 1, sizeof value, &value));
  launch(queue, kernel);  // drivers prepare a kernel at its first launch
  XPU_CL(clFinish(queue));
  BatchLoop loop(part.latencies, queue, batch);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (set_argument) {
      value = static_cast<cl_int>(i);
      XPU_CL(clSetKernelArg(kernel, 1, sizeof value, &value));
    }
    launch(queue, kernel);
    loop.after(i);
  }
  loop.finish(part.enqueue_ns, part.total_ns);
  part.submitted = count + 1;
  XPU_CL(clReleaseMemObject(data));
  XPU_CL(clReleaseKernel(kernel));
}

void take_over(Run& run, const Part& part) {
  run.latencies.merge(part.latencies);
  run.submitted += part.submitted;
  run.enqueue_ns += part.enqueue_ns;
  run.total_ns = std::max(run.total_ns, part.total_ns);
}

void run_one_thread(Run& run, bool set_argument) {
  Part part;
  cl_command_queue queue = run.setup.queue();
  launch_loop(run.setup, queue, run.count, run.batch, set_argument, part);
  take_over(run, part);
  XPU_CL(clReleaseCommandQueue(queue));
}

void run_threads(Run& run, bool shared_queue) {
  std::vector<cl_command_queue> queues(shared_queue ? 1 : run.threads);
  for (cl_command_queue& queue : queues) queue = run.setup.queue();
  std::vector<Part> parts(run.threads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < run.threads; ++i) {
    threads.emplace_back([&, i] { launch_loop(run.setup, queues[i % queues.size()], run.count / run.threads, run.batch, true, parts[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Part& part : parts) take_over(run, part);
  for (cl_command_queue queue : queues) XPU_CL(clReleaseCommandQueue(queue));
}

/// Two halves of a run, so that memory which grows with the number of commands shows: after a fifth, and at the end before the wait.
void run_without_waiting(Run& run) {
  cl_command_queue queue = run.setup.queue();
  cl_kernel kernel = run.setup.ready_kernel("tiny", 0);
  BatchLoop loop(run.latencies, queue, 0);
  std::uint64_t fifth_kb = 0;
  for (std::uint64_t i = 0; i < run.count; ++i) {
    const auto value = static_cast<cl_int>(i);
    XPU_CL(clSetKernelArg(kernel, 1, sizeof value, &value));
    launch(queue, kernel);
    loop.after(i);
    if (i == run.count / 5) fifth_kb = resident_kb();
  }
  const std::uint64_t end_kb = resident_kb();
  loop.finish(run.enqueue_ns, run.total_ns);
  run.submitted = run.count;
  run.more = " fifth_rss_kb=" + std::to_string(fifth_kb) + " end_rss_kb=" + std::to_string(end_kb);
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(queue));
}

/// Counts of driver calls, where the driver offers them (the null driver with XPU_NULL_CALLS).
struct DriverCalls {
  using Function = cl_ulong (*)(cl_bool this_thread_only);
  Function function = nullptr;

  explicit DriverCalls(const Setup& setup)
      : function(reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(setup.platform, "clNullCallCountXPU"))) {}
  std::uint64_t of_thread() const { return function != nullptr ? function(CL_TRUE) : 0; }
  std::uint64_t of_process() const { return function != nullptr ? function(CL_FALSE) : 0; }
};

void run_two_queues(Run& run) {
  const DriverCalls calls(run.setup);
  cl_command_queue queue = run.setup.queue();
  cl_command_queue other = run.setup.queue();
  cl_kernel kernel = run.setup.ready_kernel("tiny", 0);
  cl_mem data = run.setup.buffer(4096);
  const char bytes[64] = {};
  std::uint64_t writes = 0, waited_ns = 0, longest_ns = 0, thread_calls = 0, process_calls = 0;
  const std::uint64_t begin_ns = now_ns();
  run.latencies.start();
  for (std::uint64_t i = 0; i < run.count; ++i) {
    launch(queue, kernel);
    run.latencies.tick();
    if (run.batch == 0 || (i + 1) % run.batch != 0) continue;
    const std::uint64_t of_thread = calls.of_thread();
    const std::uint64_t of_process = calls.of_process();
    const std::uint64_t write_ns = now_ns();
    XPU_CL(clEnqueueWriteBuffer(other, data, CL_TRUE, 0, sizeof bytes, bytes, 0, nullptr, nullptr));
    const std::uint64_t took_ns = now_ns() - write_ns;
    thread_calls = std::max(thread_calls, calls.of_thread() - of_thread);
    process_calls = std::max(process_calls, calls.of_process() - of_process);
    ++writes;
    waited_ns += took_ns;
    longest_ns = std::max(longest_ns, took_ns);
    run.latencies.start();
  }
  run.enqueue_ns = now_ns() - begin_ns - waited_ns;
  XPU_CL(clFinish(queue));
  run.total_ns = now_ns() - begin_ns;
  run.submitted = run.count + writes;
  run.more = " writes=" + std::to_string(writes) + " write_mean_ns=" + std::to_string(writes == 0 ? 0 : waited_ns / writes) +
             " write_max_ns=" + std::to_string(longest_ns);
  // Including the write itself.
  if (calls.function != nullptr) {
    run.more += " write_thread_calls_max=" + std::to_string(thread_calls) + " write_process_calls_max=" + std::to_string(process_calls);
  }
  XPU_CL(clReleaseMemObject(data));
  XPU_CL(clReleaseKernel(kernel));
  XPU_CL(clReleaseCommandQueue(other));
  XPU_CL(clReleaseCommandQueue(queue));
}

}  // namespace

bool run_launch_modes(Run& run) {
  if (run.mode == "launch" || run.mode == "noarg") {
    run_one_thread(run, run.mode == "launch");
  } else if (run.mode == "mt" || run.mode == "mtshared") {
    run_threads(run, run.mode == "mtshared");
  } else if (run.mode == "nosync") {
    run_without_waiting(run);
  } else if (run.mode == "twoq") {
    run_two_queues(run);
  } else {
    return false;
  }
  return true;
}

}  // namespace xpu::opencl_programs::workload
