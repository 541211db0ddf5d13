#include <cstdio>
#include <cstdlib>

#include "programs/entries/registry.hpp"
#include "programs/workload/modes.hpp"

namespace xpu::opencl_programs::workload {
namespace {

void run_copies(Run& run) {
  cl_command_queue queue = run.setup.queue();
  cl_mem source = run.setup.buffer(4096);
  cl_mem destination = run.setup.buffer(4096);
  char bytes[128] = {};
  const cl_uint pattern = 7;
  BatchLoop loop(run.latencies, queue, run.batch);
  for (std::uint64_t i = 0; i < run.count; ++i) {
    switch (i % 4) {
      case 0: XPU_CL(clEnqueueWriteBuffer(queue, source, CL_FALSE, 0, 64, bytes, 0, nullptr, nullptr)); break;
      case 1: XPU_CL(clEnqueueCopyBuffer(queue, source, destination, 0, 64, 64, 0, nullptr, nullptr)); break;
      case 2: XPU_CL(clEnqueueFillBuffer(queue, destination, &pattern, sizeof pattern, 0, 64, 0, nullptr, nullptr)); break;
      default: XPU_CL(clEnqueueReadBuffer(queue, destination, CL_FALSE, 0, sizeof bytes, bytes, 0, nullptr, nullptr));
    }
    loop.after(i);
  }
  loop.finish(run.enqueue_ns, run.total_ns);
  run.submitted = run.count;
  XPU_CL(clReleaseMemObject(source));
  XPU_CL(clReleaseMemObject(destination));
  XPU_CL(clReleaseCommandQueue(queue));
}

void run_cheap_calls(Run& run) {
  cl_kernel kernel = run.setup.kernel("tiny");
  const std::uint64_t begin_ns = now_ns();
  run.latencies.start();
  for (std::uint64_t i = 0; i < run.count; ++i) {
    XPU_CL(clRetainKernel(kernel));
    XPU_CL(clReleaseKernel(kernel));
    run.latencies.tick();
  }
  run.enqueue_ns = run.total_ns = now_ns() - begin_ns;
  XPU_CL(clReleaseKernel(kernel));
}

void run_all_calls(Run& run) {
  entries::Fixture fixture;
  unsigned called = 0, unsupported = 0;
  for (const entries::EntryName& entry : entries::entry_names()) {
    const entries::EntryCall* call = entries::find_call(entry.name);
    const cl_int code = call != nullptr ? call->call(fixture) : CL_INVALID_VALUE;
    if (code < 0) {
      std::fprintf(stderr, "xpu_test_workload: %.*s answered %d\n", static_cast<int>(entry.name.size()), entry.name.data(), code);
      std::exit(4);
    }
    code == entries::kUnsupported ? ++unsupported : ++called;
  }
  XPU_CL(clFinish(fixture.queue()));
  run.submitted = fixture.submissions();
  run.more = " called=" + std::to_string(called) + " unsupported=" + std::to_string(unsupported);
}

}  // namespace

bool run_other_modes(Run& run) {
  if (run.mode == "copy") {
    run_copies(run);
  } else if (run.mode == "apis") {
    run_cheap_calls(run);
  } else if (run.mode == "allcalls") {
    run_all_calls(run);
  } else {
    return false;
  }
  return true;
}

}  // namespace xpu::opencl_programs::workload
