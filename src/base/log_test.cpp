#include "base/log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace xpu::base {
namespace {

std::vector<std::string> g_lines;

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    g_lines.clear();
    set_log_sink([](LogLevel, const char*, const char* line) { g_lines.emplace_back(line); });
    ASSERT_TRUE(set_log_levels(""));
  }
  void TearDown() override {
    set_log_sink(nullptr);
    set_log_levels("");
  }
};

TEST_F(LogTest, WarningsAndErrorsAreWrittenByDefault) {
  XPU_LOG_ERROR("trace", "no room for {} bytes", 17);
  XPU_LOG_WARN("trace", "slow");
  XPU_LOG_INFO("trace", "hidden");
  EXPECT_EQ(g_lines, (std::vector<std::string>{"xpu: error: trace: no room for 17 bytes", "xpu: warning: trace: slow"}));
}

TEST_F(LogTest, AComponentMayHaveALevelOfItsOwn) {
  ASSERT_TRUE(set_log_levels("error,trace:debug"));
  XPU_LOG_DEBUG("trace", "seen");
  XPU_LOG_TRACE("trace", "hidden");
  XPU_LOG_WARN("opencl", "hidden");
  EXPECT_EQ(g_lines, (std::vector<std::string>{"xpu: debug: trace: seen"}));
}

TEST_F(LogTest, ALoneTraceIsTheLevelAndNotTheComponent) {
  ASSERT_TRUE(set_log_levels("trace"));
  XPU_LOG_TRACE("opencl", "seen");
  EXPECT_EQ(g_lines.size(), 1u);
}

TEST_F(LogTest, LevelsThatAreNotUnderstoodChangeNothing) {
  ASSERT_TRUE(set_log_levels("debug"));
  for (const char* wrong : {"loud", "trace:", ":debug", "trace:loud", "a-component-with-a-name-beyond-all-reason:debug"}) {
    EXPECT_FALSE(set_log_levels(wrong)) << wrong;
  }
  EXPECT_TRUE(log_enabled("trace", LogLevel::debug));
}

TEST_F(LogTest, OffSilencesErrorsToo) {
  ASSERT_TRUE(set_log_levels("off"));
  XPU_LOG_ERROR("trace", "hidden");
  EXPECT_TRUE(g_lines.empty());
}

TEST_F(LogTest, ALineThatIsTooLongIsCut) {
  XPU_LOG_WARN("trace", "{}", std::string(5000, 'x'));
  ASSERT_EQ(g_lines.size(), 1u);
  EXPECT_GT(g_lines[0].size(), 500u);
  EXPECT_LT(g_lines[0].size(), 1024u);
  EXPECT_EQ(g_lines[0].substr(0, 22), "xpu: warning: trace: x");
}

TEST_F(LogTest, OncePerPlaceInTheCode) {
  for (int i = 0; i < 3; ++i) XPU_LOG_WARN_ONCE("trace", "first place, round {}", i);
  for (int i = 0; i < 3; ++i) XPU_LOG_WARN_ONCE("trace", "second place, round {}", i);
  EXPECT_EQ(g_lines, (std::vector<std::string>{"xpu: warning: trace: first place, round 0", "xpu: warning: trace: second place, round 0"}));
}

TEST_F(LogTest, LeavesErrnoAlone) {
  set_log_sink(nullptr);
  ASSERT_TRUE(set_log_levels("error"));
  errno = EDOM;
  XPU_LOG_ERROR("trace", "on standard error, in a passing test");
  EXPECT_EQ(errno, EDOM);
}

}  // namespace
}  // namespace xpu::base
