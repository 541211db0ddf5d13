#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Several threads use one device at once.
class ThreadTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(ThreadTest);

constexpr int kThreads = 4;

TEST_P(ThreadTest, EachThreadHasAQueueOfItsOwn) {
  on_threads(kThreads, [&](int) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    std::vector<int> order;
    for (int index = 0; index < 1'000; ++index) submit_action(*queue, [&order, index] { order.push_back(index); }).value();
    EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
    std::vector<int> expected(1'000);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
  });
}

TEST_P(ThreadTest, ThreadsWithoutWaitingInBetween) {
  std::vector<std::unique_ptr<hal::Queue>> queues;
  for (int index = 0; index < kThreads; ++index) queues.push_back(new_queue());
  std::atomic<int> run_count{0};
  on_threads(kThreads, [&](int thread) {
    for (int index = 0; index < 1'000; ++index) submit_action(*queues[static_cast<std::size_t>(thread)], [&] { ++run_count; }).value();
  });
  EXPECT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(run_count, kThreads * 1'000);
}

TEST_P(ThreadTest, QueuesComeAndGo) {
  std::atomic<int> run_count{0};
  on_threads(kThreads, [&](int) {
    for (int round = 0; round < 200; ++round) {
      const std::unique_ptr<hal::Queue> queue = new_queue();
      submit_action(*queue, [&] { ++run_count; }).value();
    }
  });
  EXPECT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_EQ(run_count, kThreads * 200);
}

TEST_P(ThreadTest, EventsComeAndGo) {
  on_threads(kThreads, [&](int) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    for (int round = 0; round < 200; ++round) {
      const std::unique_ptr<hal::Event> event = new_event();
      queue->record(*event).value();
      queue->wait(*event).value();
    }
    EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  });
}

TEST_P(ThreadTest, FourThreadsSynchronizeOneQueue) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<int> run_count{0};
  for (int index = 0; index < 500; ++index) submit_action(*queue, [&] { ++run_count; }).value();
  on_threads(kThreads, [&](int) {
    EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
    EXPECT_EQ(run_count, 500);
  });
}

TEST_P(ThreadTest, FourThreadsSynchronizeTheDevice) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::atomic<int> run_count{0};
  for (int index = 0; index < 500; ++index) submit_action(*queue, [&] { ++run_count; }).value();
  on_threads(kThreads, [&](int) {
    EXPECT_TRUE(is_ok(device().synchronize_blocking()));
    EXPECT_EQ(run_count, 500);
  });
}

TEST_P(ThreadTest, OneThreadOfManyGetsTheError) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_function(*queue, []() -> Result<> { return Error{ErrorCode::internal, "for one of them"}; }).value();
  std::atomic<int> error_count{0};
  on_threads(kThreads, [&](int) { error_count += queue->synchronize_blocking() ? 0 : 1; });
  EXPECT_EQ(error_count, 1);
}

TEST_P(ThreadTest, TheDeviceIsSynchronizedWhileOthersSubmit) {
  std::atomic<int> run_count{0};
  std::atomic<int> submitting{kThreads - 1};
  on_threads(kThreads, [&](int thread) {
    if (thread == 0) {
      while (submitting != 0) EXPECT_TRUE(is_ok(device().synchronize_blocking()));
    } else {
      const AtEnd end([&] { --submitting; });
      const std::unique_ptr<hal::Queue> queue = new_queue();
      for (int index = 0; index < 300; ++index) submit_action(*queue, [&] { ++run_count; }).value();
      EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
    }
  });
  EXPECT_EQ(run_count, (kThreads - 1) * 300);
}

TEST_P(ThreadTest, AnEventOrdersQueuesOfTwoThreads) {
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  for (int round = 0; round < 50; ++round) {
    const std::unique_ptr<hal::Event> event = new_event();
    int value = 0;
    int seen = -1;
    std::atomic<bool> is_recorded{false};
    on_threads(2, [&](int thread) {
      if (thread == 0) {
        const AtEnd end([&] { is_recorded = true; });
        submit_action(*first, [&] { value = round; }).value();
        first->record(*event).value();
      } else {
        EXPECT_TRUE(eventually([&] { return is_recorded.load(); }));
        second->wait(*event).value();
        submit_action(*second, [&] { seen = value; }).value();
        EXPECT_TRUE(is_ok(second->synchronize_blocking()));
      }
    });
    ASSERT_EQ(seen, round);
  }
}

TEST_P(ThreadTest, KernelsCopiesAndFillsOfFourThreadsMix) {
  XPU_NEEDS(registered_modules);
  const auto kernel = suite_kernel("conformance_set");
  constexpr std::size_t kCount = 2'000;
  auto* const all = allocate_zeros<std::uint32_t>(kThreads * 2 * kCount);
  on_threads(kThreads, [&](int thread) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    std::uint32_t* const values = all + static_cast<std::size_t>(thread) * 2 * kCount;
    std::uint32_t* const copied = values + kCount;
    for (std::uint32_t round = 1; round <= 30; ++round) {
      const std::uint32_t pattern = round * 100 + static_cast<std::uint32_t>(thread);
      queue->fill(values, std::as_bytes(std::span(&pattern, 1)), kCount * sizeof(pattern), {}).value();
      launch(*queue, *kernel, items({kCount / 2}), values, pattern + 50).value();
      queue->copy(copied, values, kCount * sizeof(pattern), {}).value();
      EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
      EXPECT_EQ(std::count(copied, copied + kCount / 2, pattern + 50), static_cast<std::ptrdiff_t>(kCount / 2));
      EXPECT_EQ(std::count(copied + kCount / 2, copied + kCount, pattern), static_cast<std::ptrdiff_t>(kCount / 2));
    }
  });
}

}  // namespace
}  // namespace xpu::conformance
