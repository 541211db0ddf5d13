#include "cli/recording_name.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace xpu::cli {
namespace {

std::tm new_year() {
  std::tm time{};
  time.tm_year = 126;
  time.tm_mday = 1;
  time.tm_hour = 12;
  return time;
}

class RecordingName : public testing::Test {
 protected:
  RecordingName() {
    std::string path = testing::TempDir() + "recording_name_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~RecordingName() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(RecordingName, IsTheProgramsNameWithDateAndTime) {
  EXPECT_EQ(default_recording_name("clpeak", new_year()), "clpeak-20260101-120000");
  EXPECT_EQ(default_recording_name("/usr/bin/clpeak", new_year()), "clpeak-20260101-120000");
  EXPECT_EQ(default_recording_name("./a/", new_year()), "program-20260101-120000");
}

TEST_F(RecordingName, StaysShortEnoughForAFileSystem) {
  EXPECT_LE(default_recording_name(std::string(4'000, 'a'), new_year()).size() + std::string(".xpu.live").size(), 255u);
}

TEST_F(RecordingName, WithAndWithoutSuffixIsTheSameFile) {
  EXPECT_EQ(*output_path("a", folder_), folder_ + "/a.xpu");
  EXPECT_EQ(*output_path("a.xpu", folder_), folder_ + "/a.xpu");
  EXPECT_EQ(*output_path("/b/a", folder_), "/b/a.xpu");
  EXPECT_EQ(*output_path("a", "/"), "/a.xpu") << "the root ends with a slash already";
}

TEST_F(RecordingName, AFolderIsNoName) {
  std::filesystem::create_directory(folder_ + "/sub");
  std::filesystem::create_directory(folder_ + "/sub.xpu");
  for (const char* wrong : {"", "sub", "sub/", "sub.xpu"}) {
    const auto path = output_path(wrong, folder_);
    ASSERT_FALSE(path) << wrong;
    EXPECT_EQ(path.error().code, ErrorCode::invalid_argument);
  }
}

TEST_F(RecordingName, ATakenDefaultNameGetsANumber) {
  const std::string first = unused_default_path("a", new_year(), folder_);
  EXPECT_EQ(first, folder_ + "/a-20260101-120000.xpu");
  std::ofstream(first) << "x";
  const std::string second = unused_default_path("a", new_year(), folder_);
  EXPECT_EQ(second, folder_ + "/a-20260101-120000-2.xpu");
  std::filesystem::create_directory(second + ".live");
  EXPECT_EQ(unused_default_path("a", new_year(), folder_), folder_ + "/a-20260101-120000-3.xpu");
}

TEST_F(RecordingName, IsShownRelativeInsideTheWorkingFolderOnly) {
  EXPECT_EQ(short_path("/a/b/c.xpu", "/a/b"), "c.xpu");
  EXPECT_EQ(short_path("/a/bc/c.xpu", "/a/b"), "/a/bc/c.xpu");
  EXPECT_EQ(short_path("/c.xpu", "/"), "c.xpu");
}

TEST_F(RecordingName, LosesEitherSuffix) {
  EXPECT_EQ(without_suffix("a.xpu"), "a");
  EXPECT_EQ(without_suffix("/b/a.xpu.live/"), "/b/a");
  EXPECT_EQ(without_suffix("a.b"), "a.b");
}

TEST_F(RecordingName, WhatIsNamedIsTakenAsItIs) { EXPECT_EQ(*find_recording("some/name"), "some/name"); }

}  // namespace
}  // namespace xpu::cli
