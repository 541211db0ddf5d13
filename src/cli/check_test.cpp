#include "cli/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace xpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

profiler::Report whole_report() {
  profiler::Report report;
  report.program.path = "/here/a.xpu";
  report.conservation.submitted = 3;
  report.conservation.recorded = 2;
  report.conservation.lost = 1;
  report.conservation.queues = {{77, 1, 3, 2, 1, 0, 0, 0, 0}};
  report.losses = {{"no_chunk", 77, 1, 1}};
  report.devices.resize(1);
  report.devices[0].name = "a device";
  profiler::Report::Clock clock;
  clock.pid = 77;
  clock.readings = 12;
  clock.error_median_ns = 100;
  clock.error_max_ns = 1'500;
  report.clocks = {clock};
  return report;
}

TEST(Check, CountedLossesAreNoProblem) {
  const profiler::Report report = whole_report();
  EXPECT_THAT(find_problems(report), IsEmpty());
  const std::string text = check_text(report);
  EXPECT_THAT(text, HasSubstr("OK: 3 commands, 1 lost, 0 pending, nothing unexplained"));
  EXPECT_THAT(text, HasSubstr("lost in queue 1 of process 77: 1 (no_chunk)"));
  EXPECT_THAT(text, HasSubstr("clock of device 0 (a device) in process 77: 12 readings, error at most 1.50 µs (median 100 ns)"));
}

TEST(Check, AQueueThatDoesNotBalanceIsNamed) {
  profiler::Report report = whole_report();
  report.conservation.queues[0].unexplained = 1;
  report.conservation.unexplained = 1;
  EXPECT_THAT(find_problems(report), ElementsAre(HasSubstr("queue 1 of process 77: 1 unexplained")));
  EXPECT_THAT(check_text(report), HasSubstr("WRONG: queue 1"));
  EXPECT_THAT(check_text(report), Not(HasSubstr("OK:")));
}

TEST(Check, TwoQueuesThatCancelOutAreStillWrong) {
  profiler::Report report = whole_report();
  report.conservation.queues.push_back(report.conservation.queues[0]);
  report.conservation.queues[0].unexplained = 1;
  report.conservation.queues[1].unexplained = -1;
  EXPECT_EQ(find_problems(report).size(), 2u);
}

TEST(Check, DamageIsAProblem) {
  profiler::Report report = whole_report();
  report.program.damage = "cut off";
  EXPECT_THAT(find_problems(report), ElementsAre("damage: cut off"));
}

TEST(Check, TheDocumentSaysTheSame) {
  const auto document = nlohmann::json::parse(check_json(whole_report()));
  EXPECT_EQ(document["schema"], "xpu.check/1");
  EXPECT_EQ(document["ok"], true);
  EXPECT_TRUE(document["damage"].is_null());
  EXPECT_EQ(document["conservation"]["lost"], 1);
  EXPECT_EQ(document["queues"][0]["process"], 77);
  EXPECT_EQ(document["clocks"][0]["error_ns"]["max"], 1'500);
}

TEST(Check, UnknownIsNullAndStrangeBytesAreReplaced) {
  profiler::Report report = whole_report();
  report.clocks[0].error_max_ns.reset();
  report.conservation.pending_commands = {{"\xff\"\n", 77, 1, -5}};
  const auto document = nlohmann::json::parse(check_json(report));
  EXPECT_TRUE(document["clocks"][0]["error_ns"]["max"].is_null());
  EXPECT_EQ(document["pending_commands"][0]["name"], "\xef\xbf\xbd\"\n");
}

}  // namespace
}  // namespace xpu::cli
