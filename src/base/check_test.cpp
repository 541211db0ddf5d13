#include "base/check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xpu::base {
namespace {

std::vector<std::string> g_messages;

class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    g_messages.clear();
    set_check_handler([](const char* message) { g_messages.emplace_back(message); });
  }
  void TearDown() override { set_check_handler(nullptr); }
};

TEST_F(CheckTest, IsTrueAndSilentWhenTheConditionHolds) {
  EXPECT_TRUE(XPU_CHECK(1 + 1 == 2));
  EXPECT_TRUE(g_messages.empty());
}

TEST_F(CheckTest, WithAHandlerItIsFalseAndSaysWhatAndWhereOnce) {
  const int line = __LINE__ + 1;
  EXPECT_FALSE(XPU_CHECK(1 + 1 == 3));
  EXPECT_FALSE(XPU_CHECK(1 + 1 == 4));
  ASSERT_EQ(g_messages.size(), 1u);
  EXPECT_NE(g_messages[0].find("1 + 1 == 3"), std::string::npos) << g_messages[0];
  EXPECT_NE(g_messages[0].find("check_test.cpp:" + std::to_string(line)), std::string::npos) << g_messages[0];
}

TEST(CheckDeathTest, WithoutAHandlerItAborts) {
  EXPECT_EXIT((void)XPU_CHECK(false), testing::KilledBySignal(SIGABRT), "xpu: error: base: check failed: false");
}

}  // namespace
}  // namespace xpu::base
