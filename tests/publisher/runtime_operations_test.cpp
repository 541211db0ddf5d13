#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "publisher/runtime_support.hpp"

/// What the runtime says about the operations of its streams, beyond that it says something.
namespace xpu::publisher_tests {
namespace {

Kernel tiny_kernel_of(int device) {
  const DeviceGuard guard = DeviceGuard::make(device).value();
  return tiny_kernel();
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

TEST_F(RuntimeTest, ALaunchHasItsGeometry) {
  const Stream stream = fresh_stream();
  Geometry geometry = in_groups(items(8, 4, 2), 2, 2, 1);
  geometry.offset[0] = 1;
  geometry.offset[1] = 2;
  geometry.offset[2] = 3;
  stream.launch(tiny_kernel(), geometry, &number_).value();
  stream.synchronize().value();
  EXPECT_EQ(number_, 4u * 2u * 2u);
  const SeenOperation operation = only_one();
  EXPECT_EQ(operation.api, "xpu::Stream::launch");
  ASSERT_TRUE(operation.geometry);
  EXPECT_EQ(operation.geometry->dimensions, 3u);
  EXPECT_THAT(operation.geometry->global, testing::ElementsAre(8, 4, 2));
  EXPECT_THAT(operation.geometry->local, testing::ElementsAre(2, 2, 1));
  EXPECT_THAT(operation.geometry->offset, testing::ElementsAre(1, 2, 3));
  EXPECT_FALSE(operation.copy);
}

TEST_F(RuntimeTest, ALocalSizeThatTheDriverChoosesIsZero) {
  const Stream stream = fresh_stream();
  stream.launch(tiny_kernel(), items(64), &number_).value();
  stream.synchronize().value();
  const SeenOperation operation = only_one();
  ASSERT_TRUE(operation.geometry);
  EXPECT_EQ(operation.geometry->dimensions, 1u);
  EXPECT_THAT(operation.geometry->global, testing::ElementsAre(64, 1, 1));
  EXPECT_THAT(operation.geometry->local, testing::ElementsAre(0, 0, 0));
}

TEST_F(RuntimeTest, ACopyHasItsRouteItsBytesAndItsAddresses) {
  const Stream stream = fresh_stream();
  const Buffer first = Buffer::allocate(4096).value(), second = Buffer::allocate(4096).value();
  const Buffer pinned = Buffer::allocate(4096, MemoryKind::host).value();
  std::array<std::byte, 256> plain{};
  stream.copy(first.as<std::byte>() + 16, plain.data(), 100).value();
  stream.copy(second.data(), first.data(), 200).value();
  stream.copy(pinned.data(), second.data(), 50).value();
  stream.copy(plain.data(), pinned.data(), 25).value();
  stream.synchronize().value();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 4u);
  for (const SeenOperation& operation : operations) {
    EXPECT_EQ(operation.api, "xpu::Stream::copy");
    EXPECT_EQ(operation.kernel, 0u);
    EXPECT_FALSE(operation.geometry);
    ASSERT_TRUE(operation.copy);
    EXPECT_EQ(operation.copy->form, probe::CopyForm::linear);
  }
  EXPECT_EQ(operations[0].command, probe::Command::write);
  EXPECT_EQ(operations[0].copy->direction, probe::CopyDirection::host_to_device);
  EXPECT_EQ(operations[0].copy->bytes, 100u);
  EXPECT_EQ(operations[0].copy->source, address_of(plain.data()));
  EXPECT_EQ(operations[0].copy->source_type, probe::MemoryType::host);
  EXPECT_EQ(operations[0].copy->destination, address_of(first.data()) + 16);
  EXPECT_EQ(operations[0].copy->destination_type, probe::MemoryType::device) << "also inside of the block";
  EXPECT_EQ(operations[1].command, probe::Command::copy);
  EXPECT_EQ(operations[1].copy->direction, probe::CopyDirection::device_to_device);
  EXPECT_EQ(operations[1].copy->bytes, 200u);
  EXPECT_EQ(operations[2].command, probe::Command::read);
  EXPECT_EQ(operations[2].copy->direction, probe::CopyDirection::device_to_host);
  EXPECT_EQ(operations[2].copy->destination_type, probe::MemoryType::pinned);
  EXPECT_EQ(operations[3].command, probe::Command::copy);
  EXPECT_EQ(operations[3].copy->direction, probe::CopyDirection::host_to_host);
}

TEST_F(RuntimeTest, ACopyBetweenDevicesNamesTheOtherOne) {
  if (Device::count().value() < 2) GTEST_SKIP() << "there is one device";
  const Stream stream = fresh_stream(), others = Stream::from_pool(0, 1).value();
  const Buffer here = Buffer::allocate(64, MemoryKind::device, 0).value(), there = Buffer::allocate(64, MemoryKind::device, 1).value();
  stream.copy_blocking(there.data(), here.data(), 64).value();
  stream.copy_blocking(here.data(), there.data(), 64).value();
  others.launch(tiny_kernel_of(1), items(1), &number_).value();
  others.synchronize().value();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 3u);
  const probe::Id other_device = object(probe::ObjectKind::queue, operations[2].queue).device;
  for (const SeenOperation& operation : {operations[0], operations[1]}) {
    EXPECT_EQ(operation.command, probe::Command::copy);
    EXPECT_EQ(operation.copy->direction, probe::CopyDirection::peer);
    EXPECT_EQ(operation.copy->peer_device, other_device);
    EXPECT_NE(object(probe::ObjectKind::queue, operation.queue).device, other_device);
  }
}

TEST_F(RuntimeTest, AKernelOfEachDeviceIsAnObjectOfItsOwn) {
  if (Device::count().value() < 2) GTEST_SKIP() << "there is one device";
  for (const int device : {0, 1}) {
    const Stream stream = Stream::from_pool(1, device).value();
    stream.launch(tiny_kernel_of(device), items(1), &number_).value();
    stream.synchronize().value();
  }
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 2u);
  for (const SeenOperation& operation : operations) {
    const SeenObject kernel = object(probe::ObjectKind::kernel, operation.kernel);
    EXPECT_EQ(kernel.name, "tiny");
    EXPECT_EQ(kernel.device, object(probe::ObjectKind::queue, operation.queue).device);
  }
  EXPECT_NE(operations[0].kernel, operations[1].kernel);
}

TEST_F(RuntimeTest, ABlockingCopyIsAnOperationAndAWait) {
  const Stream stream = fresh_stream();
  const Buffer buffer = Buffer::allocate(64).value();
  std::array<std::byte, 64> plain{};
  stream.copy_blocking(buffer.data(), plain.data(), 64).value();
  EXPECT_EQ(only_one().command, probe::Command::write);
  EXPECT_THAT(subscriber_.waits(), testing::ElementsAre("xpu::Stream::synchronize"));
}

TEST_F(RuntimeTest, ACopyOfNothingIsNoOperation) {
  const Stream stream = fresh_stream();
  stream.copy(nullptr, nullptr, 0).value();
  stream.fill<int>(nullptr, 1, 0).value();
  EXPECT_TRUE(finished().empty());
}

TEST_F(RuntimeTest, AFillHasItsPattern) {
  const Stream stream = fresh_stream();
  const Buffer buffer = Buffer::allocate(64).value();
  stream.fill(buffer.as<std::uint8_t>(), 7, 64).value();
  stream.fill(buffer.as<std::uint32_t>(), 0x01020304, 16).value();
  const std::string sixteen = "0123456789abcdef";
  stream.fill_bytes(buffer.data(), std::as_bytes(std::span(sixteen)), 64).value();
  stream.synchronize().value();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 3u);
  for (const SeenOperation& operation : operations) {
    EXPECT_EQ(operation.api, "xpu::Stream::fill");
    EXPECT_EQ(operation.command, probe::Command::fill);
    ASSERT_TRUE(operation.copy);
    EXPECT_EQ(operation.copy->form, probe::CopyForm::pattern);
    EXPECT_EQ(operation.copy->bytes, 64u);
    EXPECT_EQ(operation.copy->destination, address_of(buffer.data()));
    EXPECT_EQ(operation.copy->destination_type, probe::MemoryType::device);
  }
  EXPECT_EQ(operations[0].pattern, "\x07");
  EXPECT_EQ(operations[1].pattern, "\x04\x03\x02\x01");
  EXPECT_EQ(operations[2].pattern, sixteen);
}

TEST_F(RuntimeTest, AHostFunctionIsAKernelWithItsNameAndGeometry) {
  const Stream stream = fresh_stream();
  const Geometry geometry = items(5, 6);
  bool ran = false;
  const Operation operation = stream.run({.name = "mul_out", .geometry = &geometry}, [&] { ran = true; }).value();
  stream.synchronize().value();
  EXPECT_TRUE(ran);
  const SeenOperation seen = only_one();
  EXPECT_EQ(seen.id, operation.id);
  EXPECT_EQ(operation.sequence, 1u);
  EXPECT_EQ(seen.api, "xpu::Stream::run");
  EXPECT_EQ(seen.command, probe::Command::native_kernel);
  EXPECT_EQ(object(probe::ObjectKind::kernel, seen.kernel).name, "mul_out");
  ASSERT_TRUE(seen.geometry);
  EXPECT_THAT(seen.geometry->global, testing::ElementsAre(5, 6, 1));
}

TEST_F(RuntimeTest, KernelsOfOneNameAreOneObjectAndOthersAnother) {
  const Stream stream = fresh_stream();
  for (int round = 0; round < 2; ++round) {
    for (const char* name : {"one", "two"}) stream.run({.name = name, .short_and_independent = true}, [] {}).value();
  }
  stream.synchronize().value();
  const auto operations = finished();
  ASSERT_EQ(operations.size(), 4u);
  EXPECT_EQ(operations[0].kernel, operations[2].kernel);
  EXPECT_EQ(operations[1].kernel, operations[3].kernel);
  EXPECT_NE(operations[0].kernel, operations[1].kernel);
}

TEST_F(RuntimeTest, ABlockingRunHasItsOwnNameAndIsAWaitToo) {
  const Stream stream = fresh_stream();
  bool ran = false;
  const Operation operation = stream.run_blocking({.name = "add_out"}, [&] { ran = true; }).value();
  EXPECT_TRUE(ran) << "before it returns";
  const SeenOperation seen = only_one();
  EXPECT_EQ(seen.id, operation.id);
  EXPECT_EQ(seen.api, "xpu::Stream::run_blocking");
  EXPECT_EQ(seen.completion->status, probe::CompletionStatus::ok);
  const auto waits = subscriber_.wait_details();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].type, probe::WaitType::blocking_call);
  EXPECT_EQ(waits[0].queue, seen.queue);
  EXPECT_EQ(waits[0].result, 0);
  EXPECT_LE(waits[0].enter_ns, seen.enter_ns);
}

TEST_F(RuntimeTest, WhatABlockingRunThrowsIsItsCallersAndNoFailureOfTheStream) {
  const Stream stream = fresh_stream();
  EXPECT_THROW(static_cast<void>(stream.run_blocking({}, [] { throw std::runtime_error("mine"); })), std::runtime_error);
  EXPECT_EQ(only_one().completion->status, probe::CompletionStatus::ok);
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(RuntimeTest, AFunctionThatFailsIsFailedAndWhatFollowsIsNot) {
  const Stream stream = fresh_stream();
  stream.run({.name = "before"}, [] {}).value();
  stream.run({.name = "error"}, []() -> Result<> { return Error{ErrorCode::internal, "on purpose"}; }).value();
  stream.run({.name = "exception"}, [] { throw std::runtime_error("on purpose, too"); }).value();
  stream.run({.name = "after"}, [] {}).value();
  const Result<> synchronized = stream.synchronize();
  ASSERT_FALSE(synchronized);
  EXPECT_EQ(synchronized.error().message, "on purpose");
  std::vector<probe::CompletionStatus> ends;
  for (const SeenOperation& operation : finished()) {
    EXPECT_EQ(operation.submission->result, 0) << "it was accepted";
    ends.push_back(operation.completion->status);
  }
  using enum probe::CompletionStatus;
  EXPECT_THAT(ends, testing::ElementsAre(ok, failed, failed, ok));
  const auto waits = subscriber_.wait_details();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_NE(waits[0].result, 0);
}

TEST_F(RuntimeTest, StampsAreInOrderAndOperationsOfAStreamDoNotOverlap) {
  const Stream stream = fresh_stream();
  for (int index = 0; index < 20; ++index) {
    stream.launch(tiny_kernel(), items(1), &number_).value();
    stream.run({}, [] {}).value();
  }
  stream.synchronize().value();
  std::uint64_t last_end = 0;
  for (const SeenOperation& operation : finished()) {
    const probe::Ticks& ticks = operation.completion->ticks;
    EXPECT_LE(ticks.queued, ticks.submit);
    EXPECT_LE(ticks.submit, ticks.start);
    EXPECT_LE(ticks.start, ticks.end);
    EXPECT_LE(last_end, ticks.start);
    last_end = ticks.end;
  }
}

TEST_F(RuntimeTest, OnTheHostsClockAnOperationLiesBetweenItsCallAndTheWait) {
  if (on_sim()) GTEST_SKIP() << "time is virtual there";
  const Stream stream = fresh_stream();
  stream.launch(tiny_kernel(), items(1), &number_).value();
  stream.synchronize().value();
  const SeenOperation operation = only_one();
  EXPECT_GE(operation.completion->ticks.queued, operation.enter_ns);
  EXPECT_LE(operation.completion->ticks.end, subscriber_.wait_details().at(0).exit_ns);
}

TEST_F(RuntimeTest, AFunctionThatSubmitsToItsOwnStreamHasEverythingPublishedOnce) {
  const Stream stream = fresh_stream();
  const Kernel kernel = tiny_kernel();
  for (const bool is_short : {true, false}) {
    stream.run({.name = "outer", .short_and_independent = is_short}, [&] { stream.launch(kernel, items(1), &number_).value(); }).value();
    stream.synchronize().value();
    stream.synchronize().value();  // what the function submitted
  }
  EXPECT_EQ(number_, 2u);
  const auto operations = finished();
  EXPECT_EQ(operations.size(), 4u);
  EXPECT_EQ(std::count_if(operations.begin(), operations.end(), [](const auto& seen) { return seen.api == "xpu::Stream::run"; }), 2);
}

TEST_F(RuntimeTest, WhatTheRuntimeRefusesNeverReachesTheDriverAndIsNoOperation) {
  const Stream stream = fresh_stream();
  EXPECT_FALSE(stream.launch(tiny_kernel(), items(0), &number_));
  EXPECT_FALSE(stream.launch(tiny_kernel(), items(1)));
  EXPECT_FALSE(stream.copy(nullptr, &number_, 4));
  EXPECT_TRUE(finished().empty());
}

TEST_F(RuntimeTest, ResultsNameTheNumberOnTheStreamWhetherSomebodyListensOrNot) {
  const Stream stream = fresh_stream();
  EXPECT_EQ(stream.run({}, [] {}).value().sequence, 1u);
  subscriber_.refuse_operations(true);
  const Operation unheard = stream.run({}, [] {}).value();
  EXPECT_EQ(unheard.sequence, 2u);
  EXPECT_EQ(unheard.id, 0u);
  subscriber_.refuse_operations(false);
  EXPECT_EQ(stream.run({}, [] {}).value().sequence, 3u);
  stream.synchronize().value();
  finished();
}

}  // namespace
}  // namespace xpu::publisher_tests
