#include "xpu/profiler/capabilities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/probe.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using testing::HasSubstr;

Capability capability_of(const std::string& what) {
  const std::vector<Capability> all = capabilities();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Capability& capability) { return capability.what == what; });
  EXPECT_NE(found, all.end()) << what;
  return found == all.end() ? Capability{} : *found;
}

TEST(CapabilitiesTest, WhatIsNotThereHasAReason) {
  for (const Capability& capability : capabilities()) {
    if (!capability.is_available) {
      EXPECT_FALSE(capability.reason.empty()) << capability.what;
    }
  }
  EXPECT_TRUE(capability_of("kernel").is_available);
  EXPECT_TRUE(capability_of("gpu_memcpy").is_available);
  EXPECT_TRUE(capability_of("gpu_user_annotation").is_available);
  EXPECT_TRUE(capability_of("cpu_op").is_available);
  EXPECT_THAT(capability_of("cpu_op").reason, HasSubstr("transfer_cpu_trace"));
  EXPECT_FALSE(capability_of("collective_comm").is_available);
  EXPECT_FALSE(capability_of("xpu_driver").is_available);
  EXPECT_THAT(capability_of("cuda_runtime").reason, HasSubstr("another kind"));
}

TEST(CapabilitiesTest, AForeignOpenClProgramIsSeenOnlyThroughTheLayer) {
  unsetenv("OPENCL_LAYERS");
  EXPECT_FALSE(capability_of("OpenCL used by others").is_available);
  EXPECT_THAT(capability_of("OpenCL used by others").reason, HasSubstr("OPENCL_LAYERS does not name libxpu_layer_opencl.so"));
  setenv("OPENCL_LAYERS", "/somewhere/libxpu_layer_opencl.so", 1);
  EXPECT_THAT(capability_of("OpenCL used by others").reason, HasSubstr("has not been used yet"));
  unsetenv("OPENCL_LAYERS");
}

TEST(CapabilitiesTest, ASessionIsNotPossibleWhileSomebodyElseListens) {
  EXPECT_TRUE(capability_of("a session in this process").is_available);
  static constinit probe::Subscriber other = {.abi = probe::kAbi,
                                              .object = [](probe::ObjectKind, probe::Id, probe::ObjectEvent, const void*) {}};
  ASSERT_TRUE(probe::subscribe(&other));
  const Capability session = capability_of("a session in this process");
  Session refused(Config{});
  const Result<> prepared = refused.prepare();
  probe::unsubscribe();
  EXPECT_FALSE(session.is_available);
  EXPECT_EQ(session.reason, prepared.error().message);
  Session possible(Config{});
  ASSERT_TRUE(possible.prepare());
  EXPECT_TRUE(capability_of("a session in this process").is_available) << "beside another one";
}

}  // namespace
}  // namespace xpu::profiler
