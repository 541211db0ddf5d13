#include "xpu/hal/properties.hpp"

#include <gmock/gmock.h>

#include "xpu/hal/device.hpp"
#include "xpu/hal/module.hpp"

namespace xpu {
namespace {

TEST(Properties, TypesHaveTheNamesOfTorch) {
  EXPECT_STREQ(to_string(DeviceType::cpu), "cpu");
  EXPECT_STREQ(to_string(DeviceType::gpu), "gpu");
  EXPECT_STREQ(to_string(DeviceType::accelerator), "accelerator");
  EXPECT_STREQ(to_string(DeviceType::host), "host");
}

TEST(Properties, AUuidIsWrittenInFiveGroupsOfSmallHexadecimalDigits) {
  Uuid uuid;
  for (std::size_t i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<std::uint8_t>(i * 0x11);
  EXPECT_EQ(to_string(uuid), "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(to_string(Uuid{}), "00000000-0000-0000-0000-000000000000");
}

TEST(Properties, TextHasEveryFieldInTheFixedOrderWithItsUnit) {
  DeviceProperties properties;
  properties.name = "Data Center GPU";
  properties.platform_name = "Platform";
  properties.type = DeviceType::gpu;
  properties.device_id = 0xbd5;
  properties.uuid.bytes[15] = 1;
  properties.driver_version = "1.2.3";
  properties.total_memory_bytes = (std::uint64_t{65536} << 20) + 1;
  properties.local_memory_bytes = 131072;
  properties.max_compute_units = 512;
  properties.memory_clock_rate_mhz = 3200;
  properties.memory_bus_width_bits = 64;
  properties.gpu_eu_count = 512;
  properties.gpu_subslice_count = 64;
  properties.max_work_group_size = 1024;
  properties.max_num_sub_groups = 64;
  properties.sub_group_sizes = {16, 32};
  properties.has_fp16 = true;
  properties.has_atomic64 = true;
  EXPECT_EQ(to_string(properties),
            "DeviceProperties(name='Data Center GPU', platform_name='Platform', type='gpu', device_id=0xBD5, "
            "uuid=00000000-0000-0000-0000-000000000001, driver_version='1.2.3', total_memory=65536MB, local_mem_size=128KB, "
            "max_compute_units=512, memory_clock_rate=3200MHz, memory_bus_width=64-bit, gpu_eu_count=512, gpu_subslice_count=64, "
            "max_work_group_size=1024, max_num_sub_groups=64, sub_group_sizes=[16, 32], has_fp16=1, has_fp64=0, has_atomic64=1)");
}

TEST(Names, EveryKindOfMemoryAndEveryFormatHasItsOwn) {
  EXPECT_STREQ(to_string(hal::MemoryKind::device), "device");
  EXPECT_STREQ(to_string(hal::MemoryKind::host), "host");
  EXPECT_STREQ(to_string(hal::MemoryKind::shared), "shared");
  EXPECT_STREQ(to_string(hal::ModuleFormat::registered), "registered");
  EXPECT_STREQ(to_string(hal::ModuleFormat::functions), "functions");
  EXPECT_STREQ(to_string(hal::ModuleFormat::machine_code), "machine_code");
  EXPECT_STREQ(to_string(hal::ModuleFormat::source_cpp), "source_cpp");
  EXPECT_STREQ(to_string(hal::ModuleFormat::source_opencl), "source_opencl");
  EXPECT_STREQ(to_string(hal::ModuleFormat::spirv), "spirv");
}

}  // namespace
}  // namespace xpu
