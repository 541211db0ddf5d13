#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// The end of a process. Each test is a process of its own, in which `prepare_for_exit` is the last call to the driver: the objects are
/// left to it.
class ExitTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(ExitTest);

/// Counts that outlive everything.
struct Tally {
  std::atomic<int> called{0}, dropped{0};
  RecordingSink sink;

  hal::HostFunction function() {
    return {[](void* user) -> Result<> {
              ++static_cast<Tally*>(user)->called;
              return {};
            },
            [](void* user) { ++static_cast<Tally*>(user)->dropped; }, this};
  }
  int delivered(hal::CompletionStatus status) const {
    int count = 0;
    for (const hal::Completion& completion : sink.all()) count += completion.status == status ? 1 : 0;
    return count;
  }
  std::string text() const {
    return std::to_string(called) + " called, " + std::to_string(dropped) + " dropped, " + std::to_string(sink.count()) + " delivered, " +
           std::to_string(delivered(hal::CompletionStatus::failed)) + " failed";
  }
};

/// A driver with a queue that the process never destroys.
struct ExitingProcess {
  explicit ExitingProcess(const hal::DriverEntry& entry)
      : driver(entry.create().release()), device(driver->open_device(0).value().release()), tally(*new Tally) {}

  hal::Queue& new_queue() const {
    hal::QueueOptions options;
    options.sink = &tally.sink;
    return *device->create_queue(options).value().release();
  }
  /// Ends with exit code 0 if the tally is as it should be, else says how it is.
  [[noreturn]] void exit_if(bool is_right) const {
    if (!is_right) {
      std::cerr << tally.text() << "\n";
      std::_Exit(1);
    }
    std::exit(0);  // with all that a process does at its end
  }

  hal::Driver* const driver;
  hal::Device* const device;
  Tally& tally;
};

[[noreturn]] void exit_with_nothing_to_do(const hal::DriverEntry& entry) {
  const ExitingProcess process(entry);
  hal::Queue& queue = process.new_queue();
  queue.host_function(process.tally.function(), {.token = 1}).value();
  queue.synchronize_blocking().value();
  process.driver->prepare_for_exit(1'000);
  process.exit_if(process.tally.called == 1 && process.tally.dropped == 1 && process.tally.sink.count() == 1);
}

[[noreturn]] void exit_without_any_device(const hal::DriverEntry& entry) {
  hal::Driver* const driver = entry.create().release();
  driver->prepare_for_exit(1'000);
  std::exit(0);
}

[[noreturn]] void exit_with_waiting_work(const hal::DriverEntry& entry) {
  const ExitingProcess process(entry);
  hal::Queue& queue = process.new_queue();
  auto* const hold = new Hold(queue);  // never released
  if (process.device->capabilities().concurrent_operations && !hold->eventually_holds()) process.exit_if(false);
  for (std::uint64_t token = 1; token <= 10; ++token) queue.host_function(process.tally.function(), {.token = token}).value();
  process.driver->prepare_for_exit(10);
  process.exit_if(process.tally.called == 0 && process.tally.dropped == 10 &&
                  process.tally.delivered(hal::CompletionStatus::failed) == 10 && process.tally.sink.count() == 10);
}

[[noreturn]] void exit_with_work_behind_a_gate(const hal::DriverEntry& entry) {
  const ExitingProcess process(entry);
  hal::Queue& held = process.new_queue();
  hal::Queue& waiting = process.new_queue();
  hal::Event& gate = *process.device->create_event({}).value().release();
  auto* const hold = new Hold(held);
  if (process.device->capabilities().concurrent_operations && !hold->eventually_holds()) process.exit_if(false);
  held.record(gate).value();
  waiting.wait(gate).value();
  for (std::uint64_t token = 1; token <= 10; ++token) waiting.host_function(process.tally.function(), {.token = token}).value();
  process.driver->prepare_for_exit(10);
  process.exit_if(process.tally.called == 0 && process.tally.dropped == 10 &&
                  process.tally.delivered(hal::CompletionStatus::failed) == 10 && process.tally.sink.count() == 10);
}

[[noreturn]] void exit_while_an_operation_ends(const hal::DriverEntry& entry) {
  const ExitingProcess process(entry);
  hal::Queue& queue = process.new_queue();
  static std::atomic<bool> is_running{false};
  static std::atomic<bool> may_end{false};
  submit_action(queue,
                [] {
                  is_running = true;
                  is_running.notify_all();
                  may_end.wait(false);
                },
                {.token = 1})
      .value();
  is_running.wait(false);
  std::thread releaser([] {
    may_end = true;
    may_end.notify_all();
  });
  process.driver->prepare_for_exit(15'000);
  releaser.join();
  process.exit_if(process.tally.sink.count() == 1 && process.tally.sink.of(1).status != hal::CompletionStatus::failed);
}

[[noreturn]] void exit_while_an_operation_never_ends(const hal::DriverEntry& entry) {
  const ExitingProcess process(entry);
  hal::Queue& queue = process.new_queue();
  auto* const hold = new Hold(queue);
  if (!hold->eventually_holds()) process.exit_if(false);
  process.driver->prepare_for_exit(10);
  process.exit_if(process.tally.sink.count() == 0);
}

[[noreturn]] void exit_after_everything_is_destroyed(const hal::DriverEntry& entry) {
  const std::unique_ptr<hal::Driver> driver = entry.create();
  {
    const std::unique_ptr<hal::Device> device = driver->open_device(0).value();
    const std::unique_ptr<hal::Queue> queue = device->create_queue({}).value();
    submit_action(*queue, [] {}).value();
    queue->synchronize_blocking().value();
  }
  driver->prepare_for_exit(1'000);
  std::exit(0);
}

[[noreturn]] void exit_with_a_destroyed_queue(const hal::DriverEntry& entry) {
  const ExitingProcess process(entry);
  hal::QueueOptions options;
  options.sink = &process.tally.sink;
  std::unique_ptr<hal::Queue> queue = process.device->create_queue(options).value();
  auto* const hold = new Hold(*queue);
  if (process.device->capabilities().concurrent_operations && !hold->eventually_holds()) process.exit_if(false);
  queue->host_function(process.tally.function(), {.token = 1}).value();
  queue.reset();
  process.driver->prepare_for_exit(10);
  process.exit_if(process.tally.called == 0 && process.tally.dropped == 1 && process.tally.delivered(hal::CompletionStatus::failed) == 1);
}

TEST_P(ExitTest, AProcessWithNothingToDoEnds) { EXPECT_EXIT(exit_with_nothing_to_do(entry()), ::testing::ExitedWithCode(0), ""); }

TEST_P(ExitTest, AProcessThatOpenedNoDeviceEnds) { EXPECT_EXIT(exit_without_any_device(entry()), ::testing::ExitedWithCode(0), ""); }

TEST_P(ExitTest, AProcessThatDestroyedEverythingEnds) {
  EXPECT_EXIT(exit_after_everything_is_destroyed(entry()), ::testing::ExitedWithCode(0), "");
}

TEST_P(ExitTest, WorkThatWaitsIsDroppedAndDeliveredAsFailed) {
  XPU_NEEDS(pending_operations);
  EXPECT_EXIT(exit_with_waiting_work(entry()), ::testing::ExitedWithCode(0), "");
}

TEST_P(ExitTest, WorkBehindAGateIsDroppedAndDeliveredAsFailed) {
  XPU_NEEDS(pending_operations);
  EXPECT_EXIT(exit_with_work_behind_a_gate(entry()), ::testing::ExitedWithCode(0), "");
}

TEST_P(ExitTest, WorkOfADestroyedQueueIsDroppedAndDeliveredAsFailed) {
  XPU_NEEDS(pending_operations);
  EXPECT_EXIT(exit_with_a_destroyed_queue(entry()), ::testing::ExitedWithCode(0), "");
}

TEST_P(ExitTest, AnOperationThatRunsMayEnd) {
  XPU_NEEDS(concurrent_operations);
  EXPECT_EXIT(exit_while_an_operation_ends(entry()), ::testing::ExitedWithCode(0), "");
}

TEST_P(ExitTest, AnOperationThatNeverEndsIsNotWaitedFor) {
  XPU_NEEDS(concurrent_operations);
  EXPECT_EXIT(exit_while_an_operation_never_ends(entry()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace xpu::conformance
