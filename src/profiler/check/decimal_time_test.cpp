#include "profiler/check/decimal_time.hpp"

#include <gtest/gtest.h>

namespace xpu::profiler {
namespace {

TEST(DecimalTimeTest, TakesEveryDigit) {
  EXPECT_EQ(thousandths("1234.567"), 1'234'567);
  EXPECT_EQ(thousandths("1712195495505631.501"), 1'712'195'495'505'631'501) << "a double would say .500";
  EXPECT_EQ(thousandths("5"), 5'000);
  EXPECT_EQ(thousandths("0.1"), 100);
  EXPECT_EQ(thousandths("-0.015"), -15);
}

TEST(DecimalTimeTest, RoundsWhatIsBelowANanosecond) {
  EXPECT_EQ(thousandths("1.0004"), 1'000);
  EXPECT_EQ(thousandths("1.0005"), 1'001);
  EXPECT_EQ(thousandths("-1.0005"), -1'001);
  EXPECT_EQ(thousandths("1.00049999999999999999999"), 1'000);
}

TEST(DecimalTimeTest, ReadsExponents) {
  EXPECT_EQ(thousandths("1.5e3"), 1'500'000);
  EXPECT_EQ(thousandths("1E-3"), 1);
  EXPECT_EQ(thousandths("1e-400"), 0);
}

TEST(DecimalTimeTest, RefusesWhatNanosecondsCannotHold) {
  EXPECT_EQ(thousandths("4611686018427387.903"), (std::int64_t{1} << 62) - 1);
  EXPECT_EQ(thousandths("4611686018427387.904"), std::nullopt);
  EXPECT_EQ(thousandths("4611686018427387.9039"), std::nullopt);
  EXPECT_EQ(thousandths("-4611686018427388"), std::nullopt);
  EXPECT_EQ(thousandths("99999999999999999999999999"), std::nullopt);
  EXPECT_EQ(thousandths("1e300"), std::nullopt);
  EXPECT_EQ(thousandths("1e999"), std::nullopt);
  EXPECT_EQ(thousandths(""), std::nullopt);
  EXPECT_EQ(thousandths("-"), std::nullopt);
  EXPECT_EQ(thousandths("1.2.3"), std::nullopt);
}

}  // namespace
}  // namespace xpu::profiler
