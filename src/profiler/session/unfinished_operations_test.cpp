#include "profiler/session/unfinished_operations.hpp"

#include <gtest/gtest.h>

#include "xpu/trace/records.hpp"

namespace xpu::profiler {
namespace {

using trace::make_operation;

TEST(UnfinishedOperationsTest, CountsWhatHasNotEnded) {
  UnfinishedOperations operations;
  for (std::uint64_t counter = 1; counter <= 200; ++counter) operations.add(make_operation(3, counter));
  EXPECT_EQ(operations.count(), 200u);
  operations.add(make_operation(3, 7));  // again
  EXPECT_EQ(operations.count(), 200u);
  for (std::uint64_t counter = 200; counter > 1; --counter) operations.remove(make_operation(3, counter));
  EXPECT_EQ(operations.count(), 1u);
  operations.remove(make_operation(3, 1));
  EXPECT_EQ(operations.count(), 0u);
  EXPECT_EQ(operations.pages(), 0u);
}

TEST(UnfinishedOperationsTest, EndsOfOthersDoNotStandForOurs) {
  UnfinishedOperations operations;
  for (std::uint64_t counter = 101; counter <= 110; ++counter) operations.add(make_operation(1, counter));
  for (std::uint64_t counter = 1; counter <= 100; ++counter) operations.remove(make_operation(1, counter));
  operations.remove(make_operation(2, 101));
  EXPECT_EQ(operations.count(), 10u);
}

TEST(UnfinishedOperationsTest, AnEndMayComeABatchBeforeItsSubmission) {
  UnfinishedOperations operations;
  operations.begin_batch();
  operations.remove(make_operation(1, 5));
  operations.begin_batch();
  operations.add(make_operation(1, 5));
  EXPECT_EQ(operations.count(), 0u);
}

TEST(UnfinishedOperationsTest, EndsOfOthersAreNotKeptForEver) {
  UnfinishedOperations operations;
  for (std::uint64_t batch = 0; batch < 100; ++batch) {
    operations.begin_batch();
    for (std::uint64_t counter = 0; counter < 640; ++counter) operations.remove(make_operation(1, batch * 640 + counter));
  }
  EXPECT_LE(operations.pages(), 22u);
}

TEST(UnfinishedOperationsTest, EndsThatWereDroppedAreNotWaitedFor) {
  UnfinishedOperations operations;
  for (std::uint64_t counter = 1; counter <= 10; ++counter) operations.add(make_operation(1, counter));
  operations.remove_unknown(4);
  EXPECT_EQ(operations.count(), 6u);
  operations.remove_unknown(100);
  EXPECT_EQ(operations.count(), 0u);
  operations.clear();
  operations.add(make_operation(1, 1));
  EXPECT_EQ(operations.count(), 1u);
}

}  // namespace
}  // namespace xpu::profiler
