#include "cli/record_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

profiler::Report complete_report() {
  profiler::Report report;
  report.conservation.submitted = 12'345;
  report.conservation.recorded = 12'345;
  report.kernels.resize(2);
  report.kernels[0].calls = 11'000;
  report.kernels[1].calls = 1'000;
  report.devices.resize(1);
  report.devices[0].busy_ns = 1'230'000'000;
  return report;
}

TEST(RecordSummary, SaysCountsTimePlaceAndTheNextCommand) {
  EXPECT_EQ(summary_line(complete_report(), "clpeak-20260101-120000.xpu"),
            "12,345 commands (12,000 kernels), device busy 1.23 s, 0 lost -> clpeak-20260101-120000.xpu"
            "   next: xpu report clpeak-20260101-120000");
}

TEST(RecordSummary, ACompleteRecordingNeedsNoWarning) { EXPECT_THAT(summary_warnings(complete_report()), IsEmpty()); }

TEST(RecordSummary, UnknownBusyTimeIsNotZero) {
  profiler::Report report = complete_report();
  report.devices[0].busy_ns.reset();
  EXPECT_THAT(summary_line(report, "a.xpu"), HasSubstr("device busy not known"));
}

TEST(RecordSummary, SeveralDevicesAreAddedUp) {
  profiler::Report report = complete_report();
  report.devices.resize(2);
  report.devices[1].busy_ns = 770'000'000;
  EXPECT_THAT(summary_line(report, "a.xpu"), HasSubstr("devices busy 2.00 s"));
}

TEST(RecordSummary, WhatWasFilteredIsNotCalledLost) {
  profiler::Report report = complete_report();
  report.conservation.filtered = 1'000;
  EXPECT_THAT(summary_line(report, "a.xpu"), HasSubstr("0 lost, 1,000 not wanted"));
}

TEST(RecordSummary, EverythingThatIsMissingIsSaidInWords) {
  profiler::Report report = complete_report();
  report.conservation.lost = 7;
  report.losses = {{"no_chunk", 1, 1, 4}, {"ring_full", 1, 1, 1}, {"no_chunk", 1, 2, 2}};
  report.conservation.other_records_lost = 1;
  report.conservation.pending = 1;
  report.conservation.pending_commands = {{"gemm", 1, 1, 5}};
  report.conservation.untimed = 2;
  report.conservation.unexplained = -3;
  report.program.damage = "the last section is cut off";
  EXPECT_THAT(summary_warnings(report),
              ElementsAre("7 commands lost (no_chunk 6, ring_full 1)", "1 record of waits, calls or memory lost",
                          "1 command had not finished when the program ended, the oldest: gemm", "the driver gave no times for 2 commands",
                          HasSubstr("-3 commands are unexplained"), "the recording is damaged: the last section is cut off"));
}

TEST(RecordSummary, APathThatAShellWouldSplitIsQuoted) {
  EXPECT_THAT(summary_line(complete_report(), "a b.xpu"), HasSubstr("-> 'a b.xpu'   next: xpu report 'a b'"));
}

}  // namespace
}  // namespace xpu::cli
