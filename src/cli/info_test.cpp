#include "cli/info.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/console.hpp"

namespace xpu::cli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using Json = nlohmann::json;

DeviceReport make_device(int index, std::string name, std::uint8_t number) {
  DeviceReport device;
  device.index = index;
  device.properties.name = std::move(name);
  device.properties.uuid.bytes.back() = number;
  device.properties.max_compute_units = 2;
  device.properties.total_memory_bytes = std::uint64_t{3} << 30;
  if (index < 0) device.reason = "hidden by XPU_VISIBLE_DEVICES";
  return device;
}

/// Two drivers, of which one offers two devices in another order than its own, and hides a third.
Inventory make_inventory() {
  Inventory inventory;
  inventory.report.drivers = {
      {"first", true, "", {make_device(1, "Slow Processor", 1), make_device(-1, "Old Processor", 2), make_device(0, "Fast One", 3)}},
      {"second", false, "not selected by XPU_DRIVER", {}}};
  return inventory;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Info, EachDriverAndEachDeviceHasALineVisibleDevicesFirst) {
  EXPECT_THAT(
      lines_of(info_text(make_inventory(), 0)),
      ElementsAre("driver     first   3 devices", "driver     second  not selected by XPU_DRIVER",
                  "device 0   Fast One        first  cpu  2 compute units  3.0 GiB  00000000-0000-0000-0000-000000000003",
                  "device 1   Slow Processor  first  cpu  2 compute units  3.0 GiB  00000000-0000-0000-0000-000000000001",
                  "hidden     Old Processor   first  cpu  2 compute units  3.0 GiB  00000000-0000-0000-0000-000000000002  hidden by "
                  "XPU_VISIBLE_DEVICES"));
}

TEST(Info, ANarrowTerminalGetsShorterLinesWithEverything) {
  Inventory inventory = make_inventory();
  inventory.report.drivers[0].devices[0].properties.name = "Prozessor für alles " + std::string(100, 'x');
  const std::string text = info_text(inventory, 60);
  for (const std::string& line : lines_of(text)) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
    EXPECT_LE(columns, 60) << line;
  }
  EXPECT_THAT(text, HasSubstr("Prozessor für alles xxx"));
  EXPECT_THAT(text, HasSubstr("x…\n"));
  for (const char* part : {"00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002", "hidden by XPU_VISIBLE_DEVICES"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Info, NoLineEndsWithASpace) {
  for (const int columns : {0, 1, 40, 80, 200}) EXPECT_THAT(lines_of(info_text(make_inventory(), columns)), Each(Not(EndsWith(" "))));
}

TEST(Info, AForeignNameCannotDriveTheTerminal) {
  Inventory inventory = make_inventory();
  inventory.report.drivers[0].devices[0].properties.name = "a\x1b[31m\nb\xff";
  EXPECT_THAT(info_text(inventory, 0), HasSubstr("a?[31m?b?"));
  EXPECT_THAT(properties_text(inventory, 0), HasSubstr("a?[31m?b?"));
  EXPECT_EQ(Json::parse(info_json(inventory))["devices"][1]["properties"]["name"], "a\x1b[31m\nb\xef\xbf\xbd");
}

TEST(Info, ADriverThatWasNeverAskedSaysSo) {
  Inventory inventory;
  inventory.report.drivers = {{"first", false, "not asked: XPU_DRIVER is wrong", {}}};
  inventory.report.error = "XPU_DRIVER names 'moon'";
  EXPECT_EQ(info_text(inventory, 0), "driver     first  not asked: XPU_DRIVER is wrong\n");
}

TEST(Info, TheDocumentHasEveryDriverAndDevice) {
  const Json document = Json::parse(info_json(make_inventory()));
  EXPECT_EQ(document["schema"], "xpu.info/1");
  EXPECT_TRUE(document["error"].is_null());
  ASSERT_THAT(document["drivers"], SizeIs(2));
  EXPECT_EQ(document["drivers"][0]["is_selected"], true);
  EXPECT_TRUE(document["drivers"][0]["reason"].is_null());
  EXPECT_EQ(document["drivers"][1]["reason"], "not selected by XPU_DRIVER");
  ASSERT_THAT(document["devices"], SizeIs(3));
  EXPECT_EQ(document["devices"][0]["index"], 0);
  EXPECT_EQ(document["devices"][0]["properties"]["name"], "Fast One");
  EXPECT_EQ(document["devices"][0]["properties"]["total_memory_bytes"], std::uint64_t{3} << 30);
  EXPECT_TRUE(document["devices"][2]["index"].is_null());
  EXPECT_EQ(document["devices"][2]["reason"], "hidden by XPU_VISIBLE_DEVICES");
}

TEST(Info, WhatIsNotKnownIsNullInTheDocumentAndAbsentInTheText) {
  const Inventory inventory = make_inventory();
  const Json device = Json::parse(info_json(inventory))["devices"][0];
  for (const char* key : {"vendor", "pci", "gpu_eu_count", "max_clock_frequency_mhz"}) {
    EXPECT_TRUE(device["properties"][key].is_null()) << key;
    EXPECT_THAT(properties_text(inventory, 0), Not(HasSubstr(key)));
  }
  for (const char* key : {"error", "memory", "clock", "capabilities"}) EXPECT_TRUE(device[key].is_null()) << key;
  EXPECT_EQ(device["properties"]["has_fp64"], false);
}

TEST(Info, ADeviceCanBeLookedAtAlone) {
  const Inventory inventory = make_inventory();
  EXPECT_THAT(properties_text(inventory, 0, 1), StartsWith("device 1   Slow Processor\n"));
  EXPECT_THAT(properties_text(inventory, 0, 1), Not(HasSubstr("Fast One")));
  const Json document = Json::parse(info_json(inventory, 1));
  ASSERT_THAT(document["devices"], SizeIs(1));
  EXPECT_EQ(document["devices"][0]["properties"]["name"], "Slow Processor");
}

TEST(Info, AnOpenedDeviceTellsMemoryClockAndCapabilities) {
  Inventory inventory = make_inventory();
  OpenedDevice& opened = inventory.opened[1];
  opened.capabilities.module_formats =
      1u << static_cast<int>(hal::ModuleFormat::functions) | 1u << static_cast<int>(hal::ModuleFormat::spirv);
  opened.capabilities.timed_events = true;
  opened.clock.tick_numerator = 625;
  opened.clock.tick_denominator = 12;
  opened.clock.valid_bits = 32;
  opened.memory = {.free_bytes = 0, .total_bytes = 4096, .is_measured = true};

  const Json device = Json::parse(info_json(inventory))["devices"][1];
  EXPECT_EQ(device["capabilities"]["module_formats"], Json::array({"functions", "spirv"}));
  EXPECT_EQ(device["capabilities"]["timed_events"], true);
  EXPECT_EQ(device["clock"]["tick_ns"], (Json{{"numerator", 625}, {"denominator", 12}}));
  EXPECT_EQ(device["clock"]["valid_bits"], 32);
  EXPECT_TRUE(device["clock"]["same_as"].is_null());
  EXPECT_EQ(device["memory"]["free_bytes"], 0);

  const std::string text = properties_text(inventory, 0, 1);
  EXPECT_THAT(text, HasSubstr("functions, spirv\n"));
  EXPECT_THAT(text, HasSubstr("numerator 625, denominator 12\n"));
  EXPECT_THAT(text, HasSubstr("4.0 KiB (4,096)\n"));
}

TEST(Info, ADeviceThatCannotBeOpenedSaysWhy) {
  Inventory inventory = make_inventory();
  inventory.opened[0].error = "somebody else has it";
  const Json device = Json::parse(info_json(inventory))["devices"][0];
  EXPECT_EQ(device["error"], "somebody else has it");
  EXPECT_TRUE(device["capabilities"].is_null());
  EXPECT_THAT(properties_text(inventory, 0, 0), HasSubstr("  error     somebody else has it\n"));
}

TEST(Info, AnEmptyLibraryIsNoCrash) {
  EXPECT_THAT(info_text({}, 0), IsEmpty());
  EXPECT_THAT(properties_text({}, 0), IsEmpty());
  EXPECT_THAT(Json::parse(info_json({}))["devices"], IsEmpty());
}

}  // namespace
}  // namespace xpu::cli
