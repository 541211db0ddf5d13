#include "cli/text.hpp"

#include <gtest/gtest.h>

namespace xpu::cli {
namespace {

TEST(Text, GroupsDigitsByThrees) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1'000), "1,000");
  EXPECT_EQ(with_thousands(12'345'678), "12,345,678");
}

TEST(Text, ADurationHasThreeDigitsAndAUnit) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1'234), "1.23 us");
  EXPECT_EQ(duration_text(12'340'000), "12.3 ms");
  EXPECT_EQ(duration_text(1'230'000'000), "1.23 s");
  EXPECT_EQ(duration_text(245'000'000'000), "4 min 05 s");
  EXPECT_EQ(duration_text(7'260'000'000'000), "2 h 01 min");
}

TEST(Text, ADurationThatRoundsUpTakesTheNextUnit) {
  EXPECT_EQ(duration_text(999'600), "1.00 ms");
  EXPECT_EQ(duration_text(9'996'000), "10.0 ms");
  EXPECT_EQ(duration_text(999'700'000), "1.00 s");
}

TEST(Text, BytesHaveBinaryUnits) {
  EXPECT_EQ(bytes_text(1'023), "1023 B");
  EXPECT_EQ(bytes_text(1'536), "1.5 KiB");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(bytes_text(std::uint64_t{5} << 40), "5.0 TiB");
}

TEST(Text, ANounBesideACountIsInflected) {
  EXPECT_EQ(counted(1, "command"), "1 command");
  EXPECT_EQ(counted(0, "command"), "0 commands");
  EXPECT_EQ(counted(2, "process"), "2 processes");
}

TEST(Text, SizesAreReadWithEveryCustomarySuffix) {
  EXPECT_EQ(*parse_bytes("1048576"), 1'048'576u);
  EXPECT_EQ(*parse_bytes("512M"), 512u << 20);
  EXPECT_EQ(*parse_bytes("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(*parse_bytes("64KiB"), 65'536u);
  EXPECT_EQ(*parse_bytes("64kB"), 65'536u);
  EXPECT_EQ(*parse_bytes("1.5K"), 1'536u);
}

TEST(Text, WhatIsNoSizeIsNamed) {
  for (const char* wrong : {"", "M", "12X", "-1", "1MM", "1e3", "nan", "2 G"}) {
    const auto size = parse_bytes(wrong);
    ASSERT_FALSE(size) << wrong;
    EXPECT_EQ(size.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(size.error().message.find(std::string("'") + wrong + "'"), std::string::npos) << size.error().message;
  }
  EXPECT_FALSE(parse_bytes("9999999999T"));
}

TEST(Text, TimesAreSecondsUnlessAUnitSaysOtherwise) {
  EXPECT_EQ(*parse_duration("2"), 2'000'000'000u);
  EXPECT_EQ(*parse_duration("0.5"), 500'000'000u);
  EXPECT_EQ(*parse_duration("1.5s"), 1'500'000'000u);
  EXPECT_EQ(*parse_duration("200ms"), 200'000'000u);
  EXPECT_EQ(*parse_duration("0"), 0u);
  for (const char* wrong : {"", "s", "-1", "1h", "1 s", "inf", "99999999999"}) EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Text, AWordIsQuotedOnlyWhenAShellWouldReadItOtherwise) {
  EXPECT_EQ(shell_word("a-b_1.xpu"), "a-b_1.xpu");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Text, ControlCharactersDoNotReachTheTerminal) { EXPECT_EQ(printable("a\x1b[2J\nb\x7f"), "a?[2J?b?"); }

}  // namespace
}  // namespace xpu::cli
