#include "drivers/host/queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/probe.hpp"
#include "drivers/host/test_support/host_device.hpp"

namespace xpu::drivers::host {
namespace {

using namespace test_support;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr hal::Submission kPromise{0, true};

/// What holds under every executor.
class ExecutorTest : public testing::TestWithParam<Executor> {
 protected:
  HostSetup setup_{with_executor(GetParam())};
  Deliveries deliveries_;
  std::unique_ptr<hal::Queue> queue_ = setup_.queue(&deliveries_);
};

INSTANTIATE_TEST_SUITE_P(
    All, ExecutorTest, testing::Values(Executor::adaptive, Executor::pool, Executor::caller), [](const auto& executor) {
      return std::string(executor.param == Executor::adaptive ? "adaptive" : executor.param == Executor::pool ? "pool" : "inline");
    });

void count_item(const WorkItem& item, std::atomic<std::uint32_t>* counts) {
  counts[item.global_id(0)].fetch_add(1, std::memory_order_relaxed);
}
void fail_at_group(const WorkGroup& group, std::uint64_t failing) {
  if (group.id[0] == failing) throw std::runtime_error("group " + std::to_string(failing));
}
void sum_in_local_memory(const WorkGroup& group, std::uint64_t* sums) {
  auto* local = reinterpret_cast<std::uint64_t*>(group.local_memory);
  const std::size_t count = group.local_memory_bytes / sizeof *local;
  for (std::size_t index = 0; index < count; ++index) local[index] = group.id[0];
  sums[group.id[0]] = std::accumulate(local, local + count, std::uint64_t{0});
}

TEST_P(ExecutorTest, OperationsRunInTheOrderOfSubmission) {
  std::vector<int> order;
  for (int index = 0; index < 500; ++index) {
    submit(*queue_, [&order, index] { order.push_back(index); }, {0, index % 3 == 0});
  }
  ASSERT_TRUE(queue_->synchronize_blocking());
  std::vector<int> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_TRUE(queue_->query().value());
}

TEST_P(ExecutorTest, ATimedOperationIsDeliveredOnceWithTimesInOrderAndBeforeAnybodyHearsOfItsEnd) {
  for (std::uint64_t token = 1; token <= 200; ++token) {
    const std::uint64_t before = now_ns();
    submit(*queue_, [] {}, {token, token % 2 == 0});
    if (token % 3 == 0) {
      ASSERT_TRUE(queue_->synchronize_blocking());
      ASSERT_EQ(deliveries_.count(), token) << "synchronize";
    } else if (token % 3 == 1) {
      ASSERT_TRUE(comes_true([&] { return queue_->query().value(); }));
      ASSERT_EQ(deliveries_.count(), token) << "query";
    } else {
      const auto event = setup_.event();
      ASSERT_TRUE(queue_->record(*event));
      ASSERT_TRUE(event->synchronize_blocking());
      ASSERT_EQ(deliveries_.count(), token) << "event";
    }
    const hal::Completion completion = deliveries_.all().back();
    EXPECT_EQ(completion.token, token);
    EXPECT_EQ(completion.status, hal::CompletionStatus::ok);
    EXPECT_LE(before, completion.ticks.queued);
    EXPECT_LE(completion.ticks.queued, completion.ticks.submit);
    EXPECT_LE(completion.ticks.submit, completion.ticks.start);
    EXPECT_LE(completion.ticks.start, completion.ticks.end);
    EXPECT_LE(completion.ticks.end, now_ns());
  }
}

TEST_P(ExecutorTest, AnOperationWithoutATokenIsNotDelivered) {
  submit(*queue_, [] {});
  submit(*queue_, [] {}, kPromise);
  submit(*queue_, [] {}, {7, false});
  ASSERT_TRUE(queue_->synchronize_blocking());
  EXPECT_THAT(deliveries_.tokens(), ElementsAre(7));
}

TEST_P(ExecutorTest, EveryGroupOfAKernelRunsOnce) {
  const TestKernel kernel = TestKernel::of<count_item>(*setup_.device, "count_item");
  constexpr std::size_t kItems = 100'000;
  std::vector<std::atomic<std::uint32_t>> counts(kItems);
  for (const std::uint64_t local : {0u, 64u, 1000u, 100'000u}) {
    ASSERT_TRUE(kernel.launch(*queue_, items(kItems, local), {local + 1, false}, counts.data()));
  }
  ASSERT_TRUE(queue_->synchronize_blocking());
  EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](const auto& count) { return count == 4; }));
  EXPECT_THAT(deliveries_.tokens(), ElementsAre(1, 65, 1001, 100'001));
}

TEST_P(ExecutorTest, EachGroupHasTheLocalMemoryOfKernelAndLaunch) {
  KernelFacts facts;
  facts.local_memory_bytes = 64;
  const kernel_function::Described<sum_in_local_memory> described("sum", facts);
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::functions;
  source.functions = {&described.descriptor, 1};
  const auto kernel = setup_.device->create_module(source).value()->kernel("sum").value();
  std::vector<std::uint64_t> sums(1000);
  std::uint64_t* address = sums.data();
  const hal::Geometry geometry = items(1000, 1);
  ASSERT_TRUE(queue_->launch({kernel.get(), &geometry, std::as_bytes(std::span(&address, 1)), 8000 - 64}, {}));
  ASSERT_TRUE(queue_->synchronize_blocking());
  for (std::size_t group = 0; group < sums.size(); ++group) ASSERT_EQ(sums[group], std::uint64_t{1000} * group);
}

TEST_P(ExecutorTest, AKernelThatLetsAnExceptionOutFailsTheOperationAndTheQueueGoesOn) {
  const TestKernel kernel = TestKernel::of<fail_at_group>(*setup_.device, "fail_at_group");
  ASSERT_TRUE(kernel.launch(*queue_, items(64, 1), {1, false}, std::uint64_t{40}));
  ASSERT_TRUE(kernel.launch(*queue_, items(1, 1), {2, true}, std::uint64_t{0}));
  bool has_run = false;
  submit(*queue_, [&] { has_run = true; }, {3, false});
  const Result<> result = queue_->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::internal);
  EXPECT_THAT(result.error().message, HasSubstr("the kernel fail_at_group let an exception out: group 40"));
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(queue_->synchronize_blocking()) << "an error is returned once";
  const auto all = deliveries_.all();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].status, hal::CompletionStatus::failed);
  EXPECT_EQ(all[1].status, hal::CompletionStatus::failed);
  EXPECT_EQ(all[2].status, hal::CompletionStatus::ok);
}

TEST_P(ExecutorTest, TheFirstErrorStaysWithItsQueueUntilASynchronisationReturnsIt) {
  const auto fail = [&](hal::Queue& queue, const char* message, bool promise) {
    ASSERT_TRUE(queue.host_function(owned_function([message]() -> Result<> { return Error{ErrorCode::internal, message}; }), {0, promise}));
  };
  const auto other = setup_.queue();
  fail(*queue_, "first", true);
  fail(*queue_, "second", false);
  ASSERT_TRUE(comes_true([&] { return queue_->query().value(); }));
  const auto event = setup_.event();
  ASSERT_TRUE(queue_->record(*event));
  EXPECT_TRUE(event->synchronize_blocking());
  EXPECT_TRUE(other->synchronize_blocking());
  const Result<> result = queue_->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "first");
  EXPECT_TRUE(queue_->synchronize_blocking());

  fail(*other, "older", false);
  ASSERT_TRUE(comes_true([&] { return other->query().value(); }));
  fail(*queue_, "newer", false);
  EXPECT_EQ(setup_.device->synchronize_blocking().error().message, "older");
  EXPECT_EQ(setup_.device->synchronize_blocking().error().message, "newer");
  EXPECT_TRUE(setup_.device->synchronize_blocking());
}

TEST_P(ExecutorTest, CopiesAndFillsOfEverySizeArrive) {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{4096}, std::size_t{5 * 16}, (std::size_t{1} << 20) + 48}) {
    std::vector<std::uint8_t> source(bytes), copy(bytes + 1, 0xee), filled(bytes + 1, 0xee);
    for (std::size_t index = 0; index < bytes; ++index) source[index] = static_cast<std::uint8_t>(index * 7 + index / 256);
    ASSERT_TRUE(queue_->copy(copy.data(), source.data(), bytes, {1, false}));
    ASSERT_TRUE(queue_->synchronize_blocking());
    EXPECT_TRUE(std::equal(source.begin(), source.end(), copy.begin()));
    EXPECT_EQ(copy[bytes], 0xee);
    for (const std::size_t length : {1u, 2u, 4u, 8u, 16u}) {
      ASSERT_TRUE(queue_->fill(filled.data(), std::as_bytes(std::span(source.data(), length)), bytes, {2, length == 4}));
      ASSERT_TRUE(queue_->synchronize_blocking());
      bool is_right = true;
      for (std::size_t index = 0; index < bytes; ++index) is_right &= filled[index] == source[index % length];
      EXPECT_TRUE(is_right) << bytes << " bytes, pattern of " << length;
      EXPECT_EQ(filled[bytes], 0xee);
    }
  }
}

TEST_P(ExecutorTest, WhatAHostFunctionDoesIsWorkOfItsOwnAndItsHolderIsDroppedBeforeTheDelivery) {
  struct Held {
    Deliveries* deliveries;
    bool was_inside_scope = true;
    int drops = 0;
    std::size_t delivered_at_drop = 99;
  } held{&deliveries_};
  hal::HostFunction function;
  function.user = &held;
  function.call = [](void* user) -> Result<> {
    static_cast<Held*>(user)->was_inside_scope = probe::inside_scope();
    return {};
  };
  function.drop = [](void* user) {
    auto& dropped = *static_cast<Held*>(user);
    ++dropped.drops;
    dropped.delivered_at_drop = dropped.deliveries->count();
  };
  const probe::Scope scope;
  ASSERT_TRUE(queue_->host_function(function, {5, true}));
  ASSERT_TRUE(queue_->synchronize_blocking());
  EXPECT_FALSE(held.was_inside_scope);
  EXPECT_EQ(held.drops, 1);
  EXPECT_EQ(held.delivered_at_drop, 0u);
  EXPECT_EQ(deliveries_.count(), 1u);
  EXPECT_TRUE(probe::inside_scope());
}

TEST_P(ExecutorTest, AnEventThatWasNeverRecordedIsComplete) {
  const auto event = setup_.event();
  EXPECT_TRUE(event->query().value());
  EXPECT_TRUE(event->synchronize_blocking());
  EXPECT_TRUE(queue_->wait(*event));
  EXPECT_TRUE(queue_->synchronize_blocking());
}

TEST_P(ExecutorTest, ATimedEventTakesTheLaterOfTheEndBeforeItAndTheMomentOfItsCall) {
  const auto behind = setup_.event({true, false}), later = setup_.event({true, true});
  Flag may_end;
  if (GetParam() == Executor::caller) may_end.raise();
  submit(*queue_, [&] { may_end.wait(); }, {1, false});
  ASSERT_TRUE(queue_->record(*behind));
  may_end.raise();
  ASSERT_TRUE(behind->synchronize_blocking());
  const std::uint64_t end = deliveries_.all()[0].ticks.end;
  if (GetParam() == Executor::caller) {
    EXPECT_GE(behind->ticks().value(), end);
  } else {
    EXPECT_EQ(behind->ticks().value(), end);
  }
  const std::uint64_t before = now_ns();
  ASSERT_TRUE(queue_->record(*later));
  ASSERT_TRUE(later->synchronize_blocking());
  EXPECT_GE(later->ticks().value(), before);
  EXPECT_LE(later->ticks().value(), now_ns());
}

TEST_P(ExecutorTest, AnOperationMaySubmitToItsOwnQueueWhatThenRunsBehindIt) {
  std::vector<int> order;
  Flag submitted;
  submit(*queue_, [&] {
    submit(*queue_, [&] { order.push_back(2); }, kPromise);
    order.push_back(1);
    submitted.raise();
  });
  submitted.wait();
  ASSERT_TRUE(queue_->synchronize_blocking());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_P(ExecutorTest, AQueueThatIsDestroyedFinishesWhatWasSubmitted) {
  Flag may_run, has_run;
  if (GetParam() == Executor::caller) may_run.raise();
  submit(*queue_, [&] { may_run.wait(); });
  submit(*queue_, [&] { has_run.raise(); }, {1, false});
  queue_.reset();
  may_run.raise();
  EXPECT_TRUE(setup_.device->synchronize_blocking());
  EXPECT_TRUE(has_run.is_raised());
  EXPECT_EQ(deliveries_.count(), 1u);
}

TEST_P(ExecutorTest, TheWholeDriverMayGoWhileWorkIsInFlight) {
  Flag may_run, has_run, has_ended;
  if (GetParam() == Executor::caller) may_run.raise();
  submit(*queue_, [&] { may_run.wait(); });
  submit(*queue_, [&] { has_run.raise(); }, {1, false});
  submit(*queue_, [&has_ended] { has_ended.raise(); });
  setup_.driver.reset();
  setup_.device.reset();
  queue_.reset();
  may_run.raise();
  has_ended.wait();
  EXPECT_TRUE(has_run.is_raised());
  EXPECT_EQ(deliveries_.count(), 1u);
}

TEST_P(ExecutorTest, AnOperationMayDestroyItsOwnQueue) {
  submit(*queue_, [&] { queue_.reset(); }, kPromise);
  setup_.driver.reset();
  ASSERT_TRUE(setup_.device->synchronize_blocking());
  EXPECT_EQ(queue_, nullptr);
}

TEST_P(ExecutorTest, AnEventMayBeAskedFromAnyThreadWhileItIsRecordedAgainAndAgain) {
  const auto event = setup_.event({true, false});
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&, index] {
      std::uint64_t last_ticks = 0;
      while (!is_over) {
        if (index == 0) {
          EXPECT_TRUE(event->synchronize_blocking());
        } else if (event->query().value()) {
          const std::uint64_t ticks = event->ticks().value();
          EXPECT_GE(ticks, last_ticks);
          last_ticks = ticks;
        }
      }
    });
  }
  for (int round = 0; round < 2000; ++round) {
    submit(*queue_, [] {}, {0, round % 4 == 0});
    ASSERT_TRUE(queue_->record(*event));
  }
  ASSERT_TRUE(queue_->synchronize_blocking());
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(event->query().value());
}

TEST(HostQueueTest, APromisedOperationOnAnIdleQueueRunsOnTheCallingThread) {
  const HostSetup setup;
  const auto queue = setup.queue();
  std::thread::id thread;
  submit(*queue, [&] { thread = std::this_thread::get_id(); }, kPromise);
  EXPECT_EQ(thread, std::this_thread::get_id());
  submit(*queue, [&] { thread = std::this_thread::get_id(); });
  ASSERT_TRUE(queue->synchronize_blocking());
  EXPECT_NE(thread, std::this_thread::get_id());
}

void note_thread(const WorkItem&, std::thread::id* thread) { *thread = std::this_thread::get_id(); }

TEST(HostQueueTest, TheFactsOfAKernelAreAPromise) {
  const HostSetup setup;
  const auto queue = setup.queue();
  KernelFacts facts;
  facts.short_and_independent = true;
  std::thread::id thread;
  ASSERT_TRUE(TestKernel::of<note_thread>(*setup.device, "promised", facts).launch(*queue, items(1), {}, &thread));
  EXPECT_EQ(thread, std::this_thread::get_id());
  ASSERT_TRUE(TestKernel::of<note_thread>(*setup.device, "plain").launch(*queue, items(1), {}, &thread));
  ASSERT_TRUE(queue->synchronize_blocking());
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(HostQueueTest, APromisedOperationBehindAnotherOneDoesNotOvertakeIt) {
  const HostSetup setup;
  const auto queue = setup.queue();
  Flag may_end;
  std::vector<int> order;
  submit(*queue, [&] {
    may_end.wait();
    order.push_back(1);
  });
  submit(*queue, [&] { order.push_back(2); }, kPromise);
  EXPECT_FALSE(queue->query().value());
  may_end.raise();
  ASSERT_TRUE(queue->synchronize_blocking());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(HostQueueTest, InlineRunsEverythingOnTheCallingThreadBeforeTheCallReturns) {
  const HostSetup setup(with_executor(Executor::caller));
  const auto queue = setup.queue();
  std::thread::id thread;
  submit(*queue, [&] { thread = std::this_thread::get_id(); });
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_TRUE(queue->query().value());
}

TEST(HostQueueTest, InlineWaitsForItsTurnOnAQueueThatAnotherThreadUses) {
  const HostSetup setup(with_executor(Executor::caller));
  const auto queue = setup.queue();
  const auto adopted = setup.device->adopt_queue(queue->native_handle(), nullptr).value();
  Flag is_running, may_end;
  std::vector<int> order;
  std::thread first([&] {
    submit(*queue, [&] {
      is_running.raise();
      may_end.wait();
      order.push_back(1);
    });
  });
  is_running.wait();
  std::thread second([&] { submit(*adopted, [&] { order.push_back(2); }); });
  may_end.raise();
  first.join();
  second.join();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(HostQueueTest, InlineWaitsForAnEventOfAQueueThatAnotherThreadUses) {
  const HostSetup setup(with_executor(Executor::caller));
  const auto queue = setup.queue(), other = setup.queue();
  const auto event = setup.event();
  Flag is_running, may_end;
  std::atomic<bool> has_ended{false};
  std::thread runner([&] {
    submit(*queue, [&] {
      is_running.raise();
      may_end.wait();
      has_ended = true;
    });
  });
  is_running.wait();
  ASSERT_TRUE(queue->record(*event));
  EXPECT_FALSE(event->query().value());
  std::thread helper([&] { may_end.raise(); });
  ASSERT_TRUE(other->wait(*event));
  EXPECT_TRUE(has_ended);
  runner.join();
  helper.join();
  EXPECT_TRUE(event->query().value());
}

TEST(HostQueueTest, InlineAnOperationThatMakesAnotherQueueWaitForItsOwnEndDoesNotHang) {
  const HostSetup setup(with_executor(Executor::caller));
  const auto queue = setup.queue(), other = setup.queue();
  const auto event = setup.event();
  std::vector<int> order;
  submit(*queue, [&] {
    ASSERT_TRUE(queue->record(*event));  // complete when this function is
    ASSERT_TRUE(other->wait(*event));
    submit(*other, [&] { order.push_back(2); });
    order.push_back(1);
  });
  EXPECT_TRUE(other->query().value());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

}  // namespace
}  // namespace xpu::drivers::host
