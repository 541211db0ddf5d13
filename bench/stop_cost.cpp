// stop_cost OPERATIONS: a session over a program that ran so many kernels, and its stop. For an instruction count of Session::stop alone.
// With a second argument: prints how long the stop and the rest of the way to the profile took.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/profiler/session.hpp"

namespace {

/// As a publisher does it.
void run_kernels(const xpu::probe::Subscriber& listener, std::uint64_t count) {
  xpu::probe::Operation operation;
  operation.queue = 1;
  operation.kernel = 1;
  operation.command = xpu::probe::Command::ndrange_kernel;
  for (std::uint32_t sequence = 1; sequence <= count; ++sequence) {
    operation.enter_ns = xpu::now_ns(xpu::probe::clock_domain());
    const xpu::probe::OperationId id = listener.begin(operation);
    if (!listener.submitted(id, operation, {operation.enter_ns + 5, 0, sequence})) std::abort();
    listener.complete(id, {1, xpu::probe::CompletionStatus::ok, false, 0, {1, 2, 3, 4}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  xpu::profiler::Config config;
  config.max_buffer_mib = 4'096;
  xpu::profiler::Session session(config);
  session.start().value();
  run_kernels(*xpu::probe::subscriber(), count);
  const auto before = std::chrono::steady_clock::now();
  session.stop().value();
  const auto stopped = std::chrono::steady_clock::now();
  session.collect().value();
  const auto collected = std::chrono::steady_clock::now();
  if (argc > 2) {
    const auto us = [](auto duration) { return std::chrono::duration<double, std::micro>(duration).count(); };
    std::printf("stop %.1f us, collect %.0f us\n", us(stopped - before), us(collected - stopped));
  }
  return 0;
}
