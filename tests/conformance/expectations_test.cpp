#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// The lists of expectations agree with the driver and with the tests that there are.
class ExpectationsTest : public ConformanceTest {};
XPU_CONFORMANCE_SUITE(ExpectationsTest);

TEST_P(ExpectationsTest, WhatIsListedAsUnsupportedTheDriverDoesNotOffer) {
  std::set<std::string> known;
  for (int index = 0; index < kNeedCount; ++index) {
    const Need need = static_cast<Need>(index);
    known.insert(to_string(need));
    if (!expectations_of(entry().name).unsupported.contains(to_string(need))) continue;
    EXPECT_FALSE(offers(shared(), need)) << entry().name << " offers " << to_string(need) << ", which is listed as unsupported";
  }
  for (const auto& [need, reason] : expectations_of(entry().name).unsupported) {
    EXPECT_TRUE(known.contains(need)) << "'" << need << "' is no need of a test";
  }
}

TEST_P(ExpectationsTest, ExpectedFailuresAreTestsThatThereAre) {
  std::set<std::string> tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    const ::testing::TestSuite& tested = *all.GetTestSuite(suite);
    for (int test = 0; test < tested.total_test_count(); ++test) {
      const std::string suite_name = tested.name();
      const std::string test_name = tested.GetTestInfo(test)->name();
      tests.insert(suite_name.substr(suite_name.find('/') + 1) + "." + test_name.substr(0, test_name.find('/')));
    }
  }
  for (const auto& [test, reason] : expectations_of(entry().name).expected_failures) {
    EXPECT_TRUE(tests.contains(test)) << "there is no test '" << test << "'";
  }
}

TEST(ExpectationsFileTest, EveryKindOfEntryIsUnderstood) {
  const Expectations read = parse_expectations(
                                "# a comment\n"
                                "environment SOME_NAME=a b\n"
                                "unsupported priorities: all are equal\n"
                                "expected_failure EventTest.Order: it is wrong  # for now\n")
                                .value();
  EXPECT_EQ(read.environment.at("SOME_NAME"), "a b");
  EXPECT_EQ(read.unsupported.at("priorities"), "all are equal");
  EXPECT_EQ(read.expected_failures.at("EventTest.Order"), "it is wrong");
}

TEST(ExpectationsFileTest, AConditionCountsOnlyWhenItIsTrue) {
  setenv("XPU_CONFORMANCE_CONDITION", "yes", 1);
  const Expectations read = parse_expectations(
                                "unsupported priorities when XPU_CONFORMANCE_CONDITION=yes: so\n"
                                "unsupported two_devices when XPU_CONFORMANCE_CONDITION=no: not so\n"
                                "unsupported peer_access when XPU_CONFORMANCE_NOTHING=yes: not so\n")
                                .value();
  unsetenv("XPU_CONFORMANCE_CONDITION");
  EXPECT_TRUE(read.unsupported.contains("priorities"));
  EXPECT_EQ(read.unsupported.size(), 1u);
}

TEST(ExpectationsFileTest, ALineThatIsNotUnderstoodIsNamed) {
  for (const char* line : {"nonsense", "unsupported priorities", "unsupported : a reason", "environment NAME", "skip a: b"}) {
    const Result<Expectations> read = parse_expectations(line);
    ASSERT_FALSE(read) << line;
    EXPECT_NE(read.error().message.find(line), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace xpu::conformance
