#include <gtest/gtest.h>

#include <sstream>

#include "profiler/report/text_format.hpp"
#include "xpu/profiler/report.hpp"

namespace xpu::profiler {
namespace {

Report::Kernel kernel(std::string name, std::uint64_t calls, std::uint64_t total_ns, double share) {
  Report::Kernel row;
  row.name = row.raw_name = std::move(name);
  row.device = 0;
  row.calls = row.timed = calls;
  row.total_ns = total_ns;
  row.avg_ns = total_ns / calls;
  row.min_ns = total_ns / calls / 2;
  row.median_ns = total_ns / calls;
  row.p99_ns = total_ns / calls * 3 / 2;
  row.max_ns = total_ns / calls * 2;
  row.share = share;
  row.launch_delay_ns = {7'000, 9'000};
  return row;
}

/// What a person sees after recording a matrix multiplication.
Report usual_report() {
  Report report;
  report.program.path = "sgemm-20261129-204511.xpu";
  report.program.argv = {"./sgemm", "--size", "1024"};
  report.program.exit_code = 0;
  report.program.wall_ns = 2'413'000'000;
  report.processes = {{4'242, "sgemm", std::nullopt, "./sgemm --size 1024", true}};
  report.devices = {{0, "pthread-EPYC", "PoCL 3.1", 1'512'000'000, 611'000'000, 2'123'000'000, 10'503}};
  report.kernels = {kernel("multiply_tiles_with_a_long_name", 500, 1'203'500'000, 0.796), kernel("transpose", 10'000, 308'000'000, 0.2038),
                    kernel("clear", 1, 9'000, 0.000006)};
  report.copies = {{"host_to_device", 2, 0, 8u << 20, 800'000, 10'485'760'000}};
  report.api = {{"clFinish", 3, 0, 1'900'000'000, 1'200'000'000, true}, {"clEnqueueNDRangeKernel", 10'501, 0, 31'503'000, 90'000, false}};
  report.slowest_calls = {{"clFinish", 4'242, 4'242, 80'000'000, 1'200'000'000, 0, 1}};
  Report::Memory& memory = report.memory.emplace_back();
  memory.pid = 4'242;
  memory.context = 1;
  memory.peak_bytes = 12u << 20;
  memory.allocations = memory.releases = 3;
  memory.peak_ns = 90'000'000;
  memory.owners = {{"forward", 8u << 20, 2}, {"(no range)", 4u << 20, 1}};
  memory.timeline_bytes = {4u << 20, 12u << 20, 12u << 20, 1u << 20, 0};
  memory.timeline_start_ns = 70'000'000;
  memory.timeline_step_ns = 20'000'000;
  report.conservation.submitted = report.conservation.recorded = 10'503;
  Report::Clock clock;
  clock.pid = 4'242;
  clock.domain = ClockDomain::monotonic;
  clock.tick_ns = 1;
  clock.error_median_ns = 420;
  clock.error_max_ns = 3'200;
  clock.readings = 4;
  report.clocks = {clock};
  report.overhead = {12'300'000, 5'100'000};
  return report;
}

/// The same program killed, with commands lost, pending, refused and one that nothing explains.
Report troubled_report() {
  Report report = usual_report();
  report.program.exit_code.reset();
  report.program.signal = 9;
  report.program.finished = false;
  report.kernels.resize(1);
  report.kernels[0].failed = 2;
  report.copies.clear();
  report.api.clear();
  report.slowest_calls.clear();
  report.memory.clear();
  report.overhead = {};
  report.failed_calls = {{"clEnqueueNDRangeKernel", 4'242, 4'242, 90'000'000, 1'000, -54, 2}};
  Report::Conservation& books = report.conservation;
  books.recorded = 10'498;
  books.lost = 3;
  books.pending = 1;
  books.unexplained = 1;
  books.untimed = 4;
  books.refused = 2;
  books.pending_commands = {{"multiply", 4'242, 1, 95'000'000}};
  report.losses = {{"no_chunk", 4'242, 1, 3}};
  report.clocks[0].error_max_ns.reset();
  return report;
}

std::string text_of(const Report& report, int width = 100, bool wide = false) {
  ReportOptions options;
  options.width = width;
  options.wide = wide;
  return report_text(report, options);
}

TEST(ReportTextTest, ShowsAUsualRun) {
  EXPECT_EQ(text_of(usual_report()), R"(program    ./sgemm --size 1024  exit 0 after 2.41 s
recording  sgemm-20261129-204511.xpu
device 0   pthread-EPYC (PoCL 3.1)  busy 71.2 % of 2.12 s, idle 611 ms
commands   10,503 submitted: 10,501 kernels, 2 copies; none lost

Kernels                        calls  total ms  share %  avg µs  median µs  p99 µs  max µs  delay µs
multiply_tiles…h_a_long_name     500  1203.500     79.6  2407.0     2407.0  3610.5  4814.0     7.000
transpose                     10,000   308.000     20.4    30.8       30.8    46.2    61.6     7.000
clear                              1     0.009     <0.1     9.0        9.0    13.5    18.0     7.000

Copies          calls    bytes  total µs   GB/s
host to device      2  8.0 MiB     800.0  10.49

Calls on the host        calls  total ms   avg ms    max ms
clFinish (waits)             3    1900.0  633.333  1200.000
clEnqueueNDRangeKernel  10,501      31.5    0.003     0.090

slowest    clFinish 1.20 s at 80.0 ms

Memory         peak  alive at end  allocated  released
context 1  12.0 MiB           0 B          3         3
in time    ▃██▁ ; from 70.0 ms to 170 ms, peak at 90.0 ms
at peak    forward 8.0 MiB in 2 blocks; (no range) 4.0 MiB in 1 block

books      10,503 submitted = 10,503 recorded + 0 lost + 0 pending; 0 unexplained
clock      device 0: error at most 3.20 µs, median 420 ns; 4 readings, tick 1 ns, monotonic
overhead   about 12.3 ms in the program (0.5 % of its time); 5.10 ms CPU in the recorder
)");
}

TEST(ReportTextTest, FitsIntoEightyColumns) {
  EXPECT_EQ(text_of(usual_report(), 80), R"(program    ./sgemm --size 1024  exit 0 after 2.41 s
recording  sgemm-20261129-204511.xpu
device 0   pthread-EPYC (PoCL 3.1)  busy 71.2 % of 2.12 s, idle 611 ms
commands   10,503 submitted: 10,501 kernels, 2 copies; none lost

Kernels                      calls  total ms  share %  avg µs  median µs  max µs
multiply_tile…_a_long_name     500  1203.500     79.6  2407.0     2407.0  4814.0
transpose                   10,000   308.000     20.4    30.8       30.8    61.6
clear                            1     0.009     <0.1     9.0        9.0    18.0

Copies          calls    bytes  total µs   GB/s
host to device      2  8.0 MiB     800.0  10.49

Calls on the host        calls  total ms   avg ms    max ms
clFinish (waits)             3    1900.0  633.333  1200.000
clEnqueueNDRangeKernel  10,501      31.5    0.003     0.090

slowest    clFinish 1.20 s at 80.0 ms

Memory         peak  alive at end  allocated  released
context 1  12.0 MiB           0 B          3         3
in time    ▃██▁ ; from 70.0 ms to 170 ms, peak at 90.0 ms
at peak    forward 8.0 MiB in 2 blocks; (no range) 4.0 MiB in 1 block

books      10,503 submitted = 10,503 recorded + 0 lost + 0 pending;
           0 unexplained
clock      device 0: error at most 3.20 µs, median 420 ns;
           4 readings, tick 1 ns, monotonic
overhead   about 12.3 ms in the program (0.5 % of its time);
           5.10 ms CPU in the recorder
)");
}

TEST(ReportTextTest, ShowsWhatWentWrong) {
  EXPECT_EQ(text_of(troubled_report()), R"(program    ./sgemm --size 1024  killed by SIGKILL after 2.41 s
recording  sgemm-20261129-204511.xpu
           the recording was not finished
device 0   pthread-EPYC (PoCL 3.1)  busy 71.2 % of 2.12 s, idle 611 ms
commands   10,503 submitted: 500 kernels; 3 lost; 1 pending

Kernels                          calls  failed  total ms  share %  avg µs  median µs  p99 µs  max µs
multiply_tiles_with_a_long_name    500       2    1203.5     79.6  2407.0     2407.0  3610.5  4814.0

failed     clEnqueueNDRangeKernel returned -54, 2 times, first at 90.0 ms

books      10,503 submitted = 10,498 recorded + 3 lost + 1 pending; 1 UNEXPLAINED
           4 without times; 2 calls refused by the driver
lost       3 on queue 1: no_chunk
pending    multiply on queue 1, submitted at 95.0 ms
clock      device 0: no command was placed in host time; 4 readings, tick 1 ns, monotonic
)");
}

TEST(ReportTextTest, HasNoLineWiderThanTheTerminal) {
  for (const int width : {80, 100, 120}) {
    std::istringstream lines(text_of(usual_report(), width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
  }
}

TEST(ReportTextTest, LeavesNothingOutWhenWide) {
  Report report = usual_report();
  report.kernels[0].name = std::string(300, 'k');
  const std::string text = text_of(report, 80, true);
  EXPECT_NE(text.find(report.kernels[0].name), std::string::npos);
  EXPECT_NE(text.find("p99"), std::string::npos);
  EXPECT_NE(text.find("delay"), std::string::npos);
}

TEST(ReportTextTest, IsPlainUnlessColorIsWanted) {
  EXPECT_EQ(text_of(usual_report()).find('\x1b'), std::string::npos);
  ReportOptions options;
  options.color = true;
  EXPECT_NE(report_text(usual_report(), options).find('\x1b'), std::string::npos);
}

TEST(ReportTextTest, LetsNoForeignNameReachTheTerminalAsItIs) {
  Report report = usual_report();
  report.kernels[0].name = "\x1b[2Jgone";
  report.program.argv = {"a\nb"};
  report.devices[0].name = "\x07";
  EXPECT_EQ(text_of(report).find('\x1b'), std::string::npos);
  EXPECT_EQ(text_of(report).find('\x07'), std::string::npos);
  EXPECT_NE(text_of(report).find("a?b"), std::string::npos);
}

TEST(ReportTextTest, ShowsTheTopAndSaysHowManyMoreThereAre) {
  Report report = usual_report();
  ReportOptions options;
  options.top = 1;
  const std::string text = report_text(report, options);
  EXPECT_EQ(text.find("transpose"), std::string::npos);
  EXPECT_NE(text.find("… and 2 more (--top 0 shows all)"), std::string::npos);
  options.top = 0;
  EXPECT_NE(report_text(report, options).find("clear"), std::string::npos);
}

TEST(ReportTextTest, ShowsARecordingInWhichNothingHappened) {
  Report report;
  report.program.argv = {"true"};
  report.program.exit_code = 0;
  EXPECT_EQ(text_of(report),
            "program    true  exit 0\n"
            "commands   0 submitted; none lost\n"
            "\n"
            "books      0 submitted = 0 recorded + 0 lost + 0 pending; 0 unexplained\n");
}

}  // namespace
}  // namespace xpu::profiler
