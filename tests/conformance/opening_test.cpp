#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Opening devices, and what outlives what.
class OpeningTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(OpeningTest);

TEST_P(OpeningTest, EveryDeviceThatIsCountedCanBeOpened) {
  for (std::uint32_t ordinal = 0; ordinal < shared().device_count(); ++ordinal) EXPECT_NO_THROW(device(ordinal));
}

TEST_P(OpeningTest, ADeviceIsTheOneThatWasCounted) {
  const std::vector<DeviceProperties> counted = shared().driver().enumerate().value();
  for (std::uint32_t ordinal = 0; ordinal < counted.size(); ++ordinal) EXPECT_EQ(device(ordinal).properties(), counted[ordinal]);
}

TEST_P(OpeningTest, ADeviceCanBeOpenedWithoutCounting) {
  const std::unique_ptr<hal::Driver> driver = new_driver();
  EXPECT_TRUE(is_ok(driver->open_device(0)));
}

TEST_P(OpeningTest, PropertiesAreTheSameObjectAtEveryRead) {
  const DeviceProperties* const first = &device().properties();
  const DeviceProperties copy = *first;
  EXPECT_EQ(&device().properties(), first);
  EXPECT_EQ(device().properties(), copy);
}

TEST_P(OpeningTest, TwoInstancesUseTheSameDeviceSideBySide) {
  const std::unique_ptr<hal::Driver> other_driver = new_driver();
  const std::unique_ptr<hal::Device> other_device = other_driver->open_device(0).value();
  const std::unique_ptr<hal::Queue> mine = new_queue();
  const std::unique_ptr<hal::Queue> other = other_device->create_queue({}).value();
  std::atomic<int> run_count{0};
  submit_action(*mine, [&] { ++run_count; }).value();
  submit_action(*other, [&] { ++run_count; }).value();
  EXPECT_TRUE(is_ok(mine->synchronize_blocking()));
  EXPECT_TRUE(is_ok(other->synchronize_blocking()));
  EXPECT_EQ(run_count, 2);
}

TEST_P(OpeningTest, ADeviceOutlivesItsDriver) {
  std::unique_ptr<hal::Driver> driver = new_driver();
  const std::unique_ptr<hal::Device> device = driver->open_device(0).value();
  driver.reset();
  const std::unique_ptr<hal::Queue> queue = device->create_queue({}).value();
  std::atomic<bool> has_run{false};
  submit_action(*queue, [&] { has_run = true; }).value();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(OpeningTest, AQueueOutlivesItsDeviceAndDriver) {
  std::unique_ptr<hal::Driver> driver = new_driver();
  std::unique_ptr<hal::Device> device = driver->open_device(0).value();
  const std::unique_ptr<hal::Queue> queue = device->create_queue({}).value();
  device.reset();
  driver.reset();
  std::atomic<bool> has_run{false};
  submit_action(*queue, [&] { has_run = true; }).value();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(OpeningTest, AnEventOutlivesItsQueueDeviceAndDriver) {
  std::unique_ptr<hal::Driver> driver = new_driver();
  std::unique_ptr<hal::Device> device = driver->open_device(0).value();
  std::unique_ptr<hal::Queue> queue = device->create_queue({}).value();
  const std::unique_ptr<hal::Event> event = device->create_event({}).value();
  std::atomic<bool> has_run{false};
  submit_action(*queue, [&] { has_run = true; }).value();
  queue->record(*event).value();
  queue.reset();
  device.reset();
  driver.reset();
  EXPECT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(event->query().value());
}

TEST_P(OpeningTest, AKernelOutlivesTheDeviceThatItWasMadeFor) {
  XPU_NEEDS(registered_modules);
  std::unique_ptr<hal::Device> device = new_driver()->open_device(0).value();
  const std::shared_ptr<const hal::Kernel> kernel = device->create_module({}).value()->kernel("conformance_set").value();
  device.reset();
  EXPECT_EQ(kernel->info().name, "conformance_set");
  EXPECT_EQ(kernel->info().arguments.size(), 2u);
}

TEST_P(OpeningTest, WorkThatIsPendingWhenItsDeviceGoesStillEnds) {
  std::unique_ptr<hal::Device> device = new_driver()->open_device(0).value();
  const std::unique_ptr<hal::Queue> queue = device->create_queue({}).value();
  std::atomic<int> run_count{0};
  for (int index = 0; index < 100; ++index) submit_action(*queue, [&] { ++run_count; }).value();
  device.reset();
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(run_count, 100);
}

TEST_P(OpeningTest, TheMemoryOfAKindIsTheSameObjectAtEveryCall) {
  for (const hal::MemoryKind kind : {hal::MemoryKind::device, hal::MemoryKind::host, hal::MemoryKind::shared}) {
    EXPECT_EQ(device().memory(kind), device().memory(kind)) << to_string(kind);
  }
}

TEST_P(OpeningTest, ADeviceReachesItsOwnMemory) { EXPECT_TRUE(device().can_access_peer(device())); }

TEST_P(OpeningTest, TenInstancesOpenAndCloseTheirDevices) {
  for (int round = 0; round < 10; ++round) {
    const std::unique_ptr<hal::Driver> driver = new_driver();
    const std::unique_ptr<hal::Device> device = driver->open_device(0).value();
    const std::unique_ptr<hal::Queue> queue = device->create_queue({}).value();
    std::atomic<bool> has_run{false};
    submit_action(*queue, [&] { has_run = true; }).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    ASSERT_TRUE(has_run) << round;
  }
}

}  // namespace
}  // namespace xpu::conformance
