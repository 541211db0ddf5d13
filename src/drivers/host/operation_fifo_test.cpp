#include "drivers/host/operation_fifo.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace xpu::drivers::host {
namespace {

class OperationFifoTest : public testing::Test {
 protected:
  void push(std::uint64_t token, std::size_t extra_bytes = 0) {
    const base::MutexLock lock(mutex_);
    fifo_.append<FillOperation>(extra_bytes).token = token;
    fifo_.publish();
  }
  /// The tokens of what can be claimed now.
  std::vector<std::uint64_t> claim_all() {
    std::vector<std::uint64_t> tokens;
    while (const Operation* operation = fifo_.claim()) tokens.push_back(operation->token);
    return tokens;
  }
  std::vector<std::uint64_t> take_rest() {
    OperationFifo::Rest rest;
    {
      const base::MutexLock lock(mutex_);
      rest = fifo_.take_rest();
    }
    std::vector<std::uint64_t> tokens;
    while (const Operation* operation = rest.next()) tokens.push_back(operation->token);
    return tokens;
  }
  bool rewind() {
    const base::MutexLock lock(mutex_);
    return fifo_.rewind_when_empty();
  }

  BlockPool blocks_;
  base::Mutex mutex_;
  OperationFifo fifo_{blocks_, mutex_};
};

std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t number = first; number <= last; ++number) all.push_back(number);
  return all;
}

TEST_F(OperationFifoTest, OperationsOfAllSizesComeOutInOrderAcrossBlocks) {
  EXPECT_EQ(fifo_.claim(), nullptr);
  for (std::uint64_t token = 1; token <= 1000; ++token) push(token, token * 37 % 4096);
  EXPECT_EQ(fifo_.size(), 1000u);
  EXPECT_EQ(claim_all(), numbers(1, 1000));
  EXPECT_EQ(fifo_.size(), 0u);
}

TEST_F(OperationFifoTest, EmptyItStartsAtTheFrontOfItsBlockAgain) {
  push(1);
  const Operation* first = fifo_.claim();
  EXPECT_TRUE(rewind());
  push(2);
  EXPECT_FALSE(rewind());
  EXPECT_EQ(fifo_.claim(), first);
  EXPECT_EQ(first->token, 2u);
}

TEST_F(OperationFifoTest, WhatIsTakenAwayIsExactlyWhatWasNotClaimed) {
  for (std::uint64_t claimed = 0; claimed <= 600; claimed += 75) {
    BlockPool blocks;
    base::Mutex mutex;
    OperationFifo fifo(blocks, mutex);
    OperationFifo::Rest rest;
    {
      const base::MutexLock lock(mutex);
      for (std::uint64_t token = 1; token <= 600; ++token) {
        fifo.append<CopyOperation>(token % 200).token = token;
        fifo.publish();
      }
    }
    for (std::uint64_t token = 1; token <= claimed; ++token) ASSERT_EQ(fifo.claim()->token, token);
    {
      const base::MutexLock lock(mutex);
      rest = fifo.take_rest();
    }
    EXPECT_EQ(fifo.claim(), nullptr);
    std::vector<std::uint64_t> tokens;
    while (const Operation* operation = rest.next()) tokens.push_back(operation->token);
    EXPECT_EQ(tokens, numbers(claimed + 1, 600));
  }
}

TEST_F(OperationFifoTest, AfterARewindTheRestIsCountedFromThere) {
  for (std::uint64_t token = 1; token <= 5; ++token) push(token);
  claim_all();
  ASSERT_TRUE(rewind());
  for (std::uint64_t token = 6; token <= 8; ++token) push(token);
  EXPECT_EQ(fifo_.claim()->token, 6u);
  EXPECT_EQ(take_rest(), numbers(7, 8));
  EXPECT_TRUE(rewind());
  EXPECT_TRUE(take_rest().empty());
}

TEST_F(OperationFifoTest, ARunnerAndAnExitNeverGetTheSameOperation) {
  constexpr std::uint64_t kCount = 20'000;
  for (std::uint64_t token = 1; token <= kCount; ++token) push(token);
  std::vector<std::uint64_t> claimed;
  std::atomic<std::uint64_t> progress{0};
  std::thread runner([&] {
    while (const Operation* operation = fifo_.claim()) {
      claimed.push_back(operation->token);
      progress.fetch_add(1, std::memory_order_relaxed);
    }
  });
  while (progress.load(std::memory_order_relaxed) < kCount / 100) std::this_thread::yield();
  const std::vector<std::uint64_t> rest = take_rest();
  runner.join();
  EXPECT_EQ(claimed, numbers(1, kCount - rest.size()));
  EXPECT_EQ(rest, numbers(kCount - rest.size() + 1, kCount));
}

}  // namespace
}  // namespace xpu::drivers::host
