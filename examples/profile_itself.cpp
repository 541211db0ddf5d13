// A program that profiles itself, as a framework does: its own operators have numbers that its kernels carry, and are part of the timeline;
// a profile has a warm-up and a pause, and comes out as tables and as a timeline.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "xpu/annotate.h"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/xpu.hpp"

namespace profiler = xpu::profiler;

constexpr const char* kSource = R"(
void saxpy(const xpu::WorkItem& item, float a, const float* x, float* y) { y[item.global_id(0)] += a * x[item.global_id(0)]; }
XPU_KERNEL(saxpy, "a", "x", "y");
)";

/// What a framework does round each of its operators: whatever is submitted inside carries the number. When and where it ran goes to
/// `trace`.
class Operator {
 public:
  Operator(profiler::CpuTrace& trace, xpu::ClockDomain clock, std::uint64_t number) : trace_(trace), clock_(clock) {
    operation_.name = "operator " + std::to_string(number);
    operation_.thread = static_cast<std::uint32_t>(gettid());
    operation_.external_id = profiler::ExternalId{number, static_cast<std::uint32_t>(profiler::kOperationFamily)};
    operation_.start_ns = static_cast<std::int64_t>(xpu::now_ns(clock));
    profiler::ActivityApi::push_correlation_id(profiler::kOperationFamily, number);
  }
  ~Operator() {
    profiler::ActivityApi::pop_correlation_id(profiler::kOperationFamily);
    operation_.end_ns = static_cast<std::int64_t>(xpu::now_ns(clock_));
    trace_.operations.push_back(operation_);
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

 private:
  profiler::CpuTrace& trace_;
  xpu::ClockDomain clock_;
  profiler::CpuOperation operation_;
};

/// A framework's own view of a profile: device time by operator.
class TimeByOperator final : public profiler::Sink {
 public:
  void handle_kernel_activity(const profiler::KernelActivity& kernel) override {
    if (kernel.timed && kernel.operation != nullptr) nanoseconds[kernel.operation->name->text] += kernel.duration_ns;
  }
  std::map<std::string, std::uint64_t> nanoseconds;
};

int main(int argument_count, char** arguments) try {
  const std::string trace = argument_count > 1 ? arguments[1] : "profile.json.gz";
  constexpr std::size_t kCount = 1 << 16;
  const xpu::Kernel saxpy = xpu::Module::from_source(kSource).value().kernel("saxpy").value();
  const xpu::Buffer x = xpu::Buffer::allocate(kCount * sizeof(float)).value(), y = xpu::Buffer::allocate(kCount * sizeof(float)).value();
  const xpu::Stream stream = xpu::Stream::from_pool().value();
  stream.fill(x.as<float>(), 1.0f, kCount).value();
  stream.fill(y.as<float>(), 2.0f, kCount).value();
  profiler::Session session(profiler::Config{});
  profiler::CpuTrace operators;
  const auto work = [&](std::uint64_t number, int launches) {
    const Operator scope(operators, session.clock_domain(), number);
    for (int launch = 0; launch < launches; ++launch) {
      stream.launch(saxpy, xpu::items(kCount), 3.0f, x.as<float>(), y.as<float>()).value();
    }
  };

  session.prepare().value();  // from here on records flow, and are thrown away
  work(1, 5);
  stream.synchronize().value();
  operators.operations.clear();
  session.start().value();
  xpu_annotate_push("step");
  work(1, 10);
  session.toggle(false);  // what follows is nobody's business
  work(2, 100);
  session.toggle(true);
  work(3, 20);
  xpu_annotate_pop();
  session.stop().value();  // returns at once: the device is still busy
  session.transfer_cpu_trace(std::move(operators)).value();

  TimeByOperator by_operator;
  session.run({&by_operator}).value();
  std::fputs(profiler::report_text(profiler::make_report(session, {}).value(), {}).c_str(), stdout);
  for (const auto& [name, ns] : by_operator.nanoseconds) {
    std::printf("%s: %.3f ms on the device\n", name.c_str(), static_cast<double>(ns) / 1e6);
  }
  profiler::ExportOptions options;
  options.path = trace;
  const profiler::ExportSummary written = profiler::export_chrome(session, options).value();
  std::printf("%s: %ju kernels, %ju arrows\n", written.path.c_str(), static_cast<std::uintmax_t>(written.kernels),
              static_cast<std::uintmax_t>(written.flows));
  return 0;
} catch (const xpu::BadResult& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
