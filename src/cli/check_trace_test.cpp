#include "cli/check_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "cli/text.hpp"

namespace xpu::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

profiler::TraceCheck checked(const std::string& events) {
  std::istringstream input("{\"traceEvents\":[" + events + "]}");
  auto check = profiler::TraceChecker().check(input);
  EXPECT_TRUE(check);
  check->path = "/here/a.json";
  return *check;
}

constexpr const char* kRight = R"({"ph":"X","cat":"cpu_op","name":"add","pid":1,"tid":1,"ts":12.5,"dur":1})";
constexpr const char* kWrong = R"({"ph":"X","cat":"kernel","name":"\u001b[31m\"gemm\"","pid":0,"tid":1,"ts":12.5,"dur":-1})";

TEST(CheckTrace, ARightTraceEndsInAVerdict) {
  const std::string text = check_trace_text(checked(kRight));
  EXPECT_THAT(text, HasSubstr("/here/a.json\n  trace of 1 event: 1 slice (0 of kernels), 0 arrows\n"));
  EXPECT_THAT(text, EndsWith("\nOK: 0 errors, 0 warnings, 0 notes\n"));
  EXPECT_THAT(text, Not(HasSubstr("finding")));
}

TEST(CheckTrace, AWrongOneNamesRulesAndPlaces) {
  const std::string text = check_trace_text(checked(kWrong));
  EXPECT_THAT(text, HasSubstr("  negative-duration          error             1  dur is below 0\n"
                              "      event 0 at 12.500 µs \"?[31m\"gemm\"\": dur is -1\n"));
  EXPECT_THAT(text, HasSubstr("  device-without-correlation warning           1  "));
  EXPECT_THAT(text, EndsWith("\nWRONG: 1 error, 1 warning, 0 notes\n"));
}

TEST(CheckTrace, WarningsDoNotMakeATraceWrong) {
  EXPECT_THAT(check_trace_text(checked(R"({"ph":"Y"})")), EndsWith("\nOK: 0 errors, 1 warning, 0 notes\n"));
}

TEST(CheckTrace, NamesOfAnyLengthAreCutBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 1'000; ++i) name += "µ";
  const std::string text = check_trace_text(checked(R"({"ph":"X","name":")" + name + R"(","pid":1,"tid":1,"ts":-1,"dur":1})"));
  EXPECT_THAT(text, HasSubstr("µ...\""));
  EXPECT_LT(text.size(), 1'000u);
  EXPECT_EQ(printable(text), std::regex_replace(text, std::regex("\n"), "?")) << "no character is in pieces";
}

TEST(CheckTrace, TheDocumentSaysTheSame) {
  const auto document = nlohmann::json::parse(check_trace_json(checked(kWrong)));
  EXPECT_EQ(document["schema"], "xpu.check_trace/1");
  EXPECT_EQ(document["path"], "/here/a.json");
  EXPECT_EQ(document["ok"], false);
  EXPECT_EQ(document["errors"], 1);
  EXPECT_EQ(document["warnings"], 1);
  EXPECT_EQ(document["events"], 1);
  EXPECT_EQ(document["device_slices"]["count"], 1);
  EXPECT_EQ(document["calls"]["count"], 0);
  const auto& finding = document["findings"][0];
  EXPECT_EQ(finding["rule"], "negative-duration");
  EXPECT_EQ(finding["severity"], "error");
  EXPECT_EQ(finding["count"], 1);
  EXPECT_EQ(finding["places"][0]["event"], 0);
  EXPECT_EQ(finding["places"][0]["name"], "\x1b[31m\"gemm\"");
  EXPECT_EQ(finding["places"][0]["time_ns"], 12'500);
}

TEST(CheckTrace, WhatConcernsTheFileHasNoEvent) {
  const auto document = nlohmann::json::parse(check_trace_json(checked("")));
  EXPECT_TRUE(document["findings"][0]["places"][0]["event"].is_null());
  EXPECT_TRUE(document["findings"][0]["places"][0]["time_ns"].is_null());
  EXPECT_THAT(check_trace_text(checked("")), HasSubstr("      the file: traceEvents is []\n"));
}

TEST(CheckTrace, TheHelpHasEveryRule) {
  const std::string text = trace_rules_text();
  for (const profiler::TraceRule& rule : profiler::trace_rules()) EXPECT_THAT(text, HasSubstr("  " + std::string(rule.name) + " "));
}

}  // namespace
}  // namespace xpu::cli
