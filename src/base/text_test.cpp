#include "xpu/base/text.hpp"

#include <gtest/gtest.h>

namespace xpu {
namespace {

TEST(TextTest, GroupsDigitsByThrees) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1'000), "1,000");
  EXPECT_EQ(with_thousands(12'345'678), "12,345,678");
}

TEST(TextTest, ADurationHasThreeDigitsAndAUnit) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1'234), "1.23 µs");
  EXPECT_EQ(duration_text(12'340'000), "12.3 ms");
  EXPECT_EQ(duration_text(1'230'000'000), "1.23 s");
  EXPECT_EQ(duration_text(245'000'000'000), "4 min 05 s");
  EXPECT_EQ(duration_text(7'260'000'000'000), "2 h 01 min");
}

TEST(TextTest, ADurationThatRoundsUpTakesTheNextUnit) {
  EXPECT_EQ(duration_text(999'600), "1.00 ms");
  EXPECT_EQ(duration_text(9'996'000), "10.0 ms");
  EXPECT_EQ(duration_text(999'700'000), "1.00 s");
}

TEST(TextTest, ADifferenceMayBeNegative) {
  EXPECT_EQ(signed_duration_text(-1'500), "-1.50 µs");
  EXPECT_EQ(signed_duration_text(1'500), "1.50 µs");
  EXPECT_EQ(signed_duration_text(INT64_MIN).front(), '-');
}

TEST(TextTest, MicrosecondsAreExact) {
  EXPECT_EQ(microseconds_text(1'712'195'495'505'631'501), "1712195495505631.501 µs");
  EXPECT_EQ(microseconds_text(-15), "-0.015 µs");
  EXPECT_EQ(microseconds_text(INT64_MIN), "-9223372036854775.808 µs");
}

TEST(TextTest, BytesHaveBinaryUnits) {
  EXPECT_EQ(bytes_text(1'023), "1023 B");
  EXPECT_EQ(bytes_text(1'536), "1.5 KiB");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(bytes_text(std::uint64_t{5} << 40), "5.0 TiB");
}

TEST(TextTest, MakesForeignTextSafeForATerminal) {
  EXPECT_EQ(printable("plain µ"), "plain µ");
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a?[31mb?");
  EXPECT_EQ(printable("c1 \xc2\x9b"
                      "31m"),
            "c1 ?31m");
  EXPECT_EQ(printable("bad \xff\xc3"), "bad ??");
}

}  // namespace
}  // namespace xpu
