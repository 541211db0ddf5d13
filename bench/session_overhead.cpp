// session_overhead [ROUNDS] [LAUNCHES]: what a session in the process adds to a program that launches short kernels on the driver `host`.
//
// Each round runs every variant once, and the next round in the other order, so that drift of the machine falls on all alike. Printed are
// medians over the rounds of the time for one launch, from the first launch to the end of the last kernel, and of what a variant added.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "xpu/profiler/session.hpp"
#include "xpu/xpu.hpp"

namespace {

namespace profiler = xpu::profiler;

void spin(volatile std::int32_t* counted, std::int32_t rounds) {
  for (std::int32_t round = 0; round < rounds; ++round) *counted = *counted + 1;
}
void overhead_spin(const xpu::WorkItem& item, std::int32_t* place, std::int32_t rounds) { spin(place + item.global_id(0), rounds); }
XPU_KERNEL(overhead_spin, "place", "rounds");

enum Variant : std::size_t { kNobody, kDevices, kEverything, kVariants };
constexpr const char* kNames[kVariants] = {"nobody listens", "devices: kernels, copies, fills", "everything, with numbers and memory"};

profiler::Config config_of(Variant variant) {
  using profiler::ActivityKind;
  profiler::Config config;
  config.max_buffer_mib = 512;
  if (variant == kDevices) {
    config.kinds = {ActivityKind::kernel, ActivityKind::gpu_memcpy, ActivityKind::gpu_memset};
  } else {
    config.kinds.insert(ActivityKind::xpu_driver);
    config.with_memory = true;
  }
  return config;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Bench {
  xpu::Kernel kernel = xpu::Kernel::registered("overhead_spin").value();
  xpu::Buffer buffer = xpu::Buffer::allocate(64).value();
  xpu::Stream stream = xpu::Stream::from_pool().value();
  std::uint64_t launches = 0;
  std::int32_t spins = 0;

  /// As many rounds of the loop as take that long, found with loops as short.
  void calibrate(double target_ns) {
    constexpr int kCalls = 20'000;
    std::int32_t counted = 0;
    spins = 100;
    for (int attempt = 0; attempt < 5; ++attempt) {
      const auto begin = std::chrono::steady_clock::now();
      for (int call = 0; call < kCalls; ++call) spin(&counted, spins);
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
      spins = std::max(1, static_cast<std::int32_t>(spins * target_ns / (took.count() / kCalls)));
    }
  }

  /// Nanoseconds for one launch.
  double run(Variant variant) {
    std::unique_ptr<profiler::Session> session;
    if (variant != kNobody) {
      session = std::make_unique<profiler::Session>(config_of(variant));
      session->start().value();
    }
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t launch = 0; launch < launches; ++launch) {
      if (variant == kEverything) profiler::ActivityApi::push_correlation_id(profiler::CorrelationFamily::custom_0, launch);
      stream.launch(kernel, xpu::items(1), buffer.as<std::int32_t>(), spins).value();
      if (variant == kEverything) profiler::ActivityApi::pop_correlation_id(profiler::CorrelationFamily::custom_0);
    }
    stream.synchronize().value();
    const auto end = std::chrono::steady_clock::now();
    if (session) session->cancel();
    return std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(launches);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 21;
  Bench bench;
  bench.launches = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  std::printf("| kernel | variant | ns a launch | added ns | added |\n|---|---|---:|---:|---:|\n");
  for (const double target_us : {1.0, 2.0, 5.0}) {
    bench.calibrate(target_us * 1'000);
    for (std::size_t variant = 0; variant < kVariants; ++variant) bench.run(static_cast<Variant>(variant));  // not counted
    std::vector<double> times[kVariants], added[kVariants], shares[kVariants];
    for (std::uint64_t round = 0; round < rounds; ++round) {
      double now[kVariants];
      for (std::size_t step = 0; step < kVariants; ++step) {
        const std::size_t variant = round % 2 == 0 ? step : kVariants - 1 - step;
        now[variant] = bench.run(static_cast<Variant>(variant));
      }
      for (std::size_t variant = 0; variant < kVariants; ++variant) {
        times[variant].push_back(now[variant]);
        added[variant].push_back(now[variant] - now[kNobody]);
        shares[variant].push_back(now[variant] / now[kNobody] - 1);
      }
    }
    for (std::size_t variant = 0; variant < kVariants; ++variant) {
      std::printf("| %.0f us | %s | %.0f | %.0f | %.1f %% |\n", target_us, kNames[variant], median(times[variant]), median(added[variant]),
                  100 * median(shares[variant]));
    }
  }
  return 0;
} catch (const xpu::BadResult& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
