#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// The order of the operations of one queue, and what the host sees when.
class QueueOrderTest : public DeviceTest {
 protected:
  static std::uint64_t multiply_add_chain(std::uint64_t count) {
    std::uint64_t value = 1;
    for (std::uint64_t index = 0; index < count; ++index) value = value * 3 + index;
    return value;
  }
};
XPU_CONFORMANCE_SUITE(QueueOrderTest);

std::vector<int> one_to(int last) {
  std::vector<int> numbers(static_cast<std::size_t>(last));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

TEST_P(QueueOrderTest, AThousandHostFunctionsRunInOrder) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<int> order;
  for (const int index : one_to(1'000)) submit_action(*queue, [&order, index] { order.push_back(index); }).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(order, one_to(1'000));
}

TEST_P(QueueOrderTest, AThousandKernelsRunInOrder) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_multiply_add");
  auto* const value = allocate_zeros<std::uint64_t>(1);
  *value = 1;
  for (std::uint64_t index = 0; index < 1'000; ++index) launch(*queue, *kernel, items({1}), value, std::uint64_t{3}, index).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*value, multiply_add_chain(1'000));
}

TEST_P(QueueOrderTest, AThousandCopiesRunInOrder) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const values = allocate_zeros<std::uint32_t>(1'001);
  values[0] = 4711;
  for (std::size_t index = 0; index < 1'000; ++index) queue->copy(&values[index + 1], &values[index], sizeof(values[0]), {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(values[1'000], 4711u);
}

TEST_P(QueueOrderTest, TheLastOfAThousandFillsStays) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const values = allocate_zeros<std::uint32_t>(64);
  for (std::uint32_t index = 1; index <= 1'000; ++index) {
    queue->fill(values, std::as_bytes(std::span(&index, 1)), 64 * sizeof(values[0]), {}).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_THAT(std::vector(values, values + 64), ::testing::Each(1'000u));
}

TEST_P(QueueOrderTest, OperationsOfDifferentKindsSeeEachOthersEffects) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_multiply_add");
  auto* const values = allocate_zeros<std::uint64_t>(2);
  std::vector<std::uint64_t> seen;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t round = 0; round < 50; ++round) {
    queue->fill(&values[0], std::as_bytes(std::span(&round, 1)), sizeof(round), {}).value();
    launch(*queue, *kernel, items({1}), &values[0], std::uint64_t{5}, std::uint64_t{7}).value();
    queue->copy(&values[1], &values[0], sizeof(values[0]), {}).value();
    submit_action(*queue, [&seen, values] { seen.push_back(values[1]); }).value();
    expected.push_back(round * 5 + 7);
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(seen, expected);
}

TEST_P(QueueOrderTest, AShortOperationDoesNotOvertakeThoseBeforeIt) {
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<int> order;
  Hold hold(*queue);
  submit_action(*queue, [&order] { order.push_back(1); }).value();
  submit_action(*queue, [&order] { order.push_back(2); }, {.short_and_independent = true}).value();
  submit_action(*queue, [&order] { order.push_back(3); }).value();
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(order, one_to(3));
}

TEST_P(QueueOrderTest, ShortAndOtherOperationsMixInOrder) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto longer = suite_kernel("conformance_multiply_add");
  const auto shorter = suite_kernel("conformance_short_multiply_add");
  auto* const value = allocate_zeros<std::uint64_t>(1);
  *value = 1;
  for (std::uint64_t index = 0; index < 300; ++index) {
    const hal::Kernel& kernel = index % 3 == 0 ? *longer : *shorter;
    launch_with(*queue, kernel, items({1}), {.token = 0, .short_and_independent = index % 2 == 0}, value, std::uint64_t{3}, index).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*value, multiply_add_chain(300));
}

TEST_P(QueueOrderTest, ADeepQueueOfKernelsLosesNothing) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_multiply_add");
  auto* const value = allocate_zeros<std::uint64_t>(1);
  *value = 1;
  for (std::uint64_t index = 0; index < 100'000; ++index) {
    const Result<> submitted = launch(*queue, *kernel, items({1}), value, std::uint64_t{3}, index);
    ASSERT_TRUE(is_ok(submitted)) << index;
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*value, multiply_add_chain(100'000));
}

TEST_P(QueueOrderTest, ADeepQueueOfHostFunctionsRunsAndDropsEach) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  struct Tally {
    std::uint64_t called = 0, dropped = 0;
  } tally;
  const hal::HostFunction function = {[](void* user) -> Result<> {
                                        ++static_cast<Tally*>(user)->called;
                                        return {};
                                      },
                                      [](void* user) { ++static_cast<Tally*>(user)->dropped; }, &tally};
  for (int index = 0; index < 100'000; ++index) ASSERT_TRUE(is_ok(queue->host_function(function, {}))) << index;
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(tally.called, 100'000u);
  EXPECT_EQ(tally.dropped, 100'000u);
}

TEST_P(QueueOrderTest, EffectsAreVisibleAfterSynchronize) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::uint64_t value = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    submit_action(*queue, [&value, round] { value = round; }).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    ASSERT_EQ(value, round);
  }
}

TEST_P(QueueOrderTest, EffectsAreVisibleAfterAQueryThatSaysTrue) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::uint64_t value = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    submit_action(*queue, [&value, round] { value = round; }).value();
    ASSERT_TRUE(eventually([&] { return queue->query().value(); }));
    ASSERT_EQ(value, round);
  }
}

TEST_P(QueueOrderTest, TheEffectsOfAKernelAreVisibleAfterAQueryThatSaysTrue) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_set");
  auto* const values = allocate_zeros<std::uint32_t>(5'000);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    launch(*queue, *kernel, items({5'000}), values, round).value();
    ASSERT_TRUE(eventually([&] { return queue->query().value(); }));
    ASSERT_THAT(std::vector(values, values + 5'000), ::testing::Each(round));
  }
}

TEST_P(QueueOrderTest, SubmissionsMayMoveFromThreadToThread) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::vector<int> order;
  for (int thread = 0; thread < 10; ++thread) {
    on_threads(1, [&](int) {
      for (int index = 1; index <= 10; ++index) {
        submit_action(*queue, [&order, number = thread * 10 + index] { order.push_back(number); }).value();
      }
    });
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(order, one_to(100));
}

/// One thread submits, and another one calls `ask` until that is over.
void submit_while_asked(hal::Queue& queue, const std::function<void()>& ask) {
  constexpr int kActions = 2'000;
  std::vector<int> order;
  std::atomic<bool> is_submitted{false};
  on_threads(2, [&](int thread) {
    if (thread == 0) {
      const AtEnd end([&] { is_submitted = true; });
      for (const int index : one_to(kActions)) submit_action(queue, [&order, index] { order.push_back(index); }).value();
    } else {
      while (!is_submitted) ask();
    }
  });
  ASSERT_TRUE(is_ok(queue.synchronize_blocking()));
  EXPECT_EQ(order, one_to(kActions));
}

TEST_P(QueueOrderTest, AnotherThreadMayQueryWhileOneSubmits) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_while_asked(*queue, [&] { EXPECT_TRUE(is_ok(queue->query())); });
}

TEST_P(QueueOrderTest, AnotherThreadMaySynchronizeWhileOneSubmits) {
  const std::unique_ptr<hal::Queue> queue = new_queue();
  submit_while_asked(*queue, [&] { EXPECT_TRUE(is_ok(queue->synchronize_blocking())); });
}

}  // namespace
}  // namespace xpu::conformance
