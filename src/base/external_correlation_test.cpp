#include "base/external_correlation.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace xpu::probe {
namespace {

using enum CorrelationFamily;

/// Each test in a thread of its own, so that what one leaves behind is no other's.
template <typename Test>
void in_thread(Test&& test) {
  std::thread(test).join();
}

TEST(ExternalCorrelationTest, TheTopOfEachFamilyIsSeen) {
  in_thread([] {
    EXPECT_EQ(correlated_families(), 0u);
    EXPECT_EQ(top_correlations().count, 0u);
    EXPECT_TRUE(push_correlation(custom_1, 10));
    EXPECT_TRUE(push_correlation(custom_1, 11));
    EXPECT_TRUE(push_correlation(custom_3, 0));
    EXPECT_EQ(correlated_families(), 2u);
    const TopCorrelations top = top_correlations();
    ASSERT_EQ(top.count, 2u);
    EXPECT_EQ(top.all[0].family, custom_1);
    EXPECT_EQ(top.all[0].id, 11u);
    EXPECT_EQ(top.all[1].family, custom_3);
    EXPECT_EQ(top.all[1].id, 0u);
    EXPECT_EQ(pop_correlation(custom_1), 11u);
    EXPECT_EQ(top_correlations().all[0].id, 10u);
  });
}

TEST(ExternalCorrelationTest, AnEmptyStackGivesNothingAndTakesNoHarm) {
  in_thread([] {
    EXPECT_EQ(pop_correlation(custom_0), std::nullopt);
    EXPECT_TRUE(push_correlation(custom_0, 1));
    EXPECT_EQ(pop_correlation(unknown), std::nullopt);
    EXPECT_EQ(pop_correlation(custom_0), 1u);
    EXPECT_EQ(pop_correlation(custom_0), std::nullopt);
    EXPECT_EQ(correlated_families(), 0u);
    EXPECT_TRUE(push_correlation(custom_0, ~std::uint64_t{0}));
    EXPECT_EQ(top_correlations().all[0].id, ~std::uint64_t{0});
  });
}

TEST(ExternalCorrelationTest, ANumberThatIsNoFamilyIsRefused) {
  in_thread([] {
    for (const std::uint32_t number : {0u, 6u, 0x7fff'ffffu}) {
      EXPECT_FALSE(push_correlation(static_cast<CorrelationFamily>(number), 1)) << number;
      EXPECT_EQ(pop_correlation(static_cast<CorrelationFamily>(number)), std::nullopt) << number;
    }
    EXPECT_EQ(correlated_families(), 0u);
  });
}

TEST(ExternalCorrelationTest, ThreadsHaveTheirOwn) {
  in_thread([] {
    EXPECT_TRUE(push_correlation(custom_2, 7));
    in_thread([] { EXPECT_EQ(correlated_families(), 0u); });
    EXPECT_EQ(correlated_families(), 1u);
  });
}

}  // namespace
}  // namespace xpu::probe
