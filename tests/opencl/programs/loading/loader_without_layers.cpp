// xpu_test_loader_without_layers [COUNT]
// Uses OpenCL through a loader that knows no layers: lib/stub_loader/libOpenCL.so.1 beside the folder of this program, opened by its path.

#include <cstdlib>
#include <filesystem>

#include "programs/loading/dynamic_opencl.hpp"

int main(int argc, char** argv) {
  const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path loader = programs.parent_path() / "lib" / "stub_loader" / "libOpenCL.so.1";
  unsetenv("XPU_TEST_PLATFORM");  // the stub has one platform
  xpu::opencl_programs::DynamicOpenCl opencl(loader.c_str());
  opencl.launch_without_waiting(argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 64, 1);
  opencl.finish();
  return 0;
}
