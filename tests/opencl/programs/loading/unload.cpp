// xpu_test_unload MODE [COUNT] [ROUNDS]
// Opens libOpenCL.so.1 itself (or XPU_TEST_LOADER) and closes it again. Not linked with the loader, so that closing it can unload it.
//   dlclose           closes it with work in flight, then returns from main
//   dlclose_finished  waits, closes it, then returns from main
//   reload            closes it with work in flight, opens it again, launches again, waits, closes it
//   never             leaves it open: the control

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "programs/loading/dynamic_opencl.hpp"

int main(int argc, char** argv) {
  using xpu::opencl_programs::DynamicOpenCl;
  const char* mode = argc > 1 ? argv[1] : "";
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 64;
  const auto rounds = static_cast<cl_int>(argc > 3 ? std::atoi(argv[3]) : 200'000);
  const char* path = std::getenv("XPU_TEST_LOADER");
  if (path == nullptr) path = "libOpenCL.so.1";
  const bool finished = std::strcmp(mode, "dlclose_finished") == 0;
  const bool reload = std::strcmp(mode, "reload") == 0;
  const bool never = std::strcmp(mode, "never") == 0;
  if (!finished && !reload && !never && std::strcmp(mode, "dlclose") != 0) {
    std::fprintf(stderr, "usage: xpu_test_unload dlclose | dlclose_finished | reload | never [COUNT] [ROUNDS]\n");
    return 2;
  }
  DynamicOpenCl first(path);
  first.launch_without_waiting(count, rounds);
  if (finished) first.finish();
  if (never) return 0;
  first.close();
  if (!reload) return 0;
  DynamicOpenCl second(path);
  second.launch_without_waiting(count, rounds);
  second.finish();
  second.close();
  return 0;
}
