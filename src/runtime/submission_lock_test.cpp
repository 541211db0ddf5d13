#include "runtime/submission_lock.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace xpu::runtime {
namespace {

TEST(SubmissionLockTest, TheThreadThatHoldsItMayTakeItAgain) {
  SubmissionLock lock;
  const SubmissionGuard outer(lock);
  const SubmissionGuard inner(lock);
  EXPECT_FALSE(lock.lock());
}

TEST(SubmissionLockTest, ItIsFreeAfterTheOutermostGuard) {
  SubmissionLock lock;
  {
    const SubmissionGuard outer(lock);
    const SubmissionGuard inner(lock);
  }
  bool was_free = false;
  std::thread([&] {
    was_free = lock.lock();
    lock.unlock();
  }).join();
  EXPECT_TRUE(was_free);
}

TEST(SubmissionLockTest, AnAttemptDoesNotWait) {
  SubmissionLock lock;
  const auto attempt_elsewhere = [&] {
    bool may_submit = false;
    std::thread([&] { may_submit = TryToSubmit(lock).may_submit(); }).join();
    return may_submit;
  };
  {
    const SubmissionGuard guard(lock);
    EXPECT_TRUE(TryToSubmit(lock).may_submit()) << "this thread holds it";
    EXPECT_FALSE(attempt_elsewhere());
  }
  EXPECT_TRUE(TryToSubmit(lock).may_submit());
  EXPECT_TRUE(attempt_elsewhere()) << "an attempt lets go of what it took";
}

TEST(SubmissionLockTest, TwoThreadsExcludeEachOther) {
  SubmissionLock lock;
  std::uint64_t count = 0;
  const auto add = [&] {
    for (int index = 0; index < 20'000; ++index) {
      const SubmissionGuard guard(lock);
      ++count;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(count, 40'000u);
}

}  // namespace
}  // namespace xpu::runtime
