#include "drivers/sim/driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "drivers/sim/test_support/sim_fixture.hpp"

namespace xpu::drivers::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// XPU_SIM_PROGRAM for the life of the object.
class ProgramFile {
 public:
  explicit ProgramFile(const std::string& text) {
    path_ = std::filesystem::temp_directory_path() / ("sim_driver_test_" + std::to_string(getpid()) + ".txt");
    std::ofstream(path_) << text;
    setenv("XPU_SIM_PROGRAM", path_.c_str(), 1);
  }
  ~ProgramFile() {
    unsetenv("XPU_SIM_PROGRAM");
    std::filesystem::remove(path_);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(DriverTest, WithoutAProgramThereIsOneDevice) {
  const auto driver = create_driver();
  EXPECT_STREQ(driver->name(), "sim");
  const auto devices = driver->enumerate().value();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices, driver->enumerate().value());
  EXPECT_EQ(driver->open_device(0).value()->properties(), devices[0]);
}

TEST(DriverTest, DevicesDifferInNameAndUuid) {
  const auto devices = create_programmed_driver(program_of("devices 2"))->enumerate().value();
  EXPECT_NE(devices[0].name, devices[1].name);
  EXPECT_NE(devices[0].uuid, devices[1].uuid);
}

TEST(DriverTest, TheProgramIsReadFromTheFileWhenTheDriverIsCreated) {
  std::unique_ptr<hal::Driver> driver;
  {
    const ProgramFile file("devices 3\nclock tick=80ns\n");
    driver = create_driver();
  }
  const auto devices = driver->enumerate().value();
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[2].timer_resolution_ns, 80u);
}

TEST(DriverTest, AWrongFileIsAnErrorOfCountingDevices) {
  const ProgramFile file("devices 3\ndevice 3\n");
  const auto driver = create_driver();
  const auto devices = driver->enumerate();
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr(file.path().string() + ":2: 'device' is no directive"));
  EXPECT_FALSE(driver->open_device(0));
  driver->prepare_for_exit(0);
}

TEST(DriverTest, AFileThatIsNotThereIsNamed) {
  const ProgramFile file("");
  setenv("XPU_SIM_PROGRAM", "/nowhere/sim.txt", 1);
  const auto devices = create_driver()->enumerate();
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().code, ErrorCode::not_found);
  EXPECT_THAT(devices.error().message, HasSubstr("XPU_SIM_PROGRAM=/nowhere/sim.txt cannot be read"));
  setenv("XPU_SIM_PROGRAM", std::filesystem::temp_directory_path().c_str(), 1);
  EXPECT_FALSE(create_driver()->enumerate()) << "a folder is no program";
}

TEST(DriverTest, AFileThatIsTooLargeIsRefused) {
  const ProgramFile file(std::string((1 << 20) + 1, '\n'));
  const auto devices = create_driver()->enumerate();
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("larger than 1 MiB"));
}

TEST(DriverTest, AProgramOfTheProcessCountsBeforeTheFile) {
  const ProgramFile file("devices 3");
  set_program(program_of("devices 2"));
  EXPECT_EQ(create_driver()->enumerate().value().size(), 2u);
  set_program(std::nullopt);
  EXPECT_EQ(create_driver()->enumerate().value().size(), 3u);
}

TEST(DriverTest, AProgramInCppThatIsNotAllowedIsAnErrorOfCountingDevices) {
  const auto devices = create_programmed_driver({.device_count = 0})->enumerate();
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("0 devices are asked for"));
}

TEST(DriverTest, CapabilitiesAreTrue) {
  SimDeviceUnderTest sim;
  const hal::Capabilities& capabilities = sim.device->capabilities();
  EXPECT_TRUE(capabilities.timed_events);
  EXPECT_TRUE(capabilities.timed_operations);
  EXPECT_TRUE(capabilities.blocking_events);
  EXPECT_TRUE(capabilities.native_queues);
  EXPECT_TRUE(capabilities.virtual_memory);
  EXPECT_TRUE(capabilities.host_memory_access);
  EXPECT_FALSE(capabilities.concurrent_operations);
  EXPECT_EQ(capabilities.priority_levels, 1u);
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::spirv;
  EXPECT_FALSE(sim.device->create_module(source)) << "a format that is not among the capabilities";
}

TEST(NativeQueueTest, AnAdoptedQueueIsTheSameQueueWithASinkOfItsOwn) {
  SimDeviceUnderTest sim;
  KeepingSink other_sink;
  const auto queue = sim.queue();
  const auto info = sim.device->inspect_queue(queue->native_handle()).value();
  EXPECT_TRUE(info.is_in_order);
  EXPECT_TRUE(info.is_same_context);
  EXPECT_EQ(info.device, 0u);
  EXPECT_EQ(info.priority, hal::QueuePriority::normal);
  const auto adopted = sim.device->adopt_queue(queue->native_handle(), &other_sink).value();
  EXPECT_EQ(adopted->native_handle(), queue->native_handle());
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 1);
  sim.store(*adopted, &place, 2, 2);
  queue->synchronize_blocking().value();
  EXPECT_EQ(place, 2u) << "the queue waits for what was submitted through the other one";
  EXPECT_EQ(other_sink.of(2).ticks.start, sim.sink.of(1).ticks.end);
}

TEST(NativeQueueTest, WhatARuntimeMustRefuseCanBeSeen) {
  SimDeviceUnderTest sim(program_of("devices 2")), stranger;
  const auto out_of_order = sim.device->create_queue({.priority = hal::QueuePriority::high, .out_of_order = true, .sink = nullptr}).value();
  const auto info = sim.device->inspect_queue(out_of_order->native_handle()).value();
  EXPECT_FALSE(info.is_in_order);
  EXPECT_EQ(info.priority, hal::QueuePriority::high);

  const auto other_device = sim.driver->open_device(1).value();
  const auto on_other_device = other_device->create_queue({}).value();
  EXPECT_EQ(sim.device->inspect_queue(on_other_device->native_handle()).value().device, 1u);

  const auto in_other_context = stranger.queue();
  EXPECT_FALSE(sim.device->inspect_queue(in_other_context->native_handle()).value().is_same_context);

  int nothing = 0;
  const auto none = sim.device->inspect_queue(&nothing);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(sim.device->adopt_queue(&nothing, nullptr));
}

TEST(NativeQueueTest, ADestroyedQueueIsNone) {
  SimDeviceUnderTest sim;
  auto queue = sim.queue();
  void* const handle = queue->native_handle();
  queue.reset();
  EXPECT_FALSE(sim.device->inspect_queue(handle));
}

TEST(LifeTest, WhatWasSubmittedToADestroyedQueueStillHappens) {
  SimDeviceUnderTest sim;
  auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 1);
  queue.reset();
  EXPECT_EQ(place, 0u);
  sim.device->synchronize_blocking().value();
  EXPECT_EQ(place, 1u);
  EXPECT_EQ(sim.sink.of(1).ticks.end, 15'000u);
}

TEST(LifeTest, ObjectsMayGoInAnyOrderAndPendingWorkEndsWithTheLast) {
  for (int order = 0; order < 24; ++order) {
    KeepingSink sink;
    std::uint64_t place = 0, counter = 0;
    {
      auto sim = std::make_unique<SimDeviceUnderTest>();
      auto queue = sim->device->create_queue({.sink = &sink}).value();
      auto event = sim->event();
      sim->store(*queue, &place, 1, 1);
      queue->host_function(counting_function(counter), {.token = 2}).value();
      sim->record(*queue, *event);
      std::vector<int> steps = {0, 1, 2, 3};
      for (int permutation = 0; permutation < order; ++permutation) std::next_permutation(steps.begin(), steps.end());
      for (const int step : steps) {
        if (step == 0) sim->driver.reset();
        if (step == 1) {
          sim->module.reset();
          sim->device.reset();
        }
        if (step == 2) queue.reset();
        if (step == 3) event.reset();
      }
    }
    EXPECT_EQ(place, 1u) << order;
    EXPECT_EQ(counter, 101u) << order;
    EXPECT_EQ(sink.completions().size(), 2u) << order;
  }
}

TEST(LifeTest, DeviceMemoryStaysWhileWorkIsPendingThatUsesIt) {
  SimDeviceUnderTest sim;
  auto queue = sim.queue();
  auto* place = static_cast<std::uint64_t*>(sim.device->memory(hal::MemoryKind::device)->allocate(64, 64).value());
  sim.store(*queue, place, 1, 1);
  sim.module.reset();
  sim.device.reset();
  queue->synchronize_blocking().value();
  EXPECT_EQ(sim.sink.of(1).status, hal::CompletionStatus::ok);
}

TEST(LifeTest, AtExitWhatWaitsIsDroppedAndDeliveredAsFailed) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  const auto event = sim.event();
  std::uint64_t place = 0, counter = 0;
  sim.store(*queue, &place, 1, 1);
  queue->host_function(counting_function(counter), {.token = 2}).value();
  sim.record(*queue, *event);
  sim.driver->prepare_for_exit(1000);
  EXPECT_EQ(place, 0u);
  EXPECT_EQ(counter, 100u);
  EXPECT_EQ(sim.sink.of(1).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sim.sink.of(1).ticks.start, 3'500u) << "the moment at which it was given up";
  EXPECT_EQ(sim.sink.of(1).ticks.end, 3'500u);
  EXPECT_EQ(sim.sink.of(2).status, hal::CompletionStatus::failed);

  EXPECT_TRUE(queue->query().value());
  EXPECT_TRUE(event->query().value());
  EXPECT_TRUE(queue->synchronize_blocking());
  const Result<> refused = sim.try_store(*queue, &place, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
}

TEST(LifeTest, AtExitWhatRunsMayEndWithinTheLimit) {
  struct Gate {
    std::atomic<bool> has_begun{false}, may_end{false};
  } gate;
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  const hal::HostFunction function{.call = [](void* user) -> Result<> {
                                     auto& self = *static_cast<Gate*>(user);
                                     self.has_begun = true;
                                     self.has_begun.notify_all();
                                     self.may_end.wait(false);
                                     return {};
                                   },
                                   .user = &gate};
  queue->host_function(function, {.token = 1}).value();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 2);
  std::thread waiting([&] { queue->synchronize_blocking().value(); });
  gate.has_begun.wait(false);
  EXPECT_FALSE(queue->query().value()) << "asking does not wait for what another thread runs";

  sim.driver->prepare_for_exit(1);  // the limit passes
  EXPECT_EQ(sim.sink.of(2).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sim.sink.completions().size(), 1u);
  std::thread ending([&] {
    gate.may_end = true;
    gate.may_end.notify_all();
  });
  sim.driver->prepare_for_exit(60'000);
  EXPECT_EQ(sim.sink.of(1).status, hal::CompletionStatus::ok);
  ending.join();
  waiting.join();
  EXPECT_EQ(place, 0u);
}

TEST(ControlTest, OnlyDevicesOfSimHaveAVirtualTime) {
  SimDeviceUnderTest sim;
  EXPECT_EQ(virtual_time(*sim.device).value(), 0s);
  advance_time(*sim.device, 3s).value();
  EXPECT_EQ(virtual_time(*sim.device).value(), 3s);
  advance_time(*sim.device, -1s).value();
  EXPECT_EQ(virtual_time(*sim.device).value(), 3s) << "it never goes back";
  advance_time(*sim.device, Time::max()).value();
  EXPECT_EQ(virtual_time(*sim.device).value(), kEndOfTime);
}

}  // namespace
}  // namespace xpu::drivers::sim
