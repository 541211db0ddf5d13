#include "cli/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace xpu::cli {
namespace {

using testing::UnorderedElementsAre;

TEST(Environment, AnExistingLayerListStaysInFrontOfOurs) {
  EXPECT_EQ(layers_value(nullptr, "/lib/ours.so"), "/lib/ours.so");
  EXPECT_EQ(layers_value("", "/lib/ours.so"), "/lib/ours.so");
  EXPECT_EQ(layers_value("/a.so:/b.so", "/lib/ours.so"), "/a.so:/b.so:/lib/ours.so");
}

TEST(Environment, OurLayerIsNeverNamedTwice) {
  EXPECT_EQ(layers_value("/lib/ours.so", "/lib/ours.so"), "/lib/ours.so");
  EXPECT_EQ(layers_value("/a.so:/lib/ours.so:/b.so", "/lib/ours.so"), "/a.so:/lib/ours.so:/b.so");
  EXPECT_EQ(layers_value("/lib/ours.so.bak", "/lib/ours.so"), "/lib/ours.so.bak:/lib/ours.so");
}

TEST(Environment, TheProgramGetsEverythingElseUnchanged) {
  const char* const before[] = {"PATH=/bin", "XPU_RECORD=/outer", "OPENCL_LAYERS=/a.so", "OPENCL_LAYERS_X=1", "odd", nullptr};
  EXPECT_THAT(
      program_environment(before, "/here/a.xpu.live", "/lib/ours.so"),
      UnorderedElementsAre("PATH=/bin", "OPENCL_LAYERS_X=1", "odd", "XPU_RECORD=/here/a.xpu.live", "OPENCL_LAYERS=/a.so:/lib/ours.so"));
}

TEST(Environment, AVariableIsFoundByItsWholeName) {
  const char* const environment[] = {"AB=1", "A=2", nullptr};
  EXPECT_STREQ(find_variable(environment, "A"), "2");
  EXPECT_EQ(find_variable(environment, "B"), nullptr);
  EXPECT_EQ(find_variable(nullptr, "A"), nullptr);
}

}  // namespace
}  // namespace xpu::cli
