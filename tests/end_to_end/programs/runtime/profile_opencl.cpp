// xpu_test_profile_opencl early|late COUNT
// A program that uses OpenCL and profiles itself: a session that begins before the first call of OpenCL, or only behind it. It never waits
// for the device. Prints "kernels K of N, unexplained U, pending P" and why OpenCL cannot be seen, if it cannot.

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <thread>

#include "programs/support.hpp"
#include "xpu/profiler/capabilities.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"

int main(int argc, char** argv) try {
  using namespace xpu::opencl_programs;
  const bool is_late = argc > 1 && std::string_view(argv[1]) == "late";
  const std::uint64_t count = number_argument(argc, argv, 2, 100);
  xpu::profiler::Session session(xpu::profiler::Config{});
  if (!is_late) session.prepare().value();
  const Setup setup;
  cl_command_queue queue = setup.queue();
  cl_kernel kernel = setup.ready_kernel("tiny", 1);
  launch(queue, kernel);  // the warm-up
  session.start().value();
  for (std::uint64_t index = 0; index < count; ++index) launch(queue, kernel);
  XPU_CL(clFlush(queue));
  session.stop().value();
  session.collect(std::chrono::seconds(20)).value();

  const xpu::profiler::Report report = xpu::profiler::make_report(session, {}).value();
  std::uint64_t kernels = 0;
  for (const auto& each : report.kernels) kernels += each.calls;
  std::printf("kernels %" PRIu64 " of %" PRIu64 ", unexplained %" PRId64 ", pending %" PRIu64 "\n", kernels, count,
              report.conservation.unexplained, report.conservation.pending);
  for (const xpu::profiler::Capability& capability : xpu::profiler::capabilities()) {
    if (capability.what == "OpenCL used by others" && !capability.is_available) std::printf("%s\n", capability.reason.c_str());
  }
  XPU_CL(clFinish(queue));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
