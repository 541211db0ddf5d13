#include "profiler/report/range_usage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "profiler/report/build_report.hpp"
#include "profiler/test_support/scripted_source.hpp"

namespace xpu::profiler {
namespace {

using probe::AnnotationType;
using test_support::ScriptedSource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Report report_of(const ScriptedSource& source, const ReportOptions& options = {}) {
  Result<Report> report = build_report(source, {}, options);
  EXPECT_TRUE(report) << report.error().message;
  return *std::move(report);
}

/// name, calls, host, host self, commands, device, device self; -1 for what is not known.
using Row = std::tuple<std::string, int, int, int, int, int, int>;
std::vector<Row> rows_of(const Report& report) {
  const auto known = [](const std::optional<std::uint64_t>& figure) { return figure ? static_cast<int>(*figure) : -1; };
  std::vector<Row> rows;
  for (const Report::Range& range : report.ranges) {
    rows.emplace_back(range.name, static_cast<int>(range.calls), known(range.host_ns), known(range.host_self_ns),
                      static_cast<int>(range.commands), known(range.device_ns), known(range.device_self_ns));
  }
  return rows;
}

class RangeUsageTest : public testing::Test {
 protected:
  RangeUsageTest() { source_.add_simple_process(); }

  void begin(std::uint64_t time_ns, std::string_view name, std::uint32_t writer = 1) {
    source_.add_annotation(AnnotationType::begin, time_ns, name, 0, writer);
  }
  void end(std::uint64_t time_ns, std::uint32_t writer = 1) { source_.add_annotation(AnnotationType::end, time_ns, "", 0, writer); }
  /// A command that is submitted then, and runs much later.
  void submit(std::uint64_t time_ns, std::uint64_t duration_ns, probe::Command command = probe::Command::ndrange_kernel) {
    device_ns_ += 1'000;
    source_.add_command(
        {.start = device_ns_, .end = device_ns_ + duration_ns, .enter_ns = time_ns, .exit_ns = time_ns + 1, .command = command});
  }
  /// 10 ns in forward and 300 in step itself, 7 of a copy in the second forward, 5 in no range.
  void two_steps() {
    begin(2'000, "step");
    begin(2'100, "forward");
    submit(2'150, 10);
    end(2'200);
    submit(2'210, 300);
    begin(2'300, "forward");
    submit(2'310, 7, probe::Command::read);
    submit(2'320, 1'000, probe::Command::marker);
    end(2'350);
    end(2'500);
    submit(2'600, 5);
  }

  ScriptedSource source_;
  std::uint64_t device_ns_ = 100'000;
};

TEST_F(RangeUsageTest, TimesAreOfARangeAndOfItselfAlone) {
  two_steps();
  source_.shuffle(3);
  EXPECT_THAT(rows_of(report_of(source_)), ElementsAre(Row("step", 1, 500, 350, 3, 317, 300), Row("forward", 2, 150, 150, 2, 17, 17),
                                                       Row("(no range)", 0, -1, -1, 1, 5, 5)));
}

TEST_F(RangeUsageTest, WithoutRangesThereIsNoTable) {
  submit(2'150, 10);
  source_.add_annotation(AnnotationType::mark, 2'000, "mark");
  EXPECT_THAT(report_of(source_).ranges, IsEmpty());
}

TEST_F(RangeUsageTest, ARangeInsideOfOneOfItsNameCountsOnce) {
  begin(2'000, "solve");
  begin(2'100, "solve");
  submit(2'150, 10);
  end(2'200);
  end(2'300);
  EXPECT_THAT(rows_of(report_of(source_)), ElementsAre(Row("solve", 2, 300, 300, 1, 10, 10)));
}

TEST_F(RangeUsageTest, ThreadsHaveRangesOfTheirOwn) {
  source_.add_thread(2, 101);
  begin(2'000, "loader", 2);
  submit(2'100, 10);  // by the first thread
  end(2'200, 2);
  EXPECT_THAT(rows_of(report_of(source_)), ElementsAre(Row("(no range)", 0, -1, -1, 1, 10, 10), Row("loader", 1, 200, 200, 0, -1, -1)));
}

TEST_F(RangeUsageTest, ARangeThatNeverEndedHasNoTimeOnTheHost) {
  begin(2'000, "outer");
  begin(2'100, "inner");
  end(2'200);
  submit(9'000, 10);
  EXPECT_THAT(rows_of(report_of(source_)), ElementsAre(Row("outer", 1, -1, -1, 1, 10, 10), Row("inner", 1, 100, 100, 0, -1, -1)));
}

TEST_F(RangeUsageTest, TheOwnDeviceTimesOfAllRowsAreAllDeviceTime) {
  two_steps();
  std::uint64_t sum_ns = 0;
  for (const Report::Range& range : report_of(source_).ranges) sum_ns += range.device_self_ns.value_or(0);
  EXPECT_EQ(sum_ns, 10u + 300u + 7u + 5u);
}

TEST_F(RangeUsageTest, RowsAreSortedAndFiltered) {
  two_steps();
  const auto names = [&](const ReportOptions& options) {
    std::vector<std::string> all;
    for (const Report::Range& range : report_of(source_, options).ranges) all.push_back(range.name);
    return all;
  };
  EXPECT_THAT(names({.sort = "calls"}), ElementsAre("forward", "step", "(no range)"));
  EXPECT_THAT(names({.sort = "name"}), ElementsAre("(no range)", "forward", "step"));
  EXPECT_THAT(names({.ranges_regex = "^(step|for)"}), ElementsAre("step", "forward"));
  EXPECT_THAT(build_report(source_, {}, {.ranges_regex = "("}).error().message, HasSubstr("'(' is not a regular expression"));
}

TEST_F(RangeUsageTest, TextJsonAndCsvSayTheSame) {
  two_steps();
  const Report report = report_of(source_);
  const std::string text = report_text(report, {});
  EXPECT_THAT(text, HasSubstr("Annotated ranges  calls  host ns  host self ns  commands  device ns  device self ns"));
  EXPECT_THAT(text, testing::ContainsRegex("forward +2 +150 +150 +2 +17 +17\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\\(no range\\) +- +- +- +1 +5 +5\n"));
  EXPECT_EQ(report_csv(report, ReportTable::ranges),
            "name,calls,host_ns,host_self_ns,commands,device_ns,device_self_ns\n"
            "step,1,500,350,3,317,300\n"
            "forward,2,150,150,2,17,17\n"
            "(no range),0,,,1,5,5\n");
  const nlohmann::json json = nlohmann::json::parse(report_json(report));
  ASSERT_EQ(json["ranges"].size(), 3u);
  EXPECT_EQ(json["ranges"][0]["name"], "step");
  EXPECT_EQ(json["ranges"][0]["device_self_ns"], 300);
  EXPECT_TRUE(json["ranges"][2]["host_ns"].is_null());
  EXPECT_THAT(report_text(report_of(source_, {.ranges_regex = "nothing"}), {.ranges_regex = "nothing"}),
              HasSubstr("No annotated range matches 'nothing'."));
}

TEST_F(RangeUsageTest, CallsAreATableToo) {
  source_.add_call("clCreateBuffer", 1'000, 1'250);
  EXPECT_EQ(report_csv(report_of(source_), ReportTable::calls),
            "name,calls,failed,total_ns,max_ns,waits\nclCreateBuffer,1,0,250,250,false\n");
}

}  // namespace
}  // namespace xpu::profiler
