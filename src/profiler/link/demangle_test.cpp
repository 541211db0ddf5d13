#include "profiler/link/demangle.hpp"

#include <gtest/gtest.h>

namespace xpu::profiler {
namespace {

TEST(DemangleTest, LeavesPlainNamesAlone) {
  EXPECT_EQ(demangle("saxpy"), "saxpy");
  EXPECT_EQ(demangle(""), "");
}

TEST(DemangleTest, ReadsTheTypeInTheNameOfASyclKernel) { EXPECT_EQ(demangle("_ZTSN3app6vectorIfE3addE"), "app::vector<float>::add"); }

TEST(DemangleTest, ReadsTheNameOfAFunction) { EXPECT_EQ(demangle("_Z6vecAddPfS_i"), "vecAdd(float*, float*, int)"); }

TEST(DemangleTest, GivesBackWhatOnlyLooksMangled) {
  EXPECT_EQ(demangle("_Zebra"), "_Zebra");
  EXPECT_EQ(demangle("_ZTS"), "_ZTS");
  const std::string long_name = "_ZTS" + std::string(100'000, 'P') + "i";
  EXPECT_EQ(demangle(long_name), long_name);
}

}  // namespace
}  // namespace xpu::profiler
