#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Queues that cross the border of the library: handed out, inspected, adopted. The driver's own queues stand for foreign ones.
class NativeQueueTest : public DeviceTest {
 protected:
  std::unique_ptr<hal::Queue> adopt(const hal::Queue& queue, hal::CompletionSink* sink = nullptr) const {
    return device().adopt_queue(queue.native_handle(), sink).value();
  }
};
XPU_CONFORMANCE_SUITE(NativeQueueTest);

TEST_P(NativeQueueTest, AQueueOfOurOwnIsKnown) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const hal::NativeQueueInfo info = device().inspect_queue(queue->native_handle()).value();
  EXPECT_TRUE(info.is_in_order);
  EXPECT_TRUE(info.is_same_context);
  EXPECT_EQ(info.device, 0u);
  EXPECT_EQ(info.priority, hal::QueuePriority::normal);
}

TEST_P(NativeQueueTest, TheDeviceOfAQueueIsTold) {
  XPU_NEEDS(native_queues);
  XPU_NEEDS(two_devices);
  const std::unique_ptr<hal::Queue> here = new_queue();
  const std::unique_ptr<hal::Queue> there = device(1).create_queue({}).value();
  EXPECT_EQ(device(0).inspect_queue(here->native_handle()).value().device, 0u);
  EXPECT_EQ(device(1).inspect_queue(there->native_handle()).value().device, 1u);
  EXPECT_EQ(device(0).inspect_queue(there->native_handle()).value().device, 1u);
}

TEST_P(NativeQueueTest, ThePriorityOfAQueueIsTold) {
  XPU_NEEDS(native_queues);
  XPU_NEEDS(priorities);
  for (const hal::QueuePriority priority : {hal::QueuePriority::high, hal::QueuePriority::normal, hal::QueuePriority::low}) {
    hal::QueueOptions options;
    options.priority = priority;
    const std::unique_ptr<hal::Queue> queue = new_queue(options);
    EXPECT_EQ(device().inspect_queue(queue->native_handle()).value().priority, priority);
  }
}

TEST_P(NativeQueueTest, AnOutOfOrderQueueIsToldFromAnInOrderOne) {
  XPU_NEEDS(native_queues);
  hal::QueueOptions options;
  options.out_of_order = true;
  const std::unique_ptr<hal::Queue> queue = new_queue(options);
  EXPECT_FALSE(device().inspect_queue(queue->native_handle()).value().is_in_order);
}

TEST_P(NativeQueueTest, APointerThatIsNoQueueIsRefused) {
  XPU_NEEDS(native_queues);
  std::vector<std::byte> zeros(4'096);
  int nothing = 0;
  for (void* const pointer : {static_cast<void*>(zeros.data()), static_cast<void*>(&nothing), static_cast<void*>(this)}) {
    EXPECT_TRUE(fails_with(ErrorCode::invalid_argument, device().inspect_queue(pointer)));
  }
}

TEST_P(NativeQueueTest, AQueueOfAnotherInstanceIsOfAnotherContext) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Device> other = new_driver()->open_device(0).value();
  const std::unique_ptr<hal::Queue> queue = other->create_queue({}).value();
  const Result<hal::NativeQueueInfo> info = device().inspect_queue(queue->native_handle());
  // It may know such a queue or not; it must not take it for one of its own.
  if (info) {
    EXPECT_FALSE(info->is_same_context);
  } else {
    EXPECT_EQ(info.error().code, ErrorCode::invalid_argument);
  }
}

TEST_P(NativeQueueTest, WorkThroughBothKeepsItsOrder) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> adopted = adopt(*queue);
  std::vector<int> order;
  for (int index = 0; index < 500; ++index) {
    submit_action(index % 3 == 0 ? *queue : *adopted, [&order, index] { order.push_back(index); }).value();
  }
  ASSERT_TRUE(is_ok(adopted->synchronize_blocking()));
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  std::vector<int> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(NativeQueueTest, SynchronizingTheAdoptedQueueWaitsForWorkOfTheOther) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> adopted = adopt(*queue);
  int value = 0;
  for (int round = 1; round <= 50; ++round) {
    submit_action(*queue, [&value] { ++value; }).value();
    ASSERT_TRUE(is_ok(adopted->synchronize_blocking()));
    ASSERT_EQ(value, round);
    ASSERT_TRUE(adopted->query().value());
  }
}

TEST_P(NativeQueueTest, AnEventOfTheAdoptedQueueCoversWorkOfTheOther) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> adopted = adopt(*queue);
  const std::unique_ptr<hal::Event> event = new_event();
  int value = 0;
  submit_action(*queue, [&value] { value = 9; }).value();
  adopted->record(*event).value();
  ASSERT_TRUE(is_ok(event->synchronize_blocking()));
  EXPECT_EQ(value, 9);
}

TEST_P(NativeQueueTest, AnAdoptedQueueIsTheSameNativeOne) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  EXPECT_EQ(adopt(*queue)->native_handle(), queue->native_handle());
}

TEST_P(NativeQueueTest, TheDeviceWaitsForAdoptedQueues) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> adopted = adopt(*queue);
  int value = 0;
  for (int index = 0; index < 100; ++index) submit_action(*adopted, [&value] { ++value; }).value();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(value, 100);
}

TEST_P(NativeQueueTest, AnAdoptedQueueIsNotOwned) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (int round = 0; round < 10; ++round) {
    const std::unique_ptr<hal::Queue> adopted = adopt(*queue);
    submit_action(*adopted, [] {}).value();
  }
  std::atomic<bool> has_run{false};
  submit_action(*queue, [&] { has_run = true; }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(is_ok(device().inspect_queue(queue->native_handle())));
}

TEST_P(NativeQueueTest, EachSinkGetsTheWorkOfItsOwnQueueObject) {
  XPU_NEEDS(native_queues);
  RecordingSink& own_sink = new_sink();
  RecordingSink& adopted_sink = new_sink();
  const std::unique_ptr<hal::Queue> queue = new_queue(own_sink);
  const std::unique_ptr<hal::Queue> adopted = adopt(*queue, &adopted_sink);
  for (std::uint64_t token = 1; token <= 20; ++token) {
    submit_action(*queue, [] {}, {.token = token}).value();
    submit_action(*adopted, [] {}, {.token = 100 + token}).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  ASSERT_TRUE(is_ok(adopted->synchronize_blocking()));
  EXPECT_EQ(own_sink.count(), 20u);
  EXPECT_EQ(adopted_sink.count(), 20u);
  for (const hal::Completion& completion : own_sink.all()) EXPECT_LE(completion.token, 20u);
  for (const hal::Completion& completion : adopted_sink.all()) EXPECT_GT(completion.token, 100u);
}

TEST_P(NativeQueueTest, AFailureOfAnAdoptedQueueIsReturnedByTheDevice) {
  XPU_NEEDS(native_queues);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Queue> adopted = adopt(*queue);
  submit_function(*adopted, []() -> Result<> { return Error{ErrorCode::internal, "it failed through the adopted queue"}; }).value();
  const Result<> result = device().synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "it failed through the adopted queue");
  EXPECT_TRUE(is_ok(device().synchronize_blocking()));
}

}  // namespace
}  // namespace xpu::conformance
