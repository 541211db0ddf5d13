// What needs more than one queue or more than one thread: overlap, gates, priorities, depth, exit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <set>

#include "drivers/host/test_support/host_device.hpp"

namespace xpu::drivers::host {
namespace {

using namespace test_support;
using testing::ElementsAre;
using testing::HasSubstr;

class OverlapTest : public testing::TestWithParam<Executor> {
 protected:
  HostSetup setup_{with_executor(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(WithWorkers, OverlapTest, testing::Values(Executor::adaptive, Executor::pool),
                         [](const auto& executor) { return std::string(executor.param == Executor::adaptive ? "adaptive" : "pool"); });

void raise_and_wait(const WorkItem&, Flag* mine, const Flag* theirs) {
  mine->raise();
  theirs->wait();
}

TEST_P(OverlapTest, TwoKernelsThatWaitForEachOtherEnd) {
  EXPECT_TRUE(setup_.device->capabilities().concurrent_operations);
  const TestKernel kernel = TestKernel::of<raise_and_wait>(*setup_.device, "raise_and_wait");
  const auto first = setup_.queue(), second = setup_.queue();
  Flag flags[2];
  // Many groups: the first kernel's helpers wait for the second one, too, and must leave it a thread.
  ASSERT_TRUE(kernel.launch(*first, items(64, 1), {}, &flags[0], static_cast<const Flag*>(&flags[1])));
  ASSERT_TRUE(kernel.launch(*second, items(64, 1), {}, &flags[1], static_cast<const Flag*>(&flags[0])));
  EXPECT_TRUE(first->synchronize_blocking());
  EXPECT_TRUE(second->synchronize_blocking());
}

TEST_P(OverlapTest, AQueueWaitsForAnEventOfAnotherQueueAndDevice) {
  Options options = with_executor(GetParam());
  options.devices = 2;
  const HostSetup setup(options);
  const auto other_device = setup.open(1);
  EXPECT_TRUE(setup.device->can_access_peer(*other_device));
  const auto first = setup.queue();
  const auto second = other_device->create_queue({}).value();
  const auto event = setup.event();
  Flag may_end;
  std::vector<int> order;
  submit(*first, [&] {
    may_end.wait();
    order.push_back(1);
  });
  ASSERT_TRUE(first->record(*event));
  ASSERT_TRUE(second->wait(*event));
  submit(*second, [&] { order.push_back(2); }, {0, true});
  EXPECT_FALSE(second->query().value());
  EXPECT_FALSE(event->query().value());
  may_end.raise();
  ASSERT_TRUE(second->synchronize_blocking());
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_TRUE(event->query().value());
}

TEST_P(OverlapTest, AWaitKeepsTheRecordingOfItsTimeWhenTheEventIsRecordedAgainOrDestroyed) {
  const auto first = setup_.queue(), second = setup_.queue(), third = setup_.queue();
  auto event = setup_.event();
  Flag first_may_end, second_may_end;
  submit(*first, [&] { first_may_end.wait(); });
  submit(*second, [&] { second_may_end.wait(); });
  ASSERT_TRUE(first->record(*event));
  ASSERT_TRUE(third->wait(*event));
  Flag third_ran;
  submit(*third, [&] { third_ran.raise(); });
  ASSERT_TRUE(second->record(*event));
  event.reset();
  EXPECT_FALSE(third->query().value());
  first_may_end.raise();
  EXPECT_TRUE(third->synchronize_blocking());  // while the second queue is still busy
  EXPECT_TRUE(third_ran.is_raised());
  EXPECT_FALSE(second->query().value());
  second_may_end.raise();
  EXPECT_TRUE(second->synchronize_blocking());
}

TEST_P(OverlapTest, QueuesThatOnlyWaitCostNoWorker) {
  Options options = with_executor(GetParam());
  options.threads = 2;
  const HostSetup setup(options);
  const auto gate_queue = setup.queue();
  Flag may_end;
  submit(*gate_queue, [&] { may_end.wait(); });
  const auto event = setup.event();
  ASSERT_TRUE(gate_queue->record(*event));
  std::vector<std::unique_ptr<hal::Queue>> waiting;
  std::atomic<int> ran{0};
  for (int index = 0; index < 50; ++index) {
    waiting.push_back(setup.queue());
    ASSERT_TRUE(waiting.back()->wait(*event));
    submit(*waiting.back(), [&] { ++ran; });
  }
  const auto free_queue = setup.queue();
  submit(*free_queue, [] {});
  EXPECT_TRUE(free_queue->synchronize_blocking());  // a worker is left for it
  EXPECT_EQ(ran, 0);
  may_end.raise();
  EXPECT_TRUE(setup.device->synchronize_blocking());
  EXPECT_EQ(ran, 50);
}

TEST_P(OverlapTest, AChainOfQueuesThatWaitForEachOtherRunsInItsOrder) {
  constexpr int kQueues = 40, kRounds = 10;
  std::vector<std::unique_ptr<hal::Queue>> queues;
  for (int index = 0; index < kQueues; ++index) queues.push_back(setup_.queue());
  std::vector<int> order, expected;
  const auto event = setup_.event({true, true});
  std::uint64_t last_ticks = 0;
  for (int step = 0; step < kQueues * kRounds; ++step) {
    hal::Queue& queue = *queues[static_cast<std::size_t>(step % kQueues)];
    ASSERT_TRUE(queue.wait(*event));
    submit(queue, [&order, step] { order.push_back(step); }, {0, step % 5 == 0});
    ASSERT_TRUE(queue.record(*event));
    expected.push_back(step);
    if (step % 50 == 0) {
      ASSERT_TRUE(event->synchronize_blocking());
      EXPECT_GE(event->ticks().value(), last_ticks);
      last_ticks = event->ticks().value();
    }
  }
  ASSERT_TRUE(event->synchronize_blocking());
  EXPECT_EQ(order, expected);
}

TEST_P(OverlapTest, WaitingWorkRunsInTheOrderOfPriorities) {
  Options options = with_executor(GetParam());
  options.threads = 1;
  const HostSetup setup(options);
  EXPECT_EQ(setup.device->capabilities().priority_levels, 3u);
  EXPECT_FALSE(setup.device->capabilities().concurrent_operations);
  const auto blocker = setup.queue();
  const auto low = setup.queue(nullptr, hal::QueuePriority::low), normal = setup.queue(), normal_too = setup.queue(),
             high = setup.queue(nullptr, hal::QueuePriority::high);
  Flag is_blocked, may_go_on;
  submit(*blocker, [&] {
    is_blocked.raise();
    may_go_on.wait();
  });
  is_blocked.wait();
  std::vector<std::string> order;
  for (int round = 0; round < 2; ++round) {
    submit(*low, [&] { order.emplace_back("low"); });
    submit(*normal, [&] { order.emplace_back("normal"); });
    submit(*normal_too, [&] { order.emplace_back("normal too"); });
    submit(*high, [&] { order.emplace_back("high"); });
  }
  may_go_on.raise();
  EXPECT_TRUE(setup.device->synchronize_blocking());
  EXPECT_THAT(order, ElementsAre("high", "high", "normal", "normal", "normal too", "normal too", "low", "low"));
}

TEST_P(OverlapTest, HighPriorityWorkComesBetweenTheOperationsOfALowQueue) {
  Options options = with_executor(GetParam());
  options.threads = 1;
  const HostSetup setup(options);
  const auto low = setup.queue(nullptr, hal::QueuePriority::low), high = setup.queue(nullptr, hal::QueuePriority::high);
  std::vector<std::string> order;
  submit(*low, [&] { submit(*high, [&] { order.emplace_back("high"); }); });
  for (int index = 0; index < 3; ++index) submit(*low, [&] { order.emplace_back("low"); });
  EXPECT_TRUE(setup.device->synchronize_blocking());
  EXPECT_THAT(order, ElementsAre("high", "low", "low", "low"));
}

TEST_P(OverlapTest, OneBusyQueueDoesNotStarveAnotherOfItsPriority) {
  Options options = with_executor(GetParam());
  options.threads = 1;
  const HostSetup setup(options);
  const auto busy = setup.queue(), other = setup.queue();
  std::atomic<int> busy_ran{0};
  int busy_ran_before_other = -1;
  Flag may_start;
  submit(*busy, [&] { may_start.wait(); });
  for (int index = 0; index < 1000; ++index) submit(*busy, [&] { ++busy_ran; });
  submit(*other, [&] { busy_ran_before_other = busy_ran; });
  may_start.raise();
  EXPECT_TRUE(setup.device->synchronize_blocking());
  EXPECT_GE(busy_ran_before_other, 0);
  EXPECT_LT(busy_ran_before_other, 100);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kHasShadowMemory = true;  // a sanitizer's: what is resident says little of us
#else
constexpr bool kHasShadowMemory = false;
#endif

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_P(OverlapTest, AMillionOperationsOnASlowQueueRunInOrderInFlatMemory) {
  constexpr std::uint64_t kCount = 1'000'000;
  struct Consumer {
    std::uint64_t next = 0;
    bool is_ordered = true;
    Flag may_start;
    std::uint64_t most_bytes = 0;
  } consumer;
  const auto queue = setup_.queue();
  const std::uint64_t bytes_before = resident_bytes();
  hal::HostFunction function;
  function.user = &consumer;
  function.call = [](void* user) -> Result<> {
    auto& held = *static_cast<Consumer*>(user);
    ++held.next;
    if (held.next % 50'000 == 0) held.most_bytes = std::max(held.most_bytes, resident_bytes());
    return {};
  };
  submit(*queue, [&] { consumer.may_start.wait(); });
  std::atomic<std::uint64_t> submitted{0};
  std::thread starter([&] {
    // It starts only when the submitter waits for room: the queue was as deep as it gets.
    comes_true([&] { return submitted.load() >= 65'000; });
    consumer.may_start.raise();
  });
  for (std::uint64_t index = 0; index < kCount; ++index) {
    ASSERT_TRUE(queue->host_function(function, {}));
    submitted.store(index + 1, std::memory_order_relaxed);
  }
  ASSERT_TRUE(queue->synchronize_blocking());
  starter.join();
  EXPECT_EQ(consumer.next, kCount);
  if (!kHasShadowMemory) {
    EXPECT_LT(consumer.most_bytes, bytes_before + (std::uint64_t{12} << 20));
  }
}

TEST_P(OverlapTest, ASubmitterWaitsForRoomButNotWhenItIsAnOperationItself) {
  constexpr std::uint64_t kRoom = 65'536;
  const auto queue = setup_.queue();
  std::atomic<std::uint64_t> submitted{0}, ran{0};
  std::uint64_t submitted_by_operation = 0;
  Flag may_start;
  submit(*queue, [&] {
    may_start.wait();
    // One that runs on this very queue would wait for itself.
    while (submitted_by_operation < 1000) {
      submit(*queue, [&] { ++ran; });
      ++submitted_by_operation;
    }
  });
  std::thread submitter([&] {
    for (std::uint64_t index = 0; index < kRoom + 5000; ++index) {
      submit(*queue, [&] { ++ran; });
      ++submitted;
    }
  });
  ASSERT_TRUE(comes_true([&] { return submitted >= kRoom; }));
  may_start.raise();
  submitter.join();
  ASSERT_TRUE(queue->synchronize_blocking());
  EXPECT_EQ(submitted_by_operation, 1000u);
  EXPECT_EQ(ran, kRoom + 5000 + 1000);
}

TEST_P(OverlapTest, ASubmitterForWhomTheQueueWaitsGetsPastItsDepth) {
  const auto queue = setup_.queue();
  std::uint64_t ran = 0;
  Flag may_start;
  submit(*queue, [&] { may_start.wait(); });
  for (std::uint64_t index = 0; index < 70'000; ++index) submit(*queue, [&] { ++ran; });
  may_start.raise();  // only now: nobody else would have done it
  ASSERT_TRUE(queue->synchronize_blocking());
  EXPECT_EQ(ran, 70'000u);
}

TEST_P(OverlapTest, ManyThreadsOnManyQueuesLoseNothing) {
  constexpr int kThreads = 4, kRounds = 300;
  Deliveries deliveries;
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      const auto queue = setup_.queue(&deliveries), other = setup_.queue(&deliveries);
      const auto event = setup_.event({true, false});
      for (int round = 0; round < kRounds; ++round) {
        submit(*queue, [&] { ++ran; }, {1, round % 2 == 0});
        ASSERT_TRUE(queue->record(*event));
        ASSERT_TRUE(other->wait(*event));
        submit(*other, [&] { ++ran; }, {1, round % 3 == 0});
        if (round % 10 == 0) {
          ASSERT_TRUE(other->synchronize_blocking());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(setup_.device->synchronize_blocking());
  EXPECT_EQ(ran, 2 * kThreads * kRounds);
  EXPECT_EQ(deliveries.count(), static_cast<std::size_t>(2 * kThreads * kRounds));
}

void note_threads(const WorkGroup&, std::set<std::thread::id>* seen, std::mutex* mutex, std::atomic<int>* ran) {
  const std::lock_guard lock(*mutex);
  seen->insert(std::this_thread::get_id());
  ran->fetch_add(1);
}

TEST_P(OverlapTest, GroupsAreSpreadOverNoMoreThreadsThanThereAreProcessors) {
  Options options = with_executor(GetParam());
  options.processors = 3;
  const HostSetup setup(options);
  const TestKernel kernel = TestKernel::of<note_threads>(*setup.device, "note_threads");
  const auto queue = setup.queue();
  for (int round = 0; round < 50; ++round) {
    std::set<std::thread::id> seen;
    std::mutex mutex;
    std::atomic<int> ran{0};
    ASSERT_TRUE(kernel.launch(*queue, items(500, 1), {}, &seen, &mutex, &ran));
    ASSERT_TRUE(queue->synchronize_blocking());
    EXPECT_EQ(ran, 500);
    EXPECT_LE(seen.size(), 3u);
    EXPECT_FALSE(seen.contains(std::this_thread::get_id()));
  }
}

TEST_P(OverlapTest, WorkersBlockAllSignalsAndHaveNames) {
  const auto queue = setup_.queue();
  bool is_blocked = false;
  char name[16] = {};
  submit(*queue, [&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    is_blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGPROF) == 1;
    pthread_getname_np(pthread_self(), name, sizeof name);
  });
  ASSERT_TRUE(queue->synchronize_blocking());
  EXPECT_TRUE(is_blocked);
  EXPECT_THAT(std::string(name), testing::StartsWith("xpu-host-"));
}

TEST_P(OverlapTest, AtExitWhatRunsMayEndAndWhatWaitsIsDeliveredAsFailed) {
  Deliveries deliveries;
  const auto queue = setup_.queue(&deliveries), waiting = setup_.queue(&deliveries);
  const auto event = setup_.event();
  Flag is_running, may_end;
  std::atomic<int> ran{0};
  submit(*queue, [&] { is_running.raise(), may_end.wait(), ++ran; }, {1, false});
  is_running.wait();
  submit(*queue, [&] { ++ran; }, {2, false});
  ASSERT_TRUE(queue->record(*event));
  ASSERT_TRUE(waiting->wait(*event));
  submit(*waiting, [&] { ++ran; }, {3, false});
  std::thread ender([&] {
    ASSERT_TRUE(comes_true([&] { return deliveries.count() == 2; }));  // dropped while the first one still runs
    may_end.raise();
  });
  setup_.driver->prepare_for_exit(kLimitMs);
  ender.join();
  EXPECT_EQ(ran, 1);
  std::map<std::uint64_t, hal::Completion> by_token;
  for (const hal::Completion& completion : deliveries.all()) by_token[completion.token] = completion;
  ASSERT_EQ(by_token.size(), 3u);
  ASSERT_EQ(deliveries.count(), 3u);
  EXPECT_EQ(by_token[1].status, hal::CompletionStatus::ok);
  for (const std::uint64_t token : {2, 3}) {
    EXPECT_EQ(by_token[token].status, hal::CompletionStatus::failed);
    EXPECT_EQ(by_token[token].ticks.start, by_token[token].ticks.end);
    EXPECT_LE(by_token[token].ticks.queued, by_token[token].ticks.start);
  }
  EXPECT_TRUE(event->query().value());
  EXPECT_TRUE(queue->query().value());
  EXPECT_EQ(queue->synchronize_blocking().error().code, ErrorCode::unavailable);

  // Nothing new begins.
  hal::HostFunction function;
  function.call = [](void*) -> Result<> { return {}; };
  for (const bool promise : {false, true}) {
    const Result<> refused = queue->host_function(function, {9, promise});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  }
  EXPECT_FALSE(queue->record(*event));
  EXPECT_FALSE(setup_.device->create_queue({}));
  EXPECT_EQ(deliveries.count(), 3u);
}

TEST_P(OverlapTest, AtExitAnOperationThatDoesNotEndIsLeftAloneAfterTheLimit) {
  Flag is_running, may_end, has_ended;
  const auto queue = setup_.queue();
  submit(*queue, [&] {
    is_running.raise();
    may_end.wait();
    has_ended.raise();
  });
  is_running.wait();
  bool has_run = false;
  submit(*queue, [&] { has_run = true; });
  setup_.driver->prepare_for_exit(1);
  EXPECT_FALSE(has_ended.is_raised());
  may_end.raise();
  ASSERT_TRUE(comes_true([&] { return queue->query().value(); }));
  EXPECT_FALSE(has_run);
}

TEST_P(OverlapTest, AnOperationMayEndTheProcess) {
  const auto queue = setup_.queue();
  Flag has_ended;
  submit(*queue, [&] {
    setup_.driver->prepare_for_exit(kLimitMs);
    has_ended.raise();
  });
  has_ended.wait();
  EXPECT_TRUE(comes_true([&] { return queue->query().value(); }));
}

TEST_P(OverlapTest, AtExitASubmitterThatWaitsForRoomIsRefused) {
  const auto queue = setup_.queue();
  Flag may_end;
  submit(*queue, [&] { may_end.wait(); });
  std::atomic<std::uint64_t> submitted{0};
  hal::HostFunction function;
  function.call = [](void*) -> Result<> { return {}; };
  std::thread submitter([&] {
    while (queue->host_function(function, {})) ++submitted;
  });
  ASSERT_TRUE(comes_true([&] { return submitted >= 65'000; }));
  setup_.driver->prepare_for_exit(1);
  submitter.join();
  may_end.raise();
  EXPECT_TRUE(comes_true([&] { return queue->query().value(); }));
}

}  // namespace
}  // namespace xpu::drivers::host
