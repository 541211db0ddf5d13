// A trace that is written while work goes on holds what a session's trace of the same time holds, on every driver.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "profiler/test_support/comparable_trace.hpp"
#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/annotate.h"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/profiler/streaming_export.hpp"

namespace xpu::acceptance {
namespace {

namespace fs = std::filesystem;
using profiler::test_support::comparable_events;
using profiler::test_support::comparable_figures;
using profiler::test_support::device_starts;
using profiler::test_support::DeviceTimes;
using profiler::test_support::differences;
using profiler::test_support::largest_clock_error_ns;
using profiler::test_support::read_trace_file;
using ::testing::IsEmpty;

/// A folder of its own that is gone at the end.
class OwnFolder {
 public:
  OwnFolder() {
    std::string pattern = (fs::temp_directory_path() / "xpu_acceptance_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~OwnFolder() { fs::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// What a thread of a framework does: operators with numbers, in ranges, on two streams that wait for each other, with copies between them.
void run_operators(int thread, int steps) {
  const int device = thread % kDevices;
  const Kernel kernel = add_kernel(device);
  const Stream compute = Stream::from_pool(0, device).value(), copies = Stream::from_pool(-1, device).value();
  const Buffer values = Buffer::allocate(4'096, MemoryKind::device, device).value(),
               staged = Buffer::allocate(4'096, MemoryKind::device, device).value();
  std::vector<std::byte> on_host(4'096);
  for (int step = 0; step < steps; ++step) {
    xpu_annotate_push("step");
    const auto number = static_cast<std::uint64_t>(thread) << 32 | static_cast<std::uint64_t>(step);
    profiler::ActivityApi::push_correlation_id(profiler::CorrelationFamily::custom_0, number);
    EXPECT_THAT(compute.fill(values.as<std::int32_t>(), 1, 1'024), Succeeds());
    for (int launch = 0; launch < 4; ++launch) {
      EXPECT_THAT(compute.launch(kernel, items(64), values.as<std::int32_t>(), 1), Succeeds());
    }
    Event computed;
    EXPECT_THAT(computed.record(compute), Succeeds());
    EXPECT_THAT(copies.wait(computed), Succeeds());
    EXPECT_THAT(copies.copy(staged.data(), values.data(), 4'096), Succeeds());
    EXPECT_THAT(copies.copy(on_host.data(), staged.data(), 256), Succeeds());
    Event copied;
    EXPECT_THAT(copied.record(copies), Succeeds());
    EXPECT_THAT(compute.wait(copied), Succeeds());  // the next step writes what is being copied
    profiler::ActivityApi::pop_correlation_id(profiler::CorrelationFamily::custom_0);
    if (step % 8 == 7) {
      EXPECT_THAT(copies.synchronize(), Succeeds());
    }
    xpu_annotate_pop();
  }
  EXPECT_THAT(compute.synchronize(), Succeeds());
  EXPECT_THAT(copies.synchronize(), Succeeds());
}

OWN_PROCESS_TEST(P1_StreamedTraceTest, ItHoldsWhatASessionOverTheSameTimeHolds) {
  const OwnFolder folder;
  for (int device = 0; device < kDevices; ++device) Stream::from_pool(0, device).value();
  profiler::Config config;
  config.with_memory = true;
  config.kinds.erase(profiler::ActivityKind::gpu_user_annotation);  // a stream has none
  config.kinds.erase(profiler::ActivityKind::overhead);             // that of starting and of fetching is told to whoever goes on
  profiler::Session whole(config);
  EXPECT_THAT(whole.start(), Succeeds());
  profiler::StreamingOptions options;
  options.output.path = folder.file("streamed.json");
  options.has_thread = false;
  const auto stream = profiler::StreamingExport::start(config, options);
  ASSERT_THAT(stream, Succeeds());

  std::atomic<int> working{3};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([thread, &working] {
      run_operators(thread, 60);
      --working;
    });
  }
  while (working != 0) {
    EXPECT_THAT((*stream)->advance(), Succeeds());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& thread : threads) thread.join();
  const auto streamed = (*stream)->finish();
  ASSERT_THAT(streamed, Succeeds());
  EXPECT_THAT(whole.stop(), Succeeds());
  profiler::ExportOptions at_once;
  at_once.path = folder.file("whole.json");
  const auto written = profiler::export_chrome(whole, at_once);
  ASSERT_THAT(written, Succeeds());

  const std::string trace = read_trace_file(options.output.path), expected = read_trace_file(at_once.path);
  // Where a clock is the host's own, to the nanosecond; elsewhere within the stated errors.
  const DeviceTimes times = runs_by_itself() ? DeviceTimes::exact : DeviceTimes::left_out;
  EXPECT_THAT(differences(comparable_events(trace, times), comparable_events(expected, times)), IsEmpty());
  EXPECT_EQ(comparable_figures(trace, times), comparable_figures(expected, times));
  const std::int64_t allowed_ns = largest_clock_error_ns(trace) + largest_clock_error_ns(expected);
  const std::map<std::string, std::int64_t> starts = device_starts(trace), expected_starts = device_starts(expected);
  EXPECT_EQ(starts.size(), 3u * 60 * 7);
  for (const auto& [call, start_ns] : starts) {
    ASSERT_TRUE(expected_starts.contains(call)) << call;
    EXPECT_LE(std::abs(start_ns - expected_starts.at(call)), allowed_ns) << call;
  }
  EXPECT_EQ(streamed->trace.kernels, 3u * 60 * 4);
  EXPECT_EQ(streamed->trace.flows, written->flows);
  EXPECT_EQ(streamed->links.pending + streamed->links.lost + streamed->links.orphans, 0u);
  const auto report = profiler::make_report(whole, {});
  ASSERT_THAT(report, Succeeds());
  EXPECT_EQ(streamed->books.total.submitted, report->conservation.submitted);
  EXPECT_EQ(streamed->books.total.recorded, report->conservation.recorded);
  EXPECT_EQ(streamed->books.total.unexplained, 0);
}

}  // namespace
}  // namespace xpu::acceptance
