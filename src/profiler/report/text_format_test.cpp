#include "profiler/report/text_format.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace xpu::profiler {
namespace {

using Times = std::vector<std::optional<std::int64_t>>;

TEST(TextFormatTest, ChoosesOneUnitForAColumn) {
  const Times small = {12, 999};
  EXPECT_EQ(TimeUnit(small).name(), "ns");
  EXPECT_EQ(TimeUnit(small).show(12), "12");
  const Times medium = {1'500, 9'999'000};
  EXPECT_EQ(TimeUnit(medium).name(), "µs");
  EXPECT_EQ(TimeUnit(medium).show(1'500), "1.5");
  EXPECT_EQ(TimeUnit(medium).show(9'999'000), "9999.0");
  const Times large = {25'300'000'000, 12'000'000'000};
  EXPECT_EQ(TimeUnit(large).name(), "s");
  EXPECT_EQ(TimeUnit(large).show(25'300'000'000), "25.30");
}

TEST(TextFormatTest, NeverShowsSomethingAsNothing) {
  const Times times = {5, 2'000'000'000'000};
  EXPECT_EQ(TimeUnit(times).show(5), "<0.001");
  EXPECT_EQ(TimeUnit(times).show(-5), "-<0.001");
  EXPECT_EQ(TimeUnit(times).show(0), "0.000");
  EXPECT_EQ(TimeUnit(times).show(std::nullopt), "-");
}

TEST(TextFormatTest, ShowsUnknownColumnsWithoutAUnitOfTheirOwn) {
  const Times times = {std::nullopt};
  EXPECT_EQ(TimeUnit(times).name(), "ns");
  EXPECT_EQ(TimeUnit(times).show(std::nullopt), "-");
}

TEST(TextFormatTest, ShowsSingleTimesInTheUnitThatSuitsThem) {
  EXPECT_EQ(single_time(std::uint64_t{999}), "999 ns");
  EXPECT_EQ(single_time(std::uint64_t{1'234}), "1.23 µs");
  EXPECT_EQ(single_time(std::uint64_t{12'345'678}), "12.3 ms");
  EXPECT_EQ(single_time(std::uint64_t{123'456'000'000}), "123.46 s");
  EXPECT_EQ(single_time(std::int64_t{-1'500}), "-1.50 µs");
}

TEST(TextFormatTest, ShortensInTheMiddle) {
  EXPECT_EQ(shorten("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten("abcdefghij", 7), "abc…hij");
  EXPECT_EQ(shorten("abcdefghij", 1), "…");
  EXPECT_EQ(shorten("abcdefghij", 0), "");
  EXPECT_EQ(shorten("µµµµµµ", 5), "µµ…µµ") << "columns, not bytes";
}

TEST(TextFormatTest, MakesForeignTextSafeForATerminal) {
  EXPECT_EQ(printable("plain µ"), "plain µ");
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a?[31mb?");
  EXPECT_EQ(printable("c1 \xc2\x9b"
                      "31m"),
            "c1 ?31m");
  EXPECT_EQ(printable("bad \xff\xc3"), "bad ??");
}

TEST(TextFormatTest, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(12'345'678), "12,345,678");
}

TEST(TextFormatTest, ShowsBytes) {
  EXPECT_EQ(single_bytes(0), "0 B");
  EXPECT_EQ(single_bytes(1'023), "1023 B");
  EXPECT_EQ(single_bytes(1'536), "1.5 KiB");
  EXPECT_EQ(single_bytes(std::uint64_t{300} << 20), "300 MiB");
}

}  // namespace
}  // namespace xpu::profiler
