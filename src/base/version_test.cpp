#include "xpu/base/version.hpp"

#include <gtest/gtest.h>

#include "base/probe.hpp"

namespace xpu {
namespace {

TEST(VersionTest, IsThreeNumbers) {
  int major = -1, minor = -1, patch = -1, end = 0;
  ASSERT_EQ(std::sscanf(version(), "%d.%d.%d%n", &major, &minor, &patch, &end), 3);
  EXPECT_EQ(version()[end], '\0');
}

TEST(VersionTest, TheAbiNumberIsTheProbes) { EXPECT_EQ(xpu_probe_abi(), probe::kAbi); }

}  // namespace
}  // namespace xpu
