// xpu_test_workload MODE [N] [BATCH] [THREADS]
//
// An OpenCL program for measuring tracers: N operations of one kind, a clFinish after every BATCH (0: only at the end). Modes:
// - launch: clSetKernelArg + clEnqueueNDRangeKernel; noarg: clEnqueueNDRangeKernel alone
// - nosync: launch, never waiting before the end; prints memory at a fifth, too
// - copy: write, copy, fill, read of 64 bytes in turn
// - mt: THREADS threads, each with a queue; mtshared: THREADS threads on one queue
// - events: an event for each launch, released at once; callback: with clSetEventCallback
// - ooo: out-of-order queue, each waits for the last
// - profile: the program reads START and END itself
// - window: at most BATCH in flight, waits for the oldest
// - twoq: launches on one queue, a blocking write on another after every BATCH
// - apis: clRetainKernel + clReleaseKernel, no command; allcalls: every core entry point once (N and BATCH do not matter)
// Prints one line "RESULT key=value …"; `submitted` counts every command that the driver accepted, warm-up included.

#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <memory>

#include "programs/workload/modes.hpp"

namespace xpu::opencl_programs::workload {

void Latencies::merge(const Latencies& other) noexcept {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  if (other.max_ns_ > max_ns_) max_ns_ = other.max_ns_;
}

std::uint64_t Latencies::percentile_ns(double fraction) const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : buckets_) sum += count;
  const auto wanted = static_cast<std::uint64_t>(fraction * static_cast<double>(sum));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i + 1 < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen > wanted) return (i + 1) * kBucketNs;
  }
  return max_ns_;
}

std::uint64_t resident_kb() {
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%" SCNu64 " %" SCNu64, &pages, &resident);
  std::fclose(file);
  return read == 2 ? resident * 4 : 0;
}

}  // namespace xpu::opencl_programs::workload

namespace {

std::uint64_t cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_usec) * 1000u;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace xpu::opencl_programs;
  const std::string_view mode = argc > 1 ? argv[1] : "launch";
  const Setup setup;
  workload::Run run{setup,
                    mode,
                    number_argument(argc, argv, 2, 100'000),
                    number_argument(argc, argv, 3, 1000),
                    static_cast<unsigned>(number_argument(argc, argv, 4, 2)),
                    {},
                    0,
                    0,
                    0,
                    {}};
  if (run.count == 0 || run.threads == 0) {
    std::fprintf(stderr, "xpu_test_workload: N and THREADS must not be 0\n");
    return 2;
  }
  const std::uint64_t cpu_before_ns = cpu_ns();
  if (!workload::run_launch_modes(run) && !workload::run_event_modes(run) && !workload::run_other_modes(run)) {
    std::fprintf(stderr, "xpu_test_workload: no mode \"%s\"\n", argc > 1 ? argv[1] : "");
    return 2;
  }
  const std::uint64_t cpu_used_ns = cpu_ns() - cpu_before_ns;
  XPU_CL(clReleaseProgram(setup.program));
  XPU_CL(clReleaseContext(setup.context));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto each = [&](std::uint64_t ns) { return static_cast<double>(ns) / static_cast<double>(run.count); };
  std::printf("RESULT mode=%.*s n=%" PRIu64 " batch=%" PRIu64 " threads=%u submitted=%" PRIu64
              " enqueue_ns=%.1f total_ns=%.1f p50_ns=%" PRIu64 " p99_ns=%" PRIu64 " max_ns=%" PRIu64 " cpu_ns=%.1f rss_kb=%" PRIu64
              " peak_rss_kb=%ld minor_faults=%ld%s\n",
              static_cast<int>(mode.size()), mode.data(), run.count, run.batch, run.threads, run.submitted, each(run.enqueue_ns),
              each(run.total_ns), run.latencies.percentile_ns(0.5), run.latencies.percentile_ns(0.99), run.latencies.max_ns(),
              each(cpu_used_ns), workload::resident_kb(), usage.ru_maxrss, usage.ru_minflt, run.more.c_str());
  return 0;
}
