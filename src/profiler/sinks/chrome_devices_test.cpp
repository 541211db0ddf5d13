// What a timeline says of devices, drivers and versions, and which rows it has: nothing that nobody told, and nothing that is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::ScriptedSource;
using testing::UnorderedElementsAre;
using DeviceJson = nlohmann::json;

DeviceJson timeline_of(const ScriptedSource& source, Compatibility compatibility = Compatibility::none) {
  std::string text;
  ChromeSink sink(
      [&](std::string_view piece) {
        text += piece;
        return Result<>();
      },
      {.name = "test", .compatibility = compatibility});
  Session session(source);
  EXPECT_TRUE(session.run({&sink}));
  return DeviceJson::parse(text);
}

DeviceJson first_slice(const DeviceJson& timeline, const std::string& category) {
  for (const DeviceJson& event : timeline["traceEvents"]) {
    if (event.value("cat", "") == category && event["ph"] == "X") return event;
  }
  return {};
}

trace::DeviceRecord device_record() {
  trace::DeviceRecord record{};
  for (std::uint8_t byte = 0; byte < 16; ++byte) record.uuid[byte] = static_cast<std::uint8_t>(byte * 0x11);
  record.pci_domain = 0;
  record.pci[0] = 3;
  record.tick_numerator = record.tick_denominator = 1;
  record.valid_bits = 64;
  return record;
}

TEST(ChromeDevicesTest, ADeviceHasAllThatItsDriverTells) {
  ScriptedSource source;
  source.add_process(100);
  source.add_device(device_record(), "Data Center GPU", "Level Zero",
                    {{trace::FactKey::device_total_memory_bytes, std::uint64_t{64} << 30},
                     {trace::FactKey::device_max_allocation_bytes, std::uint64_t{16} << 30},
                     {trace::FactKey::device_local_memory_bytes, 131'072},
                     {trace::FactKey::device_max_work_group_size, 1'024},
                     {trace::FactKey::device_compute_units, 448},
                     {trace::FactKey::device_max_clock_mhz, 1'600}},
                    "Intel", "1.3.27");
  for (const std::uint32_t seed : {0u, 1u, 2u}) {
    if (seed != 0) source.shuffle(seed);
    EXPECT_EQ(timeline_of(source)["deviceProperties"], DeviceJson::parse(R"([{
      "id": 0, "name": "Data Center GPU", "totalGlobalMem": 68719476736, "maxComputeUnits": 448, "maxWorkGroupSize": 1024,
      "maxClockFrequency": 1600, "maxMemAllocSize": 17179869184, "localMemSize": 131072, "vendor": "Intel", "driverVersion": "1.3.27",
      "driver": "Level Zero", "uuid": "00112233-4455-6677-8899-aabbccddeeff", "pci": "0000:03:00.0"}])"));
  }
}

TEST(ChromeDevicesTest, WhatNobodyToldIsNotThere) {
  ScriptedSource source;
  source.add_process(100);
  source.add_device("device", "");
  EXPECT_EQ(timeline_of(source)["deviceProperties"], DeviceJson::parse(R"([{"id": 0, "name": "device"}])"));
  EXPECT_EQ(timeline_of(source)["drivers"], DeviceJson::array());
}

TEST(ChromeDevicesTest, PartsOfADeviceShareItsIdSpaceAndNameEachOther) {
  ScriptedSource source;
  source.add_process(100);
  const std::uint32_t whole = source.add_device(device_record(), "whole", "driver", {});
  trace::DeviceRecord part = device_record();
  part.parent = whole;
  source.add_device(part, "part", "driver", {});
  source.add_device(part, "part", "driver", {});
  part.parent = 5;  // itself: a damaged file may say so
  source.add_device(device_record(), "other", "other driver", {});
  source.add_device(part, "own parent", "driver", {});
  part.parent = 77;
  source.add_device(part, "orphan", "driver", {});
  const DeviceJson devices = timeline_of(source)["deviceProperties"];
  ASSERT_EQ(devices.size(), 6u);
  EXPECT_EQ(devices[0]["subDevices"], DeviceJson({1, 2}));
  EXPECT_EQ(devices[1]["parent"], 0);
  EXPECT_EQ(devices[2]["parent"], 0);
  std::set<int> ids;
  for (const DeviceJson& device : devices) ids.insert(device["id"].get<int>());
  EXPECT_EQ(ids, (std::set<int>{0, 1, 2, 3, 4, 5})) << "one space over all drivers";
  for (const int alone : {0, 3, 4, 5}) EXPECT_FALSE(devices[static_cast<std::size_t>(alone)].contains("parent")) << alone;
}

TEST(ChromeDevicesTest, SaysWhoMadeItAndOnWhat) {
  ScriptedSource source;
  source.mutable_manifest().xpu_version = "9.8.7";
  source.mutable_manifest().system = "Linux 6.1.0 x86_64";
  source.mutable_manifest().host = "machine";
  source.add_process(100);
  source.add_device(device_record(), "a", "driver one", {}, "", "1.0");
  source.add_device(device_record(), "b", "driver one", {}, "", "1.0");
  source.add_device(device_record(), "c", "driver two", {});
  const DeviceJson timeline = timeline_of(source);
  EXPECT_EQ(timeline["xpu_version"], "9.8.7");
  EXPECT_EQ(timeline["system"], "Linux 6.1.0 x86_64");
  EXPECT_EQ(timeline["host_name"], "machine");
  EXPECT_EQ(timeline["drivers"], DeviceJson::parse(R"([{"name": "driver one", "version": "1.0"}, {"name": "driver two"}])"));
  source.mutable_manifest().xpu_version.clear();
  source.mutable_manifest().system.clear();
  EXPECT_FALSE(timeline_of(source).contains("xpu_version"));
  EXPECT_FALSE(timeline_of(source).contains("system"));
}

TEST(ChromeDevicesTest, RowsAreOfDevicesThatDidSomethingAndLabelledByTheirNumber) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_device("idle");
  const std::uint32_t second = source.add_queue(source.add_device("busy"));
  source.add_reading(3, 1'000, 1'000);
  source.add_reading(3, 10'001'000, 10'001'000);
  source.add_command({.queue = second, .start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250});
  std::vector<std::string> labels, devices;
  const DeviceJson timeline = timeline_of(source);
  for (const DeviceJson& event : timeline["traceEvents"]) {
    if (event["ph"] != "M") continue;
    if (event["name"] == "process_labels") labels.push_back(event["args"]["labels"].get<std::string>());
    if (event["name"] == "process_name") devices.push_back(event["args"]["name"].get<std::string>());
  }
  EXPECT_THAT(labels, UnorderedElementsAre("XPU 2"));
  EXPECT_THAT(devices, UnorderedElementsAre("program", "busy (driver 1)")) << "no row is of a device without work";
}

TEST(ChromeDevicesTest, ArgumentsHaveKinetosNamesWhereReadersAskForThem) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250, .queued = 4'500, .submit = 4'985});
  source.add_command({.start = 6'000,
                      .end = 6'100,
                      .enter_ns = 4'300,
                      .exit_ns = 4'400,
                      .command = probe::Command::write,
                      .bytes = 64,
                      .direction = probe::CopyDirection::host_to_device});
  const DeviceJson legacy = timeline_of(source, Compatibility::hta);
  const DeviceJson kernel = first_slice(legacy, "kernel")["args"], copy = first_slice(legacy, "gpu_memcpy")["args"];
  EXPECT_EQ(kernel["kernel_id"], kernel["correlation"]);
  EXPECT_EQ(kernel["sycl queue"], 1);
  EXPECT_DOUBLE_EQ(kernel["appended_rel_to_start"].get<double>(), -0.5);
  EXPECT_DOUBLE_EQ(kernel["submitted_rel_to_start"].get<double>(), -0.015) << "with its sign, below a microsecond too";
  EXPECT_EQ(copy["memory opration id"], copy["correlation"]);
  EXPECT_TRUE(copy["l0 call"].is_string());
  EXPECT_FALSE(copy.contains("appended")) << "what is unknown is absent";
  const DeviceJson plain = timeline_of(source);
  for (const char* key : {"kernel_id", "sycl queue", "appended", "appended_rel_to_start", "submitted_rel_to_start"}) {
    EXPECT_FALSE(first_slice(plain, "kernel")["args"].contains(key)) << key;
  }
  EXPECT_FALSE(first_slice(plain, "gpu_memcpy")["args"].contains("memory opration id"));
}

TEST(ChromeDevicesTest, WhatRecordingCostIsOnRowsOfItsOwnAndNoTimeOfADevice) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250});
  const auto device_time = [&] {
    Session session(source);
    std::uint64_t busy_ns = 0;
    class BusySink final : public Sink {
     public:
      explicit BusySink(std::uint64_t& to) : to_(to) {}
      void handle_kernel_activity(const KernelActivity& kernel) override { to_ += kernel.duration_ns; }

     private:
      std::uint64_t& to_;
    } sink(busy_ns);
    EXPECT_TRUE(session.run({&sink}));
    return busy_ns;
  };
  const std::uint64_t before = device_time();
  source.add_overhead(4'000, 4'100, 64);
  EXPECT_EQ(device_time(), before);
  const DeviceJson timeline = timeline_of(source);
  const DeviceJson overhead = first_slice(timeline, "overhead"), kernel = first_slice(timeline, "kernel");
  ASSERT_FALSE(overhead.is_null());
  EXPECT_NE(overhead["pid"], kernel["pid"]);
  EXPECT_FALSE(overhead["args"].contains("correlation")) << "it is no operation's";
  EXPECT_FALSE(overhead["args"].contains("External id"));
  EXPECT_FALSE(overhead["args"].contains("device"));
}

}  // namespace
}  // namespace xpu::profiler
