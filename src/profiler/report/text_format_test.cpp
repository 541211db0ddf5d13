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

TEST(TextFormatTest, ShortensInTheMiddle) {
  EXPECT_EQ(shorten("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten("abcdefghij", 7), "abc…hij");
  EXPECT_EQ(shorten("abcdefghij", 1), "…");
  EXPECT_EQ(shorten("abcdefghij", 0), "");
  EXPECT_EQ(shorten("µµµµµµ", 5), "µµ…µµ") << "columns, not bytes";
}

}  // namespace
}  // namespace xpu::profiler
