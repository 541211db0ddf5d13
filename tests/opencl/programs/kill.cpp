// xpu_test_kill [BATCH] [LIMIT]
// Launches without end from two threads on one in-order queue, to be killed. Each thread waits for the queue after BATCH launches of its
// own (default 1000), so memory stays bounded. After every 1000 accepted launches one line "submitted N" goes to standard output. With a
// LIMIT the program ends after so many launches.

#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <thread>

#include "programs/support.hpp"

namespace {

using namespace xpu::opencl_programs;

std::atomic<std::uint64_t> submitted{0};

void launch_until(std::uint64_t limit, const Setup& setup, cl_command_queue queue, std::uint64_t batch) {
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  for (std::uint64_t own = 1; submitted.load(std::memory_order_relaxed) < limit; ++own) {
    launch(queue, kernel);
    const std::uint64_t total = submitted.fetch_add(1, std::memory_order_relaxed) + 1;
    if (total % 1000 == 0) {
      char line[48];
      const int length = std::snprintf(line, sizeof line, "submitted %" PRIu64 "\n", total);
      if (write(STDOUT_FILENO, line, static_cast<std::size_t>(length)) != length) _exit(4);  // nobody reads any more
    }
    if (batch != 0 && own % batch == 0) XPU_CL(clFinish(queue));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t batch = number_argument(argc, argv, 1, 1000);
  const std::uint64_t limit = number_argument(argc, argv, 2, std::numeric_limits<std::uint64_t>::max());
  const Setup setup;
  cl_command_queue queue = setup.queue();
  std::thread other([&] { launch_until(limit, setup, queue, batch); });
  launch_until(limit, setup, queue, batch);
  other.join();
  XPU_CL(clFinish(queue));
  return 0;
}
