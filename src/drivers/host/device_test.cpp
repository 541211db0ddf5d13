#include "drivers/host/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/host/test_support/host_device.hpp"

namespace xpu::drivers::host {
namespace {

using namespace test_support;
using testing::ElementsAre;

TEST(HostDeviceTest, TheClockIsTheHostsMonotonicClockToTheNanosecond) {
  const HostSetup setup;
  const hal::ClockInfo& clock = setup.device->clock();
  EXPECT_EQ(clock.tick_numerator, clock.tick_denominator);
  EXPECT_EQ(clock.valid_bits, 64u);
  EXPECT_EQ(clock.host_domain, ClockDomain::monotonic);
  EXPECT_EQ(clock.same_as, ClockDomain::monotonic);
  const std::uint64_t before = now_ns();
  const hal::ClockReading reading = setup.device->read_clock().value();
  EXPECT_LE(before, reading.host_before_ns);
  EXPECT_EQ(reading.host_before_ns, reading.ticks);
  EXPECT_EQ(reading.host_after_ns, reading.ticks);
  EXPECT_LE(reading.ticks, now_ns());
}

TEST(HostDeviceTest, CapabilitiesFollowTheExecutor) {
  const HostSetup pool(with_executor(Executor::pool)), caller(with_executor(Executor::caller));
  EXPECT_TRUE(pool.device->capabilities().concurrent_operations);
  EXPECT_EQ(pool.device->capabilities().priority_levels, 3u);
  EXPECT_FALSE(caller.device->capabilities().concurrent_operations);
  EXPECT_EQ(caller.device->capabilities().priority_levels, 1u);
  for (const hal::Device* device : {pool.device.get(), caller.device.get()}) {
    const hal::Capabilities& capabilities = device->capabilities();
    EXPECT_TRUE(capabilities.virtual_memory && capabilities.host_memory_access && capabilities.timed_events &&
                capabilities.timed_operations && capabilities.blocking_events && capabilities.native_queues);
  }
}

TEST(HostDeviceTest, DeviceAndSharedMemoryDrawFromOneLimitPerDeviceAndHostMemoryFromItsOwn) {
  Options options;
  options.devices = 2;
  options.memory_bytes = std::uint64_t{64} << 20;
  const HostSetup setup(options);
  const auto other = setup.open(1);
  constexpr std::size_t kMost = std::size_t{48} << 20, kRest = std::size_t{24} << 20;
  hal::MemoryProvider& device = *setup.device->memory(hal::MemoryKind::device);
  hal::MemoryProvider& shared = *setup.device->memory(hal::MemoryKind::shared);
  hal::MemoryProvider& host = *setup.device->memory(hal::MemoryKind::host);
  EXPECT_EQ(device.info().value().total_bytes, options.memory_bytes);
  EXPECT_EQ(setup.device->properties().total_memory_bytes, options.memory_bytes);

  void* block = device.allocate(kMost, 64).value();
  const Result<void*> refused = shared.allocate(kRest, 64);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  void* on_host = host.allocate(kMost, 64).value();
  EXPECT_EQ(host.allocate(kRest, 64).error().code, ErrorCode::out_of_host_memory);
  void* on_other = other->memory(hal::MemoryKind::device)->allocate(kMost, 64).value();
  device.free(block);
  void* later = shared.allocate(kRest, 64).value();
  shared.free(later);
  host.free(on_host);
  other->memory(hal::MemoryKind::device)->free(on_other);
}

TEST(HostDeviceTest, AnAddressThatIsNoQueueIsAnErrorAndNotRead) {
  const HostSetup setup;
  int anything = 0;
  for (void* native : {static_cast<void*>(nullptr), static_cast<void*>(&anything), reinterpret_cast<void*>(std::uintptr_t{64})}) {
    EXPECT_EQ(setup.device->inspect_queue(native).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(setup.device->adopt_queue(native, nullptr).error().code, ErrorCode::invalid_argument);
  }
  auto queue = setup.queue();
  void* const native = queue->native_handle();
  EXPECT_TRUE(setup.device->inspect_queue(native));
  queue.reset();
  EXPECT_FALSE(setup.device->inspect_queue(native));
}

TEST(HostDeviceTest, ANativeQueueTellsItsDeviceOrderPriorityAndContext) {
  Options options;
  options.devices = 2;
  const HostSetup setup(options), other_driver(options);
  const auto queue = setup.open(1)->create_queue({hal::QueuePriority::high, true, nullptr}).value();
  const hal::NativeQueueInfo info = setup.device->inspect_queue(queue->native_handle()).value();
  EXPECT_EQ(info.device, 1u);
  EXPECT_FALSE(info.is_in_order);
  EXPECT_TRUE(info.is_same_context);
  EXPECT_EQ(info.priority, hal::QueuePriority::high);
  EXPECT_FALSE(other_driver.device->inspect_queue(queue->native_handle()).value().is_same_context);
  EXPECT_TRUE(setup.device->inspect_queue(setup.queue()->native_handle()).value().is_in_order);
}

TEST(HostDeviceTest, AnAdoptedQueueIsTheSameQueueWithASinkOfItsOwn) {
  const HostSetup setup;
  Deliveries owners, adopters;
  const auto queue = setup.queue(&owners);
  const auto adopted = setup.device->adopt_queue(queue->native_handle(), &adopters).value();
  EXPECT_EQ(adopted->native_handle(), queue->native_handle());
  Flag may_end;
  std::vector<int> order;
  submit(*queue, [&] { may_end.wait(), order.push_back(1); }, {1, false});
  submit(*adopted, [&] { order.push_back(2); }, {2, false});
  submit(*queue, [&] { order.push_back(3); }, {3, false});
  EXPECT_FALSE(adopted->query().value());
  may_end.raise();
  ASSERT_TRUE(adopted->synchronize_blocking());
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  EXPECT_THAT(owners.tokens(), ElementsAre(1, 3));
  EXPECT_THAT(adopters.tokens(), ElementsAre(2));
}

TEST(HostDeviceTest, SynchronisingADeviceCoversItsQueuesAndNoOtherDevices) {
  Options options;
  options.devices = 2;
  const HostSetup setup(options);
  const auto other = setup.open(1);
  const auto first = setup.queue(), second = setup.queue();
  const auto foreign = other->create_queue({}).value();
  Flag may_end, foreign_may_end;
  std::atomic<int> ran{0};
  submit(*foreign, [&] { foreign_may_end.wait(); });
  for (hal::Queue* queue : {first.get(), second.get()}) {
    submit(*queue, [&] { may_end.wait(), ++ran; });
  }
  may_end.raise();
  EXPECT_TRUE(setup.device->synchronize_blocking());
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(foreign->query().value());
  foreign_may_end.raise();
  EXPECT_TRUE(other->synchronize_blocking());
}

}  // namespace
}  // namespace xpu::drivers::host
