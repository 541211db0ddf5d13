// xpu_test_exit MODE [COUNT] [ROUNDS] | --list
// Launches COUNT commands (default 64) of a kernel with ROUNDS rounds (default 200000) and ends in the named way without waiting for them.
// Each part that launched prints "WHO PID submitted N" before it ends. See xpu_test_unload for programs that close the loader.

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "programs/exit/exit.hpp"

namespace xpu::opencl_programs::exits {

WorkInFlight::WorkInFlight(const char* who, std::uint64_t count, cl_int rounds)
    : queue_(setup_.queue()), kernel_(setup_.ready_kernel("spin", rounds)) {
  launch_and_print(who, count);
}

cl_event WorkInFlight::launch_with_event() {
  cl_event event = nullptr;
  launch(queue_, kernel_, &event);
  XPU_CL(clFlush(queue_));
  return event;
}

void WorkInFlight::launch_and_print(const char* who, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) launch(queue_, kernel_);
  XPU_CL(clFlush(queue_));
  std::printf("%s %d submitted %" PRIu64 "\n", who, static_cast<int>(getpid()), count);
  std::fflush(stdout);
}

}  // namespace xpu::opencl_programs::exits

int main(int argc, char** argv) {
  using namespace xpu::opencl_programs;
  const bool list = argc == 2 && std::strcmp(argv[1], "--list") == 0;
  const exits::Options options{number_argument(argc, argv, 2, 64), static_cast<cl_int>(number_argument(argc, argv, 3, 200'000))};
  for (const exits::Mode* modes : {exits::kEndModes, exits::kProcessModes}) {
    for (; modes->name != nullptr; ++modes) {
      if (list) std::printf("%-22s %s\n", modes->name, modes->what);
      if (!list && argc > 1 && std::strcmp(argv[1], modes->name) == 0) return modes->run(options);
    }
  }
  if (list) return 0;
  std::fprintf(stderr, "usage: xpu_test_exit MODE [COUNT] [ROUNDS] | --list\n");
  return 2;
}
