#include "profiler/sinks/argument_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace xpu::profiler {
namespace {

TEST(ArgumentTextTest, EachTypeIsWhatItIsInJson) {
  const std::vector<CpuArgument> arguments = {
      {"flag", true},
      {"low", std::int64_t{-5}},
      {"high", UINT64_MAX},
      {"ratio", 0.1},
      {"text", "conv"},
      {"list", std::vector<std::int64_t>{1, -2}},
      {"names", std::vector<std::string>{"float", "a\"b"}},
      {"Input Dims", std::vector<std::vector<std::int64_t>>{{8, 16}, {}, {3}}},
      {"nothing", std::vector<std::string>{}},
  };
  std::string text;
  append_arguments(text, arguments);
  EXPECT_EQ(text, R"(,"flag":true,"low":-5,"high":18446744073709551615,"ratio":0.1,"text":"conv","list":[1,-2],"names":["float","a\"b"],)"
                  R"("Input Dims":[[8,16],[],[3]],"nothing":[])");
}

TEST(ArgumentTextTest, WhatNoNumberIsInJsonIsNull) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) EXPECT_EQ(json_value(value), "null");
  EXPECT_EQ(json_value(1e300), "1e+300");
}

TEST(ArgumentTextTest, NoTextIsTakenForJson) {
  std::string text;
  append_arguments(text, std::vector<CpuArgument>{{"a\":1,\"b", "{\"c\":\x01\xff\n}"}});
  const auto parsed = nlohmann::json::parse("{" + text.substr(1) + "}");
  EXPECT_EQ(parsed.size(), 1u);
  EXPECT_EQ(parsed.at("a\":1,\"b"), "{\"c\":\x01\xef\xbf\xbd\n}");
}

}  // namespace
}  // namespace xpu::profiler
