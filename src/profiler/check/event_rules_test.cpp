#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/test_support/written_trace.hpp"

/// The rules about a single event and about the text as a whole, each broken and kept.
namespace xpu::profiler {
namespace {

using test_support::findings_in;
using test_support::first_place;
using test_support::WrittenTrace;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(EventRulesTest, AWholeTraceHasNoFinding) {
  EXPECT_THAT(findings_in(WrittenTrace().add_launch(1, 0.5).add_launch(2, 30)), IsEmpty());
  EXPECT_THAT(findings_in(R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1}])"), IsEmpty()) << "the list alone is a trace too";
}

TEST(EventRulesTest, InvalidJson) {
  std::string text = WrittenTrace().add_launch(1, 0.5).text();
  EXPECT_THAT(findings_in(text.substr(0, text.size() - 3)), ElementsAre("invalid-json: 1"));
  text.insert(text.rfind("\n]"), ",");
  EXPECT_THAT(findings_in(text), ElementsAre("invalid-json: 1")) << "a comma behind the last event";
}

TEST(EventRulesTest, ATextWithoutEventsIsNoTrace) {
  EXPECT_THAT(findings_in("{\"a\":1}"), ElementsAre(HasSubstr("no list \"traceEvents\"")));
  EXPECT_THAT(findings_in("no trace at all"), ElementsAre(HasSubstr("byte 2")));
}

TEST(EventRulesTest, NoEvents) { EXPECT_THAT(findings_in(WrittenTrace()), ElementsAre("no-events: 1")); }

TEST(EventRulesTest, MissingKey) {
  const std::vector<std::string> incomplete = {
      R"({"name":"a"})",
      R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":0})",
      R"({"ph":"X","name":"a","pid":1,"tid":1,"dur":0})",
      R"({"ph":"X","name":"a","pid":1,"ts":0,"dur":0})",
      R"({"ph":"X","name":"a","tid":1,"ts":0,"dur":0})",
      R"({"ph":"X","pid":1,"tid":1,"ts":0,"dur":0})",
      R"({"ph":"E","pid":1,"ts":0})",
      R"({"ph":"i","name":"a"})",
      R"({"ph":"C","name":"a","pid":1,"ts":0})",
      R"({"ph":"M","name":"process_name","pid":1})",
      R"({"ph":"M","name":"process_name","pid":1,"args":{}})",
      R"({"ph":"M","name":"thread_name","pid":1,"args":{"name":"a"}})",
      R"({"ph":"s","name":"a","cat":"c","pid":1,"tid":1,"ts":0})",
      R"({"ph":"b","name":"a","cat":"c","ts":0})",
  };
  for (const std::string& event : incomplete) EXPECT_THAT(findings_in(WrittenTrace().add(event)), ElementsAre("missing-key: 1")) << event;
  EXPECT_EQ(first_place(WrittenTrace().add(incomplete[1]), "missing-key").detail, "no dur, which ph \"X\" needs");
}

TEST(EventRulesTest, EachPhaseNeedsOnlyItsOwnKeys) {
  const std::vector<std::string> complete = {
      R"({"ph":"X","name":"a","pid":"Spans","tid":"a","ts":0,"dur":0})",
      R"({"ph":"i","s":"g","name":"a","ts":0})",
      R"({"ph":"C","name":"a","pid":1,"ts":0,"args":{"":1}})",
      R"({"ph":"M","name":"process_name","pid":1,"args":{"name":""}})",
      R"({"ph":"b","cat":"c","id":"0x1","ts":0})",
      R"({"ph":"N"})",
  };
  for (const std::string& event : complete) EXPECT_THAT(findings_in(WrittenTrace().add(event)), IsEmpty()) << event;
}

TEST(EventRulesTest, WrongType) {
  const std::vector<std::string> wrong = {
      "5",
      "[]",
      R"({"ph":1})",
      R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":"0","dur":0})",
      R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":null})",
      R"({"ph":"X","name":5,"pid":1,"tid":1,"ts":0,"dur":0})",
      R"({"ph":"X","name":"a","cat":[],"pid":1,"tid":1,"ts":0,"dur":0})",
      R"({"ph":"X","name":"a","pid":{},"tid":1,"ts":0,"dur":0})",
      R"({"ph":"X","name":"a","pid":1,"tid":true,"ts":0,"dur":0})",
      R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":0,"args":[]})",
      R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1e30,"dur":0})",
      R"({"ph":"C","name":"a","pid":1,"ts":0,"args":{"x":"1"}})",
  };
  for (const std::string& event : wrong) EXPECT_THAT(findings_in(WrittenTrace().add(event)), ElementsAre("wrong-type: 1")) << event;
  EXPECT_EQ(first_place(WrittenTrace().add(wrong[3]), "wrong-type").detail, "ts is a string, not a number");
}

TEST(EventRulesTest, UnknownPhase) {
  EXPECT_THAT(findings_in(WrittenTrace().add(R"({"ph":"Y"})")), ElementsAre("unknown-phase: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add(R"({"ph":"XX"})")), ElementsAre("unknown-phase: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add(R"({"ph":"P"})")), IsEmpty()) << "a sample: of the format, though no rule looks at it";
}

TEST(EventRulesTest, NegativeTime) {
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "a", 1, 1, -0.001, 1)), ElementsAre("negative-time: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "a", 1, 1, 0, 1)), IsEmpty());
}

TEST(EventRulesTest, NegativeDuration) {
  const WrittenTrace trace = WrittenTrace().add_slice("cpu_op", "a", 1, 1, 5, -0.001);
  EXPECT_THAT(findings_in(trace), ElementsAre("negative-duration: 1"));
  EXPECT_EQ(first_place(trace, "negative-duration").time_ns, 5'000);
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "a", 1, 1, 5, 0)), IsEmpty());
}

TEST(EventRulesTest, EmptyName) {
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "", 1, 1, 5, 1)), ElementsAre("empty-name: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", " ", 1, 1, 5, 1)), IsEmpty());
}

TEST(EventRulesTest, UnknownName) {
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "Unknown", 1, 1, 5, 1)), ElementsAre("unknown-name: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "unknown_op", 1, 1, 5, 1)), IsEmpty());
}

TEST(EventRulesTest, KeepsTheFirstPlacesOfTheFileAndCountsAll) {
  WrittenTrace trace;
  for (int i = 0; i < 10; ++i) trace.add_slice("cpu_op", i < 4 ? "fine" : "", 1, 1, 100 - 10 * i, 1);
  TraceChecker::Options options;
  options.places = 2;
  std::istringstream input(trace.text());
  const auto check = TraceChecker(options).check(input);
  ASSERT_TRUE(check);
  ASSERT_EQ(check->findings.size(), 1u);
  EXPECT_EQ(check->findings[0].count, 6u);
  ASSERT_EQ(check->findings[0].places.size(), 2u);
  EXPECT_EQ(check->findings[0].places[0].event, 4u);
  EXPECT_EQ(check->findings[0].places[1].event, 5u);
  EXPECT_FALSE(check->ok());
}

}  // namespace
}  // namespace xpu::profiler
