// xpu_test_own_layers LAYERS [COUNT]
// Sets OPENCL_LAYERS itself before its first use of OpenCL, as another tool would, and so replaces what its parent had set.

#include <cstdio>
#include <cstdlib>

#include "programs/support.hpp"

int main(int argc, char** argv) {
  using namespace xpu::opencl_programs;
  if (argc < 2) {
    std::fprintf(stderr, "usage: xpu_test_own_layers LAYERS [COUNT]\n");
    return 2;
  }
  setenv("OPENCL_LAYERS", argv[1], 1);
  const std::uint64_t count = number_argument(argc, argv, 2, 64);
  const Setup setup;
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  for (std::uint64_t i = 0; i < count; ++i) launch(queue, kernel);
  XPU_CL(clFinish(queue));
  std::printf("submitted %llu\n", static_cast<unsigned long long>(count));
  return 0;
}
