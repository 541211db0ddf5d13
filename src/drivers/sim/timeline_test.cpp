#include "drivers/sim/timeline.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "drivers/sim/test_support/sim_fixture.hpp"

namespace xpu::drivers::sim {
namespace {

using namespace std::chrono_literals;

// Ticks are nanoseconds in most of these tests, which is the default.

TEST(TimelineTest, EventsRoundAKernelLieWhereThePageOfTheHeaderSays) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  const auto a = sim.event(), b = sim.event(), c = sim.event(), d = sim.event();
  std::uint64_t place = 0;
  sim.record(*queue, *a);
  sim.store(*queue, &place, 1);
  sim.record(*queue, *b);
  sim.record(*queue, *c);
  sim.store(*queue, &place, 2);
  sim.record(*queue, *d);
  EXPECT_EQ(sim.now(), 6us) << "submitting takes the host's time and nothing else";
  queue->synchronize_blocking().value();
  EXPECT_EQ(a->ticks().value(), 500u);
  EXPECT_EQ(b->ticks().value(), 15'500u);
  EXPECT_EQ(c->ticks().value(), 15'500u);
  EXPECT_EQ(d->ticks().value(), 25'500u);
}

TEST(TimelineTest, ARecordHasTheFourTimesOfItsOperation) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 7);
  sim.store(*queue, &place, 2, 8);
  queue->synchronize_blocking().value();
  const hal::Completion first = sim.sink.of(7), second = sim.sink.of(8);
  EXPECT_EQ(first.status, hal::CompletionStatus::ok);
  EXPECT_EQ(first.ticks.queued, 0u);
  EXPECT_EQ(first.ticks.submit, 2'000u);
  EXPECT_EQ(first.ticks.start, 5'000u);
  EXPECT_EQ(first.ticks.end, 15'000u);
  EXPECT_EQ(second.ticks.queued, 2'000u);
  EXPECT_EQ(second.ticks.submit, 4'000u);
  EXPECT_EQ(second.ticks.start, 15'000u);
  EXPECT_EQ(second.ticks.end, 25'000u);
}

TEST(TimelineTest, TwoQueuesOverlapAndWaitForEachOthersEvents) {
  SimDeviceUnderTest sim(
      program_of("kernel submit=1us launch=1us duration=100us\nevent submit=1us\ncopy submit=1us launch=0s duration=7us rate=1GB/s"));
  const auto first = sim.queue(), second = sim.queue();
  const auto event = sim.event(), back = sim.event();
  std::uint64_t source = 5, middle = 0, target = 0;
  sim.store(*first, &middle, 1, 1);   // submitted at 1, runs 2..102
  sim.store(*second, &target, 2, 2);  // submitted at 2, runs 3..103: overlaps
  sim.record(*first, *event);         // 102
  second->wait(*event).value();
  second->copy(&middle, &source, 8, {.token = 3}).value();  // submitted at 5, runs 103..110.008 (8 bytes at 1 GB/s)
  sim.record(*second, *back);                               // 110.008
  first->wait(*back).value();
  sim.store(*first, &target, 9, 4);  // runs 110.008..210.008
  sim.device->synchronize_blocking().value();

  EXPECT_EQ(sim.sink.of(1).ticks.start, 2'000u);
  EXPECT_EQ(sim.sink.of(1).ticks.end, 102'000u);
  EXPECT_EQ(sim.sink.of(2).ticks.start, 3'000u);
  EXPECT_EQ(sim.sink.of(2).ticks.end, 103'000u);
  EXPECT_EQ(event->ticks().value(), 102'000u);
  EXPECT_EQ(sim.sink.of(3).ticks.start, 103'000u);
  EXPECT_EQ(sim.sink.of(3).ticks.end, 110'008u);
  EXPECT_EQ(back->ticks().value(), 110'008u);
  EXPECT_EQ(sim.sink.of(4).ticks.start, 110'008u);
  EXPECT_EQ(sim.sink.of(4).ticks.end, 210'008u);
  EXPECT_EQ(middle, 5u) << "the copy came after the kernel that it waited for";
  EXPECT_EQ(target, 9u);
}

TEST(TimelineTest, AWaitDelaysWhatFollowsItAndAnEventBehindIt) {
  SimDeviceUnderTest sim;
  const auto busy = sim.queue(), idle = sim.queue();
  const auto end_of_busy = sim.event(), behind_wait = sim.event();
  std::uint64_t place = 0;
  sim.store(*busy, &place, 1);
  sim.record(*busy, *end_of_busy);
  idle->wait(*end_of_busy).value();
  sim.record(*idle, *behind_wait);
  EXPECT_FALSE(behind_wait->query().value());
  EXPECT_TRUE(behind_wait->query().value());
  EXPECT_EQ(behind_wait->ticks().value(), 15'000u);
}

TEST(TimelineTest, AWaitKeepsTheCaptureThatItSaw) {
  SimDeviceUnderTest sim;
  const auto busy = sim.queue(), idle = sim.queue();
  const auto event = sim.event();
  std::uint64_t place = 0;
  sim.record(*idle, *event);
  idle->wait(*event).value();
  sim.store(*busy, &place, 1);
  sim.record(*busy, *event);  // another capture, 10 us later than the first
  sim.store(*idle, &place, 2, 1);
  idle->synchronize_blocking().value();
  EXPECT_EQ(sim.sink.of(1).ticks.start, sim.sink.of(1).ticks.submit + 3'000) << "it did not wait for the second capture";
}

TEST(TimelineTest, MemoryShowsAnEffectOnlyAfterItsEnd) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1);  // ends at 15 us
  advance_time(*sim.device, 12'999ns).value();
  EXPECT_EQ(sim.now(), 14'999ns);
  EXPECT_EQ(place, 0u);
  advance_time(*sim.device, 1ns).value();
  EXPECT_EQ(place, 1u);
}

TEST(TimelineTest, AnEffectReadsItsSourceAtItsEnd) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t source = 1, target = 0;
  queue->copy(&target, &source, sizeof(source), {}).value();
  source = 2;
  queue->synchronize_blocking().value();
  EXPECT_EQ(target, 2u);
}

TEST(TimelineTest, AFillRepeatsItsPattern) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint16_t target[5] = {};
  std::uint16_t pattern = 0x1234;
  queue->fill(target, std::as_bytes(std::span(&pattern, 1)), sizeof(std::uint16_t) * 4, {}).value();
  pattern = 0;
  queue->synchronize_blocking().value();
  EXPECT_EQ(target[0], 0x1234);
  EXPECT_EQ(target[3], 0x1234);
  EXPECT_EQ(target[4], 0);
}

TEST(TimelineTest, EffectsOfTwoQueuesHappenInTheOrderOfTheirEnds) {
  SimDeviceUnderTest sim(program_of("copy duration=50us"));
  const auto slow = sim.queue(), fast = sim.queue();
  const std::uint64_t source = 1;
  std::uint64_t place = 0;
  slow->copy(&place, &source, sizeof(source), {}).value();
  sim.store(*fast, &place, 2);
  fast->synchronize_blocking().value();
  EXPECT_EQ(place, 2u);
  EXPECT_FALSE(slow->query().value());
  slow->synchronize_blocking().value();
  EXPECT_EQ(place, 1u);
}

TEST(TimelineTest, AnIdleHostDoesNotMoveTheTime) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1);
  const Time before = sim.now();
  const auto reading = sim.device->read_clock().value();
  EXPECT_EQ(sim.device->read_clock().value().ticks, reading.ticks);
  EXPECT_EQ(sim.now(), before);
  EXPECT_EQ(place, 0u);
}

TEST(TimelineTest, WaitingMovesTheTimeToTheEndAndNoFurther) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  const auto event = sim.event();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1);
  sim.record(*queue, *event);
  sim.store(*queue, &place, 2);
  event->synchronize_blocking().value();
  EXPECT_EQ(sim.now(), 15us);
  EXPECT_EQ(place, 1u);
  queue->synchronize_blocking().value();
  EXPECT_EQ(sim.now(), 25us);
  EXPECT_EQ(place, 2u);
}

TEST(TimelineTest, ALoopOfQueriesEndsAfterOneMoreThanThereAreOperations) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  for (std::uint64_t value = 1; value <= 5; ++value) sim.store(*queue, &place, value);
  std::uint64_t queries = 1;
  while (!queue->query().value()) {
    EXPECT_EQ(place, queries) << "each moves the time on to one end";
    ++queries;
  }
  EXPECT_EQ(queries, 6u);
}

TEST(TimelineTest, AnEventThatWasNeverRecordedIsComplete) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  const auto event = sim.event();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1);
  EXPECT_TRUE(event->query().value());
  event->synchronize_blocking().value();
  queue->wait(*event).value();
  EXPECT_EQ(place, 0u);
}

TEST(TimelineTest, ADurationAMillionTimesAsLongTakesAsManySteps) {
  const auto steps_with = [](const char* text) {
    SimDeviceUnderTest sim(program_of(text));
    const auto first = sim.queue(), second = sim.queue();
    const auto event = sim.event();
    std::uint64_t place = 0;
    for (int round = 0; round < 10; ++round) {
      sim.store(*first, &place, 1);
      sim.record(*first, *event);
      second->wait(*event).value();
      sim.store(*second, &place, 2);
    }
    while (!first->query().value()) {
    }
    sim.device->synchronize_blocking().value();
    return sim.steps_so_far();
  };
  const std::uint64_t few = steps_with("kernel duration=10us");
  EXPECT_EQ(steps_with("kernel duration=10s"), few);
  EXPECT_LT(few, 200u);
}

TEST(TimelineTest, AnEventOfAnotherDeviceCanBeWaitedFor) {
  SimDeviceUnderTest sim(program_of("devices 2\nclock\nclock start=1000000"));
  const auto other = sim.driver->open_device(1).value();
  const auto here = sim.queue(), there = other->create_queue({.sink = &sim.sink}).value();
  const auto event = sim.event();
  std::uint64_t place = 0;
  sim.store(*here, &place, 1, 1);
  sim.record(*here, *event);
  there->wait(*event).value();
  sim.store(*there, &place, 2, 2);
  other->synchronize_blocking().value();
  EXPECT_EQ(place, 2u);
  EXPECT_EQ(sim.sink.of(1).ticks.end, 15'000u);
  EXPECT_EQ(sim.sink.of(2).ticks.start, 1'015'000u) << "in ticks of the other device's clock";
  EXPECT_TRUE(sim.device->can_access_peer(*other));
}

TEST(TimelineTest, KernelsAreTimedByTheLastRuleThatNamesTheValue) {
  SimDeviceUnderTest sim(program_of("kernel launch=1us duration=20us\nkernel \"st?r*\" duration=30us\nkernel \"other\" duration=40us"));
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1, 1);
  queue->synchronize_blocking().value();
  const hal::Ticks ticks = sim.sink.of(1).ticks;
  EXPECT_EQ(ticks.start - ticks.submit, 1'000u);
  EXPECT_EQ(ticks.end - ticks.start, 30'000u);
}

TEST(TimelineTest, AHostFunctionRunsOnceAndIsDroppedAfterwards) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t counter = 0;
  queue->host_function(counting_function(counter), {.token = 1}).value();
  EXPECT_EQ(counter, 0u);
  queue->synchronize_blocking().value();
  EXPECT_EQ(counter, 101u);
  const hal::Ticks ticks = sim.sink.of(1).ticks;
  EXPECT_EQ(ticks.submit, 1'000u);
  EXPECT_EQ(ticks.start, 2'000u);
  EXPECT_EQ(ticks.end, 3'000u);
}

TEST(TimelineTest, AHostFunctionMaySubmitButNotWaitForWhatIsBehindIt) {
  struct Shared {
    SimDeviceUnderTest sim;
    std::unique_ptr<hal::Queue> queue = sim.queue(), other = sim.queue();
    std::uint64_t place = 0;
    Result<> waited;
    bool was_idle = true;
  } shared;
  const hal::HostFunction function{.call = [](void* user) -> Result<> {
                                     auto& self = *static_cast<Shared*>(user);
                                     self.sim.store(*self.other, &self.place, 3);
                                     self.was_idle = self.other->query().value();
                                     self.waited = self.other->synchronize_blocking();
                                     return {};
                                   },
                                   .user = &shared};
  shared.queue->host_function(function, {}).value();
  shared.queue->synchronize_blocking().value();
  EXPECT_EQ(shared.sim.now(), 5us) << "the function began at its end, 3 us, and submitted for 2 us";
  EXPECT_FALSE(shared.was_idle);
  ASSERT_FALSE(shared.waited);
  EXPECT_EQ(shared.waited.error().code, ErrorCode::unavailable);
  EXPECT_EQ(shared.place, 0u);
  shared.other->synchronize_blocking().value();
  EXPECT_EQ(shared.place, 3u);
}

TEST(TimelineTest, AnErrorOfAHostFunctionStaysWithItsQueueUntilItIsReturned) {
  SimDeviceUnderTest sim;
  const auto wrong = sim.queue(), right = sim.queue();
  const hal::HostFunction failing{
      .call = [](void* user) -> Result<> { return Error{ErrorCode::internal, static_cast<const char*>(user)}; }};
  hal::HostFunction first = failing, second = failing;
  first.user = const_cast<char*>("the first");
  second.user = const_cast<char*>("the second");
  std::uint64_t place = 0;
  wrong->host_function(first, {.token = 1}).value();
  wrong->host_function(second, {}).value();
  sim.store(*wrong, &place, 1, 2);
  EXPECT_TRUE(right->synchronize_blocking());
  const Result<> result = wrong->synchronize_blocking();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the first");
  EXPECT_TRUE(wrong->synchronize_blocking());
  EXPECT_EQ(sim.sink.of(1).status, hal::CompletionStatus::failed);
  EXPECT_EQ(sim.sink.of(2).status, hal::CompletionStatus::ok) << "operations behind a failed one still run";
  EXPECT_EQ(place, 1u);

  wrong->host_function(first, {}).value();
  const Result<> of_device = sim.device->synchronize_blocking();
  ASSERT_FALSE(of_device);
  EXPECT_EQ(of_device.error().message, "the first");
  EXPECT_TRUE(sim.device->synchronize_blocking());
  EXPECT_TRUE(wrong->synchronize_blocking());
}

TEST(TimelineTest, ASubmissionWithoutTokenIsNotDelivered) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t place = 0;
  sim.store(*queue, &place, 1);
  queue->synchronize_blocking().value();
  EXPECT_TRUE(sim.sink.completions().empty());
}

TEST(TimelineTest, SubmittingWithoutEndWaitsForRoom) {
  SimDeviceUnderTest sim;
  const auto queue = sim.queue();
  std::uint64_t counter = 0;
  constexpr std::uint64_t count = 6'000;
  const hal::HostFunction function{.call = counting_function(counter).call, .user = &counter};
  for (std::uint64_t submitted = 0; submitted < count; ++submitted) queue->host_function(function, {}).value();
  EXPECT_GE(counter, count - 4'096);
  queue->synchronize_blocking().value();
  EXPECT_EQ(counter, count);
}

TEST(TimelineTest, ThreadsThatWaitAtOnceAllSeeTheirEffects) {
  SimDeviceUnderTest sim;
  constexpr std::size_t thread_count = 4, rounds = 50;
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> wrong(thread_count, 0);
  for (std::size_t index = 0; index < thread_count; ++index) {
    threads.emplace_back([&sim, &wrong, index] {
      const auto queue = sim.queue();
      const auto event = sim.event();
      std::uint64_t place = 0;
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        sim.store(*queue, &place, round, index * 1000 + round);
        sim.record(*queue, *event);
        if (round % 3 == 0) {
          while (!event->query().value()) {
          }
        } else if (round % 3 == 1) {
          event->synchronize_blocking().value();
        } else {
          queue->synchronize_blocking().value();
        }
        wrong[index] += place != round;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<std::uint64_t>(thread_count, 0));
  EXPECT_EQ(sim.sink.completions().size(), thread_count * rounds);
}

}  // namespace
}  // namespace xpu::drivers::sim
