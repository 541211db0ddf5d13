#include "profiler/check/trace_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace xpu::profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Type = TraceValue::Type;

struct Parsed {
  ParsedTrace result;
  std::vector<TraceEvent> events;
  std::vector<std::string> values;  // "path/to=text"
};

Parsed parse(const std::string& text) {
  Parsed parsed;
  std::istringstream input(text);
  parsed.result = parse_trace(input, {[&](const TraceEvent& event) { parsed.events.push_back(event); },
                                      [&](std::span<const std::string> path, const TraceValue& value) {
                                        std::string line;
                                        for (const std::string& key : path) line += (line.empty() ? "" : "/") + key;
                                        parsed.values.push_back(line + "=" + value.text);
                                      }});
  return parsed;
}

TEST(TraceParserTest, ReadsWhatRulesLookAt) {
  const Parsed parsed = parse(
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":"s","ts":1.5,"dur":2,"id":7,"bp":"e",
          "args":{"correlation":3,"device":1,"clock error ns":40}}]})");
  EXPECT_TRUE(parsed.result.has_events);
  EXPECT_FALSE(parsed.result.problem);
  ASSERT_EQ(parsed.events.size(), 1u);
  const TraceEvent& event = parsed.events[0];
  EXPECT_EQ(event.letter(), 'X');
  EXPECT_EQ(event.category.text, "kernel");
  EXPECT_EQ(event.name.text, "a");
  EXPECT_EQ(event.pid.integer, 0);
  EXPECT_EQ(event.tid.text, "s");
  EXPECT_EQ(event.time.thousandths, 1'500);
  EXPECT_EQ(event.duration.thousandths, 2'000);
  EXPECT_EQ(event.end_ns(), 3'500);
  EXPECT_EQ(event.id.integer, 7);
  EXPECT_EQ(event.binding_point.text, "e");
  EXPECT_EQ(event.args.type, Type::object);
  EXPECT_EQ(event.details.correlation.integer, 3);
  EXPECT_EQ(event.details.device.integer, 1);
  EXPECT_EQ(event.details.clock_error_ns.integer, 40);
}

TEST(TraceParserTest, KnowsAnArgumentFromAKeyOfTheEventOrOfSomethingDeeper) {
  const Parsed parsed = parse(
      R"([{"ph":"X","extra":{"name":"no","correlation":1},"args":{"name":"of args","deep":{"correlation":5,"args":{"correlation":6}},
          "list":[{"correlation":7}]},"name":"of event","correlation":8}])");
  ASSERT_EQ(parsed.events.size(), 1u);
  EXPECT_EQ(parsed.events[0].name.text, "of event");
  EXPECT_EQ(parsed.events[0].details.name.text, "of args");
  EXPECT_FALSE(parsed.events[0].details.correlation.present());
}

TEST(TraceParserTest, BeginsEachEventAnew) {
  const Parsed parsed = parse(R"([{"ph":"X","name":"a","ts":1,"args":{"correlation":3,"x":1}},{"ph":"i"}])");
  ASSERT_EQ(parsed.events.size(), 2u);
  EXPECT_EQ(parsed.events[1].index, 1u);
  EXPECT_FALSE(parsed.events[1].name.present());
  EXPECT_FALSE(parsed.events[1].time.thousandths);
  EXPECT_FALSE(parsed.events[1].details.correlation.present());
  EXPECT_FALSE(parsed.events[1].details.has_number);
}

TEST(TraceParserTest, HandsOverElementsThatAreNoObjects) {
  const Parsed parsed = parse(R"([5,"a",[1,[2]],null,{},{"ph":"i"}])");
  std::vector<bool> objects;
  for (const TraceEvent& event : parsed.events) objects.push_back(event.is_object);
  EXPECT_THAT(objects, ElementsAre(false, false, false, false, true, true));
  EXPECT_EQ(parsed.events[5].letter(), 'i');
}

TEST(TraceParserTest, HandsOverValuesOfTheDocumentWithTheirPaths) {
  const Parsed parsed = parse(
      R"({"a":1,"clocks":[{"device":0,"x":"y"},{"device":1,"deep":{"no":1}}],"list":[1,[2],3],"traceEvents":[{"ph":"i"}],"o":{"k":true},"z":null})");
  EXPECT_THAT(parsed.values, ElementsAre("a=1", "clocks/0/device=0", "clocks/0/x=y", "clocks/1/device=1", "list/0=1", "list/1/0=2",
                                         "list/2=3", "o/k=true", "z=null"));
}

TEST(TraceParserTest, FindsTheListOfEventsAtTheTopOnly) {
  EXPECT_FALSE(parse(R"({"deep":{"traceEvents":[{"ph":"i"}]}})").result.has_events);
  EXPECT_FALSE(parse(R"({"traceEvents":{}})").result.has_events);
  EXPECT_FALSE(parse("5").result.has_events);
  EXPECT_FALSE(parse("").result.has_events);
  EXPECT_TRUE(parse("[]").result.has_events);
  EXPECT_TRUE(parse("\xef\xbb\xbf {\"traceEvents\":[]}").result.has_events) << "a mark of UTF-8 before it";
}

TEST(TraceParserTest, SaysWhereTheTextBreaksOff) {
  const Parsed parsed = parse(R"({"traceEvents":[{"ph":"i"},{"ph":"X","na)");
  EXPECT_TRUE(parsed.result.has_events);
  EXPECT_EQ(parsed.result.events, 1u);
  ASSERT_TRUE(parsed.result.problem);
  EXPECT_THAT(*parsed.result.problem, HasSubstr("byte 4"));
  EXPECT_TRUE(parse(R"({"traceEvents":[]} more)").result.problem);
  EXPECT_TRUE(parse("[{\"name\":\"\x80\"}]").result.problem) << "no UTF-8";
  EXPECT_TRUE(parse("[1e999]").result.problem);
  EXPECT_TRUE(parse("[{},]").result.problem);
}

TEST(TraceParserTest, SurvivesDepth) {
  const std::string open(200'000, '['), closed(200'000, ']');
  const Parsed parsed = parse(open + closed);
  EXPECT_FALSE(parsed.result.problem);
  EXPECT_EQ(parsed.events.size(), 1u);
  EXPECT_THAT(parse("{\"a\":" + open + closed + "}").values, IsEmpty());
}

}  // namespace
}  // namespace xpu::profiler
