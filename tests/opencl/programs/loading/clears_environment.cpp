// xpu_test_clears_environment [NAME...]
// Executes itself with an environment that keeps only the variables NAME (usually OCL_ICD_VENDORS) and then uses OpenCL.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "programs/support.hpp"

namespace {

void use_opencl() {
  using namespace xpu::opencl_programs;
  const Setup setup;
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  for (int i = 0; i < 64; ++i) launch(queue, kernel);
  XPU_CL(clFinish(queue));
  std::printf("submitted 64\n");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kSecondRun = "--cleared";
  if (argc == 2 && std::strcmp(argv[1], kSecondRun) == 0) {
    use_opencl();
    return 0;
  }
  std::vector<std::string> kept;
  for (int i = 1; i < argc; ++i) {
    if (const char* value = std::getenv(argv[i])) kept.push_back(std::string(argv[i]) + "=" + value);
  }
  std::vector<char*> environment;
  for (std::string& variable : kept) environment.push_back(variable.data());
  environment.push_back(nullptr);
  char* arguments[] = {argv[0], const_cast<char*>(kSecondRun), nullptr};
  execve("/proc/self/exe", arguments, environment.data());
  return 126;
}
