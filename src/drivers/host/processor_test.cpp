#include "drivers/host/processor.hpp"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "drivers/host/driver.hpp"

namespace xpu::drivers::host {
namespace {

using testing::ElementsAre;

constexpr const char* kTwoProcessors =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\n"
    "stepping\t: 8\ncpu MHz\t\t: 2000.125\nflags\t\t: fpu sse2 avx avx512f avx512_fp16 avx512_bf16\n\n"
    "processor\t: 1\nvendor_id\t: Other\nmodel name\t: other\nflags\t\t: none\n";

std::size_t threads_of_process() {
  std::size_t count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (readdir(tasks) != nullptr) ++count;
  closedir(tasks);
  return count;
}

Options filled(std::uint32_t devices) {
  Options options;
  options.devices = devices;
  return with_defaults(options);
}

TEST(ProcessorTest, TheFirstProcessorsEntryIsRead) {
  const ProcessorFacts facts = parse_processor_facts(kTwoProcessors);
  EXPECT_EQ(facts.vendor_id, "GenuineIntel");
  EXPECT_EQ(facts.model_name, "Intel(R) Xeon(R) Platinum 8480+");
  EXPECT_EQ(facts.family, 6u);
  EXPECT_EQ(facts.model, 143u);
  EXPECT_EQ(facts.stepping, 8u);
  EXPECT_EQ(facts.clock_mhz, 2000u);
  EXPECT_THAT(facts.flags, ElementsAre("fpu", "sse2", "avx", "avx512f", "avx512_fp16", "avx512_bf16"));
  EXPECT_FALSE(facts.has_flag("avx512"));
}

TEST(ProcessorTest, AnythingElseIsReadAsNothing) {
  for (const char* text : {"", "\n\n", "no colon here\n", ":\n: \n"}) {
    const ProcessorFacts facts = parse_processor_facts(text);
    EXPECT_EQ(facts.model_name, "");
    EXPECT_TRUE(facts.flags.empty());
    EXPECT_EQ(device_properties(facts, "", filled(1), 0).name, "CPU");
  }
}

TEST(ProcessorTest, FactsBecomeProperties) {
  const DeviceProperties properties = device_properties(parse_processor_facts(kTwoProcessors), "id", filled(1), 0);
  EXPECT_EQ(properties.device_id, 6u << 16 | 143u << 8 | 8u);
  EXPECT_TRUE(properties.has_fp16);
  EXPECT_TRUE(properties.has_bfloat16_conversions);
  EXPECT_THAT(properties.native_vector_widths, ElementsAre(64, 32, 16, 8, 16, 8, 32));
  EXPECT_EQ(properties.max_compute_units, filled(1).processors);
}

TEST(ProcessorTest, AUuidDependsOnMachineProcessorAndOrdinalAndOnNothingElse) {
  const ProcessorFacts facts = parse_processor_facts(kTwoProcessors);
  ProcessorFacts faster = facts;
  faster.clock_mhz = 9999;
  const Uuid uuid = device_properties(facts, "machine\n", filled(2), 0).uuid;
  EXPECT_EQ(uuid, device_properties(faster, "machine", filled(1), 0).uuid);
  ProcessorFacts other = facts;
  other.stepping = 9;
  const std::set<std::string> different = {to_string(uuid), to_string(device_properties(facts, "machine", filled(2), 1).uuid),
                                           to_string(device_properties(facts, "machinf", filled(2), 0).uuid),
                                           to_string(device_properties(other, "machine", filled(2), 0).uuid)};
  EXPECT_EQ(different.size(), 4u);
  // Written down once: it stays the same after every start and in every version.
  EXPECT_EQ(to_string(uuid), "bb4a9973-5ffb-8b93-b507-4cb62e637201");
}

TEST(ProcessorTest, EnumeratingTellsAllDevicesAlikeEveryTimeAndStartsNoThread) {
  Options options;
  options.devices = 3;
  const std::size_t threads_before = threads_of_process();
  const std::unique_ptr<hal::Driver> driver = create_driver(options);
  const std::vector<DeviceProperties> devices = driver->enumerate().value();
  EXPECT_EQ(threads_of_process(), threads_before);
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices, driver->enumerate().value());
  EXPECT_NE(devices[0].uuid, devices[1].uuid);
  EXPECT_NE(devices[1].uuid, devices[2].uuid);
  EXPECT_EQ(driver->open_device(2).value()->properties(), devices[2]);
  EXPECT_EQ(threads_of_process(), threads_before);
  EXPECT_STREQ(driver->name(), "host");
}

}  // namespace
}  // namespace xpu::drivers::host
