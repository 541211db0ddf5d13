#include "drivers/host/point.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "drivers/host/queue_state.hpp"

namespace xpu::drivers::host {
namespace {

class PointTest : public testing::Test {
 protected:
  std::shared_ptr<QueueState> queue() { return std::make_shared<QueueState>(driver_, 0, hal::QueueOptions{}); }
  static std::vector<QueueState*> listed(QueueState* first) {
    std::vector<QueueState*> all;
    for (; first != nullptr; first = first->next) all.push_back(first);
    return all;
  }

  std::shared_ptr<DriverState> driver_ = std::make_shared<DriverState>(with_defaults({}));
  PointPool& pool_ = driver_->points;
};

TEST_F(PointTest, IsCompleteOnceAndKeepsItsTick) {
  const PointRef point = pool_.take();
  EXPECT_FALSE(point->is_complete());
  EXPECT_EQ(point->complete(42), nullptr);
  EXPECT_TRUE(point->is_complete());
  EXPECT_EQ(point->ticks(), 42u);
  point->wait(0);
}

TEST_F(PointTest, IsRecycledWhenNobodyHoldsItAndPendingAgain) {
  PointRef point = pool_.take();
  Point* const address = point.get();
  const PointRef other = pool_.take();
  EXPECT_NE(other.get(), address);
  EXPECT_EQ(point->complete(1), nullptr);
  const PointRef copy = point;
  point = {};
  EXPECT_NE(pool_.take().get(), address);
  EXPECT_EQ(copy->ticks(), 1u);
  PointRef moved = copy;
  {
    const PointRef last = std::move(moved);
  }
  EXPECT_FALSE(moved);  // NOLINT: that it was emptied is the contract under test
}

TEST_F(PointTest, WakesThreadsThatSpinAndThreadsThatSleep) {
  for (const std::uint64_t spin_ns : {std::uint64_t{0}, std::uint64_t{1'000'000'000}}) {
    const PointRef point = pool_.take();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        point->wait(spin_ns);
        EXPECT_EQ(point->ticks(), 7u);
      });
    }
    EXPECT_EQ(point->complete(7), nullptr);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(PointTest, HandsOutItsWaitersInTheOrderInWhichTheyCame) {
  const PointRef point = pool_.take();
  const auto first = queue(), second = queue(), third = queue(), stranger = queue();
  EXPECT_TRUE(point->add_waiter(*first));
  EXPECT_TRUE(point->add_waiter(*second));
  EXPECT_TRUE(point->add_waiter(*third));
  EXPECT_FALSE(point->remove_waiter(*stranger));
  EXPECT_TRUE(point->remove_waiter(*second));
  EXPECT_FALSE(point->remove_waiter(*second));
  EXPECT_THAT(listed(point->complete(1)), testing::ElementsAre(first.get(), third.get()));
  EXPECT_FALSE(point->add_waiter(*second));
}

}  // namespace
}  // namespace xpu::drivers::host
