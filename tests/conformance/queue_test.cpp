#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// The life of queues, and queues beside each other.
class QueueTest : public DeviceTest {
 protected:
  std::unique_ptr<hal::Queue> new_queue_of(hal::QueuePriority priority) const {
    hal::QueueOptions options;
    options.priority = priority;
    return new_queue(options);
  }
};
XPU_CONFORMANCE_SUITE(QueueTest);

TEST_P(QueueTest, AnEmptyQueueIsComplete) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  EXPECT_TRUE(queue->query().value());
  EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(queue->query().value());
}

TEST_P(QueueTest, AQueueIsCompleteAfterItWasSynchronized) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  for (int round = 0; round < 100; ++round) {
    submit_action(*queue, [] {}).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    ASSERT_TRUE(queue->query().value());
  }
}

TEST_P(QueueTest, ProgramsThatOnlyAskComeToAnEnd) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<int> run_count{0};
  for (int index = 0; index < 100; ++index) submit_action(*queue, [&] { ++run_count; }).value();
  EXPECT_TRUE(eventually([&] { return queue->query().value(); }));
  EXPECT_EQ(run_count, 100);
}

TEST_P(QueueTest, AQueueIsNotCompleteWhileItsOperationRuns) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  Hold hold(*queue);
  for (int index = 0; index < 1'000; ++index) ASSERT_FALSE(queue->query().value());
  hold.release();
  EXPECT_TRUE(eventually([&] { return queue->query().value(); }));
}

TEST_P(QueueTest, NoSubmissionWaitsForTheOperationsBeforeIt) {
  XPU_NEEDS(pending_operations);
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Event> event = new_event();
  const auto kernel = suite_kernel("conformance_set");
  auto* const values = allocate_zeros<std::uint32_t>(20);
  auto* const copied = allocate_zeros<std::uint32_t>(20);
  const std::uint32_t pattern = 9;
  std::atomic<bool> has_run{false};
  Hold hold(*queue);
  launch(*queue, *kernel, items({10}), values, std::uint32_t{8}).value();
  queue->fill(&values[10], std::as_bytes(std::span(&pattern, 1)), 10 * sizeof(pattern), {}).value();
  queue->copy(copied, values, 20 * sizeof(values[0]), {}).value();
  queue->record(*event).value();
  queue->wait(*event).value();
  submit_action(*queue, [&] { has_run = true; }).value();
  EXPECT_FALSE(has_run);
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(has_run);
  EXPECT_EQ(std::count(copied, copied + 10, 8u), 10);
  EXPECT_EQ(std::count(copied + 10, copied + 20, 9u), 10);
}

TEST_P(QueueTest, KernelsOfTwoQueuesRunAtTheSameTime) {
  XPU_NEEDS(concurrent_operations);
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  const auto kernel = suite_kernel("conformance_meet");
  auto* const flags = allocate_zeros<std::uint32_t>(2);
  launch(*first, *kernel, items({1}), &flags[0], &flags[1]).value();
  launch(*second, *kernel, items({1}), &flags[1], &flags[0]).value();
  EXPECT_TRUE(is_ok(first->synchronize_blocking()));
  EXPECT_TRUE(is_ok(second->synchronize_blocking()));
}

TEST_P(QueueTest, HostFunctionsOfTwoQueuesRunAtTheSameTime) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  std::atomic<int> arrived{0};
  const auto meet = [&arrived] {
    ++arrived;
    EXPECT_TRUE(eventually([&arrived] { return arrived == 2; }));
  };
  submit_action(*first, meet).value();
  submit_action(*second, meet).value();
  EXPECT_TRUE(is_ok(first->synchronize_blocking()));
  EXPECT_TRUE(is_ok(second->synchronize_blocking()));
}

TEST_P(QueueTest, KernelsOfTwoDevicesRunAtTheSameTime) {
  XPU_NEEDS(concurrent_operations);
  XPU_NEEDS(two_devices);
  XPU_NEEDS(peer_access);
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = device(1).create_queue({}).value();
  auto* const flags = allocate_zeros<std::uint32_t>(2);
  launch(*first, *suite_kernel("conformance_meet", 0), items({1}), &flags[0], &flags[1]).value();
  launch(*second, *suite_kernel("conformance_meet", 1), items({1}), &flags[1], &flags[0]).value();
  EXPECT_TRUE(is_ok(first->synchronize_blocking()));
  EXPECT_TRUE(is_ok(second->synchronize_blocking()));
}

TEST_P(QueueTest, AQueueThatIsHeldDoesNotHoldAnother) {
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> other = new_queue();
  Hold hold(*held);
  ASSERT_TRUE(hold.eventually_holds());
  std::atomic<int> run_count{0};
  for (int index = 0; index < 100; ++index) submit_action(*other, [&] { ++run_count; }).value();
  EXPECT_TRUE(is_ok(other->synchronize_blocking()));
  EXPECT_EQ(run_count, 100);
  EXPECT_FALSE(held->query().value());
}

TEST_P(QueueTest, ManyQueuesWorkSideBySide) {
  std::vector<std::unique_ptr<hal::Queue>> queues;
  std::vector<int> sums(256);
  for (std::size_t index = 0; index < sums.size(); ++index) queues.push_back(new_queue());
  for (int round = 0; round < 10; ++round) {
    for (std::size_t index = 0; index < sums.size(); ++index) {
      submit_action(*queues[index], [&sum = sums[index], round] { sum = sum * 2 + round; }).value();
    }
  }
  for (const std::unique_ptr<hal::Queue>& queue : queues) ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  int expected = 0;
  for (int round = 0; round < 10; ++round) expected = expected * 2 + round;
  EXPECT_EQ(std::count(sums.begin(), sums.end(), expected), 256);
}

TEST_P(QueueTest, AThousandQueuesComeAndGo) {
  std::atomic<int> run_count{0};
  for (int index = 0; index < 1'000; ++index) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    submit_action(*queue, [&] { ++run_count; }).value();
  }
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(run_count, 1'000);
}

TEST_P(QueueTest, TheWorkOfADestroyedQueueIsFinished) {
  XPU_NEEDS(pending_operations);
  std::vector<int> order;
  std::unique_ptr<hal::Queue> queue = new_queue();
  Hold hold(*queue);
  for (int index = 0; index < 100; ++index) submit_action(*queue, [&order, index] { order.push_back(index); }).value();
  queue.reset();
  hold.release();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(QueueTest, DestroyingAQueueDoesNotWait) {
  XPU_NEEDS(pending_operations);
  std::atomic<bool> has_run{false};
  std::unique_ptr<hal::Queue> queue = new_queue();
  Hold hold(*queue);
  submit_action(*queue, [&] { has_run = true; }).value();
  queue.reset();
  EXPECT_FALSE(has_run);
  hold.release();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_TRUE(has_run);
}

TEST_P(QueueTest, QueuesOfEveryPriorityWork) {
  for (const hal::QueuePriority priority : {hal::QueuePriority::high, hal::QueuePriority::normal, hal::QueuePriority::low}) {
    const std::unique_ptr<hal::Queue> queue = new_queue_of(priority);
    std::vector<int> order;
    for (int index = 0; index < 20; ++index) submit_action(*queue, [&order, index] { order.push_back(index); }).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    EXPECT_EQ(order.size(), 20u) << static_cast<int>(priority);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << static_cast<int>(priority);
  }
}

TEST_P(QueueTest, WorkThatWaitsIsTakenByPriority) {
  XPU_NEEDS(priorities);
  XPU_NEEDS(concurrent_operations);
  // So many queues are held that nothing more can begin; a driver with room for more has no waiting work, and no order of it.
  const std::size_t holder_count = 4 * std::size_t{device().properties().max_compute_units} + 16;
  std::vector<std::unique_ptr<hal::Queue>> holders;
  std::vector<std::unique_ptr<Hold>> holds;
  for (std::size_t index = 0; index < holder_count; ++index) {
    holders.push_back(new_queue());
    holds.push_back(std::make_unique<Hold>(*holders.back()));
  }
  ASSERT_TRUE(holds[0]->eventually_holds());
  ASSERT_TRUE(holds[1]->eventually_holds());

  base::Mutex mutex;
  std::vector<std::string> order;
  const auto submit = [&](hal::Queue& queue, const char* name) {
    submit_action(queue, [&mutex, &order, name] {
      const base::MutexLock lock(mutex);
      order.emplace_back(name);
    }).value();
  };
  const std::unique_ptr<hal::Queue> low = new_queue_of(hal::QueuePriority::low);
  const std::unique_ptr<hal::Queue> high = new_queue_of(hal::QueuePriority::high);
  submit(*low, "low");
  bool has_begun = false;
  {
    const base::MutexLock lock(mutex);
    has_begun = !order.empty();
  }
  submit(*high, "high");
  // One place becomes free: the first operation that ends there decides.
  holds[0]->release();
  ASSERT_TRUE(eventually([&] {
    const base::MutexLock lock(mutex);
    return !order.empty();
  }));
  if (!has_begun) {
    const base::MutexLock lock(mutex);
    EXPECT_EQ(order.front(), "high");
  }
  for (const std::unique_ptr<Hold>& hold : holds) hold->release();
  EXPECT_TRUE(is_ok(device().synchronize_blocking()));
}

TEST_P(QueueTest, NativeHandlesAreDistinctAndStay) {
  XPU_NEEDS(native_queues);
  std::vector<std::unique_ptr<hal::Queue>> queues;
  std::set<void*> handles;
  for (int index = 0; index < 10; ++index) {
    queues.push_back(new_queue());
    void* const handle = queues.back()->native_handle();
    EXPECT_NE(handle, nullptr);
    EXPECT_EQ(queues.back()->native_handle(), handle);
    handles.insert(handle);
  }
  EXPECT_EQ(handles.size(), 10u);
}

TEST_P(QueueTest, QueuesOfTwoDevicesAreIndependent) {
  XPU_NEEDS(two_devices);
  XPU_NEEDS(concurrent_operations);
  const std::unique_ptr<hal::Queue> held = new_queue();
  const std::unique_ptr<hal::Queue> other = device(1).create_queue({}).value();
  Hold hold(*held);
  ASSERT_TRUE(hold.eventually_holds());
  std::atomic<bool> has_run{false};
  submit_action(*other, [&] { has_run = true; }).value();
  EXPECT_TRUE(is_ok(device(1).synchronize_blocking()));
  EXPECT_TRUE(has_run);
  EXPECT_FALSE(held->query().value());
}

TEST_P(QueueTest, AnOutOfOrderQueueRunsEverything) {
  hal::QueueOptions options;
  options.out_of_order = true;
  const std::unique_ptr<hal::Queue> queue = new_queue(options);
  std::atomic<int> run_count{0};
  for (int index = 0; index < 100; ++index) submit_action(*queue, [&] { ++run_count; }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(run_count, 100);
}

TEST_P(QueueTest, TheDeviceWaitsForAllOfItsQueues) {
  std::vector<std::unique_ptr<hal::Queue>> queues;
  std::atomic<int> run_count{0};
  for (int index = 0; index < 20; ++index) {
    queues.push_back(new_queue());
    for (int operation = 0; operation < 20; ++operation) submit_action(*queues.back(), [&] { ++run_count; }).value();
  }
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(run_count, 400);
  for (const std::unique_ptr<hal::Queue>& queue : queues) EXPECT_TRUE(queue->query().value());
}

TEST_P(QueueTest, ADeviceWithoutQueuesIsSynchronizedAtOnce) {
  const std::unique_ptr<hal::Device> fresh = new_driver()->open_device(0).value();
  EXPECT_TRUE(is_ok(fresh->synchronize_blocking()));
}

}  // namespace
}  // namespace xpu::conformance
