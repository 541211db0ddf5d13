#include <algorithm>
#include <cstdio>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// A7: the properties of devices.

namespace xpu::acceptance {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::Le;
using ::testing::Ne;
using ::testing::StrEq;

class A7_PropertiesTest : public ::testing::TestWithParam<int> {
 protected:
  const DeviceProperties& properties() const { return Device::get(GetParam()).value().properties(); }
};
INSTANTIATE_TEST_SUITE_P(Devices, A7_PropertiesTest, ::testing::Range(0, kDevices));

bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

TEST_P(A7_PropertiesTest, NamesAndIdentityAreThere) {
  EXPECT_NE(properties().name, "");
  EXPECT_NE(properties().platform_name, "");
  EXPECT_NE(properties().vendor, "");
  EXPECT_NE(properties().driver_version, "");
  EXPECT_NE(properties().uuid, Uuid{});
  EXPECT_EQ(to_string(properties().uuid).size(), 36u);
  EXPECT_THAT(to_string(properties().type), AnyOf(StrEq("cpu"), StrEq("gpu"), StrEq("accelerator"), StrEq("host")));
}

TEST_P(A7_PropertiesTest, WhatBoundsALaunchIsThere) {
  EXPECT_THAT(properties().max_compute_units, AllOf(Ge(1u), Le(1u << 20)));
  EXPECT_THAT(properties().max_work_group_size, AllOf(Ge(1u), Le(1u << 30)));
  EXPECT_EQ(properties().max_work_item_dimensions, 3u);
  EXPECT_THAT(properties().max_work_item_sizes, Each(Ge(1u)));
  EXPECT_GE(properties().max_work_item_sizes[0], properties().max_work_group_size);
  EXPECT_THAT(properties().max_group_count, Each(Ge(0xffffu)));
  EXPECT_GE(properties().max_num_sub_groups, 1u);
  EXPECT_THAT(properties().sub_group_sizes, AllOf(::testing::Not(::testing::IsEmpty()), Each(Ge(1u))));
  EXPECT_TRUE(std::is_sorted(properties().sub_group_sizes.begin(), properties().sub_group_sizes.end()));
  EXPECT_EQ(properties().address_bits, 64u);
  EXPECT_GE(properties().max_parameter_bytes, 1024u);
  EXPECT_THAT(properties().timer_resolution_ns, AllOf(Ge(1u), Le(1'000'000u)));
}

TEST_P(A7_PropertiesTest, MemoryIsThereAndFitsTogether) {
  EXPECT_GE(properties().total_memory_bytes, 1u << 20);
  EXPECT_THAT(properties().max_allocation_bytes, AllOf(Gt(0u), Le(properties().total_memory_bytes)));
  EXPECT_GT(properties().local_memory_bytes, 0u);
  EXPECT_TRUE(is_power_of_two(properties().cache_line_bytes)) << properties().cache_line_bytes;
  EXPECT_TRUE(is_power_of_two(properties().memory_alignment_bytes)) << properties().memory_alignment_bytes;
  EXPECT_EQ(Device::get(GetParam()).value().memory_info().value().total_bytes, properties().total_memory_bytes);
}

TEST_P(A7_PropertiesTest, VectorWidthsAgreeWithTheTypesThatThereAre) {
  constexpr std::size_t kDouble = 5, kHalf = 6;
  for (const auto& widths : {properties().native_vector_widths, properties().preferred_vector_widths}) {
    for (std::size_t type = 0; type < kDouble; ++type) EXPECT_GE(widths[type], 1u) << type;
    EXPECT_EQ(widths[kDouble] != 0, properties().has_fp64);
    EXPECT_EQ(widths[kHalf] != 0, properties().has_fp16);
  }
}

TEST_P(A7_PropertiesTest, TwoReadsAreEqualAndTheOpenedDeviceSaysTheSame) {
  const DeviceProperties first = properties();
  EXPECT_EQ(first, properties());
  EXPECT_EQ(&Device::get(GetParam()).value().properties(), &Device::get(GetParam()).value().properties());
  EXPECT_EQ(Device::get(GetParam()).value().native().value()->properties(), first);
  EXPECT_EQ(first, properties());
}

TEST_P(A7_PropertiesTest, TheTextHasItsPartsInOrder) {
  const std::string text = to_string(properties());
  std::size_t at = 0;
  for (const char* part : {"name=",
                           "platform_name=",
                           "type=",
                           "device_id=0x",
                           "uuid=",
                           "driver_version=",
                           "total_memory=",
                           "MB",
                           "local_mem_size=",
                           "KB",
                           "max_compute_units=",
                           "memory_clock_rate=",
                           "memory_bus_width=",
                           "gpu_eu_count=",
                           "gpu_subslice_count=",
                           "max_work_group_size=",
                           "max_num_sub_groups=",
                           "sub_group_sizes=[",
                           "has_fp16=",
                           "has_fp64=",
                           "has_atomic64="}) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " is not behind its predecessor in " << text;
    at = found + std::string_view(part).size();
  }
  EXPECT_NE(text.find(properties().name), std::string::npos);
  EXPECT_NE(text.find(to_string(properties().uuid)), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(A7_DevicesTest, NoTwoDevicesAreEqual) {
  EXPECT_NE(Device::get(0).value().properties().uuid, Device::get(1).value().properties().uuid);
  EXPECT_EQ(Device::get(0).value(), Device::get(0).value());
  EXPECT_NE(Device::get(0).value(), Device::get(1).value());
}

XPU_CHILD_MODE(print_properties) {
  for (int index = 0; index < kDevices; ++index) std::puts(to_string(Device::get(index).value().properties()).c_str());
  return 0;
}

TEST(A7_DevicesTest, EveryProcessSeesTheSameDevices) {
  const Ended ended = run_mode("print_properties");
  std::string expected;
  for (int index = 0; index < kDevices; ++index) expected += to_string(Device::get(index).value().properties()) + "\n";
  EXPECT_EQ(ended.output, expected) << ended;
}

TEST(A7_DevicesTest, AFilterGivesTheDevicesInItsOrder) {
  const Ended ended = run_mode("print_properties", {{"XPU_VISIBLE_DEVICES", "1,0"}});
  EXPECT_EQ(ended.output, to_string(Device::get(1).value().properties()) + "\n" + to_string(Device::get(0).value().properties()) + "\n")
      << ended;
}

}  // namespace
}  // namespace xpu::acceptance
