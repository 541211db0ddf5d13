#include "cli/text.hpp"

#include <gtest/gtest.h>

namespace xpu::cli {
namespace {

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

}  // namespace
}  // namespace xpu::cli
