// xpu_test_runtime_with_opencl [COUNT]
// A program with two device APIs: streams of libxpu whose functions launch OpenCL kernels, and OpenCL of its own beside them. Prints
// "opencl N runtime N": commands of each that were accepted.

#include <cinttypes>
#include <cstdio>

#include "programs/support.hpp"
#include "xpu/xpu.hpp"

int main(int argc, char** argv) try {
  using namespace xpu::opencl_programs;
  const std::uint64_t count = number_argument(argc, argv, 1, 100);
  const Setup setup;
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  const xpu::Stream stream = xpu::Stream::from_pool().value();
  std::uint64_t opencl = 0, runtime = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    const bool is_short = index % 2 == 0;
    stream.run({.name = "calls OpenCL", .short_and_independent = is_short}, [&] { launch(queue, kernel); }).value();
    stream.run_blocking({.name = "calls OpenCL and waits"}, [&] { launch(queue, kernel); }).value();
    launch(queue, kernel);
    opencl += 3;
    runtime += 2;
  }
  stream.synchronize().value();
  XPU_CL(clFinish(queue));
  std::printf("opencl %" PRIu64 " runtime %" PRIu64 "\n", opencl, runtime);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
