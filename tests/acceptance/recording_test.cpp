#include <algorithm>
#include <cmath>
#include <map>
#include <semaphore>
#include <thread>

#include "publisher/scripted_subscriber.hpp"
#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/hal/device.hpp"

// K1: whoever listens to the probe hears of every operation, exactly once, with its sizes and its times.

namespace xpu::acceptance {
namespace {

using publisher_tests::ScriptedSubscriber;
using publisher_tests::SeenOperation;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ScriptedSubscriber& subscriber() { return ScriptedSubscriber::get(); }

/// What was published since the subscriber forgot; fails when something has not ended or broke a rule of the probe.
std::vector<SeenOperation> published() {
  EXPECT_TRUE(subscriber().wait_for_completions(30'000));
  EXPECT_THAT(subscriber().problems(), IsEmpty());
  return subscriber().operations();
}

std::map<probe::Command, int> count_by_command(const std::vector<SeenOperation>& operations) {
  std::map<probe::Command, int> counts;
  for (const SeenOperation& operation : operations) ++counts[operation.command];
  return counts;
}

OWN_PROCESS_TEST(K1_RecordingTest, EveryOperationIsHeardOfAndEndsExactlyOnce) {
  subscriber();
  constexpr int kRounds = 5;
  std::map<probe::Command, int> expected;
  for (int device = 0; device < kDevices; ++device) {
    const Buffer values = Buffer::allocate(64, MemoryKind::device, device).value();
    const Kernel kernel = add_kernel(device);
    std::int32_t on_host[16] = {};
    for (const Stream& stream : {Stream::default_stream(device).value(), Stream::from_pool(-1, device).value()}) {
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_THAT(stream.fill(values.as<std::int32_t>(), 1, 16), Succeeds());
        EXPECT_THAT(stream.launch(kernel, items(16), values.as<std::int32_t>(), 1), Succeeds());
        EXPECT_THAT(stream.launch(kernel, items(16), values.as<std::int32_t>(), 1), Succeeds());
        EXPECT_THAT(stream.copy(on_host, values.data(), sizeof on_host), Succeeds());
        EXPECT_THAT(stream.copy(values.data(), on_host, sizeof on_host), Succeeds());
        EXPECT_THAT(stream.run({.name = "work"}, [] {}), Succeeds());
        EXPECT_THAT(stream.run_blocking({.name = "awaited work"}, [] {}), Succeeds());
        expected[probe::Command::fill] += 1;
        expected[probe::Command::ndrange_kernel] += 2;
        expected[probe::Command::read] += 1;
        expected[probe::Command::write] += 1;
        expected[probe::Command::native_kernel] += 2;
      }
      EXPECT_THAT(stream.synchronize(), Succeeds());
    }
  }
  const std::vector<SeenOperation> operations = published();
  EXPECT_EQ(count_by_command(operations), expected);
  EXPECT_THAT(operations, SizeIs(2u * kDevices * kRounds * 7));
  for (const SeenOperation& operation : operations) {
    ASSERT_TRUE(operation.completion) << operation.api;
    EXPECT_EQ(operation.completion->status, probe::CompletionStatus::ok) << operation.api;
    EXPECT_FALSE(operation.completion->clamped) << operation.api;
  }
}

OWN_PROCESS_TEST(K1_RecordingTest, WhoeverListensLaterHearsOfWhatExistsAndOfWhatFollows) {
  const Stream stream = Stream::from_pool().value();
  const Kernel kernel = add_kernel();
  const Buffer values = zeros(4);
  EXPECT_THAT(stream.launch(kernel, items(4), values_of(values), 1), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  subscriber();
  EXPECT_THAT(subscriber().objects(probe::ObjectKind::device), SizeIs(1));
  EXPECT_THAT(subscriber().objects(probe::ObjectKind::queue), SizeIs(1));
  EXPECT_THAT(stream.launch(kernel, items(4), values_of(values), 1), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(1));
  EXPECT_EQ(subscriber().objects(probe::ObjectKind::kernel).at(operations[0].kernel).name, "acceptance_add");
  EXPECT_EQ(operations[0].submission->queue_sequence, 1u);
}

OWN_PROCESS_TEST(K1_RecordingTest, ACopyHasItsBytesItsEndsAndItsDirection) {
  subscriber();
  const Buffer here = Buffer::allocate(4'096, MemoryKind::device, 0).value(),
               also_here = Buffer::allocate(4'096, MemoryKind::device, 0).value();
  const Buffer there = Buffer::allocate(4'096, MemoryKind::device, 1).value();
  const Buffer pinned = Buffer::allocate(4'096, MemoryKind::host, 0).value();
  std::vector<std::byte> pageable(4'096), more_pageable(4'096);
  const Stream stream = Stream::from_pool().value();

  struct Case {
    void* destination;
    const void* source;
    std::size_t bytes;
    probe::CopyDirection direction;
    probe::Command command;
  };
  const std::byte* const inside = static_cast<const std::byte*>(here.data()) + 1'000;
  const std::vector<Case> cases = {
      {here.data(), pageable.data(), 1, probe::CopyDirection::host_to_device, probe::Command::write},
      {here.data(), pinned.data(), 4'096, probe::CopyDirection::host_to_device, probe::Command::write},
      {pageable.data(), inside, 77, probe::CopyDirection::device_to_host, probe::Command::read},
      {pinned.data(), here.data(), 1'024, probe::CopyDirection::device_to_host, probe::Command::read},
      {also_here.data(), inside, 512, probe::CopyDirection::device_to_device, probe::Command::copy},
      {more_pageable.data(), pageable.data(), 4'000, probe::CopyDirection::host_to_host, probe::Command::copy},
      {there.data(), here.data(), 2'048, probe::CopyDirection::peer, probe::Command::copy},
  };
  for (const Case& each : cases) EXPECT_THAT(stream.copy(each.destination, each.source, each.bytes), Succeeds());
  EXPECT_THAT(stream.copy(here.data(), pageable.data(), 0), Succeeds());  // no operation
  EXPECT_THAT(stream.synchronize(), Succeeds());

  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(cases.size()));
  for (std::size_t index = 0; index < cases.size(); ++index) {
    SCOPED_TRACE(::testing::Message() << "copy " << index);
    ASSERT_TRUE(operations[index].copy);
    EXPECT_EQ(operations[index].copy->bytes, cases[index].bytes);
    EXPECT_EQ(operations[index].copy->direction, cases[index].direction);
    EXPECT_EQ(operations[index].copy->source, reinterpret_cast<std::uintptr_t>(cases[index].source));
    EXPECT_EQ(operations[index].copy->destination, reinterpret_cast<std::uintptr_t>(cases[index].destination));
    EXPECT_EQ(operations[index].command, cases[index].command);
  }
  EXPECT_NE(operations.back().copy->peer_device, 0u);
}

OWN_PROCESS_TEST(K1_RecordingTest, AFillHasItsBytesAndItsPattern) {
  subscriber();
  const Buffer values = Buffer::allocate(64).value();
  const Stream stream = Stream::from_pool().value();
  EXPECT_THAT(stream.fill(values.as<std::uint16_t>(), std::uint16_t{0x4241}, 10), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(1));
  EXPECT_EQ(operations[0].copy->bytes, 20u);
  EXPECT_EQ(operations[0].pattern, "AB");
  EXPECT_EQ(operations[0].copy->form, probe::CopyForm::pattern);
}

OWN_PROCESS_TEST(K1_RecordingTest, ALaunchHasItsKernelItsQueueAndItsGeometry) {
  subscriber();
  const Buffer values = zeros(64);
  const Stream stream = Stream::from_pool().value();
  EXPECT_THAT(stream.launch(add_kernel(), in_groups(items(64), 16), values_of(values), 1), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(1));
  EXPECT_EQ(operations[0].api, "xpu::Stream::launch");
  EXPECT_EQ(subscriber().objects(probe::ObjectKind::kernel).at(operations[0].kernel).name, "acceptance_add");
  EXPECT_TRUE(subscriber().objects(probe::ObjectKind::queue).contains(operations[0].queue));
  ASSERT_TRUE(operations[0].geometry);
  EXPECT_EQ(operations[0].geometry->dimensions, 1u);
  EXPECT_THAT(operations[0].geometry->global, ElementsAre(64, 1, 1));
  EXPECT_EQ(operations[0].geometry->local[0], 16u);
}

OWN_PROCESS_TEST(K1_RecordingTest, TheHostTimesBracketTheCall) {
  subscriber();
  const Buffer values = zeros(1);
  const Kernel kernel = add_kernel();
  const Stream stream = Stream::from_pool().value();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> brackets;
  for (int launch = 0; launch < 20; ++launch) {
    const std::uint64_t before_ns = now_ns();
    EXPECT_THAT(stream.launch(kernel, items(1), values_of(values), 1), Succeeds());
    brackets.emplace_back(before_ns, now_ns());
  }
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(brackets.size()));
  for (std::size_t index = 0; index < brackets.size(); ++index) {
    EXPECT_LE(brackets[index].first, operations[index].enter_ns);
    EXPECT_LE(operations[index].enter_ns, operations[index].submission->exit_ns);
    EXPECT_LE(operations[index].submission->exit_ns, brackets[index].second);
    EXPECT_EQ(operations[index].submission->queue_sequence, index + 1);
  }
}

OWN_PROCESS_TEST(K1_RecordingTest, TheTicksOfAnOperationAreInOrderAndOperationsOfAQueueFollowEachOther) {
  subscriber();
  const Buffer values = zeros(1);
  const Kernel kernel = add_kernel();
  const Stream stream = Stream::from_pool().value();
  const std::uint64_t before_ns = now_ns();
  for (int launch = 0; launch < 20; ++launch) {
    EXPECT_THAT(stream.launch(kernel, items(1), values_of(values), 1), Succeeds());
    EXPECT_THAT(stream.run({}, [] {}), Succeeds());
  }
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::uint64_t after_ns = now_ns();
  const bool ticks_are_host_ns = Device::get(0).value().native().value()->clock().same_as == ClockDomain::monotonic;
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(40));
  std::uint64_t end_before = 0;
  for (const SeenOperation& operation : operations) {
    const probe::Ticks& ticks = operation.completion->ticks;
    EXPECT_LE(ticks.queued, ticks.submit);
    EXPECT_LE(ticks.submit, ticks.start);
    EXPECT_LE(ticks.start, ticks.end);
    EXPECT_LE(end_before, ticks.start);
    end_before = ticks.end;
    if (!ticks_are_host_ns) continue;
    EXPECT_LE(before_ns, ticks.queued);
    EXPECT_LE(operation.enter_ns, ticks.start);
    EXPECT_LE(ticks.end, after_ns);
  }
}

OWN_PROCESS_TEST(K1_RecordingTest, EventsAndRecordsAgreeOnAnOperation) {
  subscriber();
  const Buffer values = zeros(1);
  const Kernel kernel = add_kernel();
  const Stream stream = Stream::from_pool().value();
  Event behind_first(EventOptions{.timing = true}), behind_second(EventOptions{.timing = true});
  {
    std::optional<Hold> hold;  // else an event could lie behind the end of an operation that was over
    if (runs_by_itself()) hold.emplace(stream);
    EXPECT_THAT(stream.launch(kernel, items(1), values_of(values), 1), Succeeds());
    EXPECT_THAT(behind_first.record(stream), Succeeds());
    EXPECT_THAT(stream.launch(kernel, items(1), values_of(values), 1), Succeeds());
    EXPECT_THAT(behind_second.record(stream), Succeeds());
  }
  EXPECT_THAT(stream.synchronize(), Succeeds());
  std::vector<std::uint64_t> ends;
  for (const SeenOperation& operation : published()) {
    if (operation.command == probe::Command::ndrange_kernel) ends.push_back(operation.completion->ticks.end);
  }
  ASSERT_THAT(ends, SizeIs(2));
  const hal::ClockInfo& clock = Device::get(0).value().native().value()->clock();
  const double between_ms = static_cast<double>(ends[1] - ends[0]) * clock.tick_numerator / clock.tick_denominator / 1e6;
  EXPECT_DOUBLE_EQ(behind_first.elapsed_time(behind_second).value(), between_ms);
}

OWN_PROCESS_TEST(K1_RecordingTest, ACallThatIsRefusedIsNoOperation) {
  subscriber();
  const Stream stream = Stream::from_pool().value();
  const Buffer values = zeros(4);
  const Kernel kernel = add_kernel(), kernel_of_another_device = add_kernel(1);
  EXPECT_FALSE(stream.launch(kernel, items(4), values_of(values)));
  EXPECT_FALSE(stream.launch(kernel, items(4), values_of(values), 1.0));
  EXPECT_FALSE(stream.launch(kernel, items(0), values_of(values), 1));
  EXPECT_FALSE(stream.launch(kernel_of_another_device, items(4), values_of(values), 1));
  EXPECT_FALSE(stream.copy(nullptr, values.data(), 4));
  EXPECT_FALSE(stream.fill(static_cast<std::int32_t*>(nullptr), 1, 4));
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_THAT(published(), IsEmpty());
}

OWN_PROCESS_TEST(K1_RecordingTest, AFunctionThatFailsOrThrowsEndsAsFailedAndTheNextSynchronisationSaysWhy) {
  subscriber();
  const Stream stream = Stream::from_pool().value();
  EXPECT_THAT(stream.run({.name = "fails"}, [] { return Result<>(Error{ErrorCode::unsupported, "on purpose"}); }), Succeeds());
  EXPECT_THAT(stream.synchronize(), FailsWith(ErrorCode::unsupported, ::testing::HasSubstr("on purpose")));
  EXPECT_THAT(stream.run({.name = "throws"}, [] { throw std::runtime_error("thrown on purpose"); }), Succeeds());
  EXPECT_THAT(stream.synchronize(), FailsWith(ErrorCode::internal, ::testing::HasSubstr("thrown on purpose")));
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(2));
  for (const SeenOperation& operation : operations) EXPECT_EQ(operation.completion->status, probe::CompletionStatus::failed);
}

OWN_PROCESS_TEST(K1_RecordingTest, AnOperationNamesItsRecordAndItsPlaceOnTheStream) {
  subscriber();
  const Stream stream = Stream::from_pool().value();
  const Operation first = stream.run({.name = "first"}, [] {}).value();
  const Operation second = stream.run_blocking({.name = "second"}, [] {}).value();
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::vector<SeenOperation> operations = published();
  ASSERT_THAT(operations, SizeIs(2));
  EXPECT_EQ(operations[0].id, first.id);
  EXPECT_EQ(operations[1].id, second.id);
  EXPECT_EQ(first.sequence, 1u);
  EXPECT_EQ(second.sequence, 2u);
  const auto kernels = subscriber().objects(probe::ObjectKind::kernel);
  EXPECT_EQ(kernels.at(operations[0].kernel).name, "first");
  EXPECT_EQ(kernels.at(operations[1].kernel).name, "second");
}

OWN_PROCESS_TEST(K1_RecordingTest, WorkOfAHostFunctionIsWorkOfItsOwn) {
  subscriber();
  const Stream stream = Stream::from_pool().value(), other = Stream::from_pool().value();
  const Kernel kernel = add_kernel();
  const Buffer values = zeros(1);
  const auto submit = [&] { return other.launch(kernel, items(1), values_of(values), 1); };
  EXPECT_THAT(stream.run({.name = "submits"}, submit), Succeeds());
  EXPECT_THAT(stream.run({.name = "submits, and is short", .short_and_independent = true}, submit), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_THAT(other.synchronize(), Succeeds());
  EXPECT_EQ(values_of(values)[0], 2);
  EXPECT_EQ(count_by_command(published()),
            (std::map<probe::Command, int>{{probe::Command::native_kernel, 2}, {probe::Command::ndrange_kernel, 2}}));
}

OWN_PROCESS_TEST(K1_RecordingTest, ThreadsThatSubmitToTheSameStreamsLoseNothing) {
  subscriber();
  constexpr int kThreads = 4, kLaunches = 100;
  const Kernel kernel = add_kernel();
  const Buffer values = zeros(kThreads);
  const Stream streams[] = {Stream::from_pool().value(), Stream::from_pool().value()};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int launch = 0; launch < kLaunches; ++launch) {
        // Each value is added to by launches of one stream only.
        EXPECT_THAT(streams[thread % 2].launch(kernel, items(1), values_of(values) + thread, 1), Succeeds());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(std::vector<std::int32_t>(values_of(values), values_of(values) + kThreads), Each(kLaunches));
  EXPECT_THAT(published(), SizeIs(kThreads * kLaunches));
}

OWN_PROCESS_TEST(K1_RecordingTest, WaitsAndMemoryAreHeardOf) {
  subscriber();
  const Stream stream = Stream::from_pool().value(), other = Stream::from_pool().value();
  Event event;
  EXPECT_THAT(event.record(stream), Succeeds());
  subscriber().forget_events();
  EXPECT_THAT(other.wait(event), Succeeds());
  EXPECT_THAT(event.synchronize(), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_THAT(synchronize(0), Succeeds());
  const std::vector<probe::Wait> waits = subscriber().wait_details();
  std::vector<probe::WaitType> types;
  for (const probe::Wait& wait : waits) types.push_back(wait.type);
  EXPECT_THAT(types,
              ElementsAre(probe::WaitType::stream_on_event, probe::WaitType::events, probe::WaitType::queue, probe::WaitType::device));
  {
    const Buffer buffer = Buffer::allocate(1'000).value();
  }
  const std::vector<probe::MemoryEvent> memory = subscriber().memory_events();
  ASSERT_THAT(memory, SizeIs(2));
  EXPECT_EQ(memory[0].action, probe::MemoryAction::allocate);
  EXPECT_EQ(memory[1].action, probe::MemoryAction::release);
  for (const probe::MemoryEvent& each : memory) EXPECT_EQ(each.bytes, 1'000u);
  EXPECT_EQ(memory[0].address, memory[1].address);
  EXPECT_THAT(published(), IsEmpty());
}

OWN_PROCESS_TEST(K1_RecordingTest, TheClockIsReadBeforeTheFirstOperation) {
  subscriber();
  const Stream stream = Stream::from_pool(0, 1).value();
  EXPECT_THAT(stream.run({}, [] {}), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_THAT(published(), SizeIs(1));
  const std::vector<probe::ClockReading> readings = subscriber().readings();
  ASSERT_FALSE(readings.empty());
  EXPECT_LE(readings[0].host_before_ns, readings[0].host_after_ns);
  EXPECT_TRUE(subscriber().objects(probe::ObjectKind::device).contains(readings[0].device));
}

/// Printed after the runtime's own end, by a handler that is registered before it.
void print_what_ended() {
  int ok = 0, failed = 0, lost = 0, open = 0;
  for (const SeenOperation& operation : subscriber().operations()) {
    if (operation.lost) {
      ++lost;
    } else if (!operation.completion) {
      ++open;
    } else if (operation.completion->status == probe::CompletionStatus::ok) {
      ++ok;
    } else {
      ++failed;
    }
  }
  std::printf("ok %d, failed %d, lost %d, open %d, problems %zu\n", ok, failed, lost, open, subscriber().problems().size());
}

XPU_CHILD_MODE(end_with_an_operation_that_runs) {
  std::atexit(print_what_ended);
  subscriber();
  const Stream stream = Stream::from_pool().value(), other = Stream::from_pool().value();
  static std::binary_semaphore is_running{0};
  other.run({}, [] {}).value();
  other.synchronize().value();
  stream
      .run({},
           [] {
             is_running.release();
             std::this_thread::sleep_for(std::chrono::hours(1));
           })
      .value();
  stream.run({}, [] {}).value();
  is_running.acquire();
  return 7;
}

TEST(K1_RecordingTest, WhatStillRunsWhenTheProcessEndsHasNoEndAndWhatNeverBeganHasFailed) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  const Ended ended = run_mode("end_with_an_operation_that_runs");
  EXPECT_EQ(ended.exit_code, 7) << ended;
  EXPECT_EQ(ended.output, "ok 1, failed 1, lost 0, open 1, problems 0\n") << ended;
}

}  // namespace
}  // namespace xpu::acceptance
