#include "memory/epoch_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "memory/test_support/scripted_progress.hpp"

namespace xpu::memory {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

struct Fixture {
  ScriptedProgress progress;
  EpochClock clock{progress};
  StreamRef first = progress.stream(1), second = progress.stream(2);
};

TEST(EpochClock, AnswersForAllFreesBeforeATicketWithOneTicket) {
  Fixture f;
  std::vector<Epoch> epochs;
  for (int i = 0; i < 50; ++i) epochs.push_back(f.clock.note_free(f.first, 1));
  EXPECT_EQ(f.progress.calls(f.first).total(), 0) << "a free asks nothing";
  EXPECT_EQ(f.clock.issue_pending(), 1u);
  EXPECT_EQ(f.clock.issue_pending(), 0u) << "nothing was freed since";
  EXPECT_EQ(f.progress.issued(f.first), 1u);

  f.clock.poll();
  for (const Epoch& epoch : epochs) EXPECT_FALSE(f.clock.is_complete(epoch));
  f.progress.reach(f.first, 1);
  EXPECT_FALSE(f.clock.is_complete(epochs.front())) << "nobody has asked yet";
  f.clock.poll();
  for (const Epoch& epoch : epochs) EXPECT_TRUE(f.clock.is_complete(epoch));
}

TEST(EpochClock, NeverLetsATicketAnswerForALaterFree) {
  Fixture f;
  const Epoch before = f.clock.note_free(f.first, 1);
  f.clock.issue_pending();
  const Epoch after = f.clock.note_free(f.first, 1);
  f.progress.reach_all(f.first);
  f.clock.poll();
  EXPECT_TRUE(f.clock.is_complete(before));
  EXPECT_FALSE(f.clock.is_complete(after));
  f.clock.issue_pending();
  f.progress.reach_all(f.first);
  f.clock.poll();
  EXPECT_TRUE(f.clock.is_complete(after));
}

TEST(EpochClock, PutsAFreeThatComesWhileATicketIsIssuedIntoTheNextEpoch) {
  Fixture f;
  const Epoch before = f.clock.note_free(f.first, 1);
  Epoch during;
  f.progress.on_call([&] { during = f.clock.note_free(f.first, 1); });
  f.clock.issue_pending();
  f.progress.on_call(nullptr);
  f.progress.reach_all(f.first);
  f.clock.poll();
  EXPECT_TRUE(f.clock.is_complete(before));
  EXPECT_FALSE(f.clock.is_complete(during));
}

TEST(EpochClock, AsksEachStreamOnceForAllItsTickets) {
  Fixture f;
  std::vector<Epoch> epochs;
  for (int i = 0; i < 10; ++i) {
    epochs.push_back(f.clock.note_free(f.first, 1));
    f.clock.issue_pending();
  }
  f.progress.reach(f.first, 7);
  f.clock.poll();
  EXPECT_EQ(f.progress.calls(f.first).completed, 1);
  EXPECT_EQ(f.progress.calls(f.second).total(), 0);
  for (std::size_t i = 0; i < epochs.size(); ++i) EXPECT_EQ(f.clock.is_complete(epochs[i]), i < 7) << i;
  f.progress.reach_all(f.first);
  f.clock.poll();
  f.clock.poll();
  EXPECT_EQ(f.progress.calls(f.first).completed, 2) << "a stream without tickets is not asked";
}

TEST(EpochClock, IsDueAfter64FreesOr64MebibytesOfOneStream) {
  Fixture f;
  for (int i = 0; i < 63; ++i) {
    f.clock.note_free(f.first, 1);
    f.clock.note_free(f.second, 1);
  }
  EXPECT_FALSE(f.clock.is_issue_due());
  f.clock.note_free(f.first, 1);
  EXPECT_TRUE(f.clock.is_issue_due());
  EXPECT_EQ(f.clock.issue_due(), 1u);
  EXPECT_FALSE(f.clock.is_issue_due());
  EXPECT_EQ(f.progress.calls(f.second).issue, 0);

  f.clock.note_free(f.first, 64 * kMebibyte - 1);
  EXPECT_FALSE(f.clock.is_issue_due());
  f.clock.note_free(f.first, 1);
  EXPECT_TRUE(f.clock.is_issue_due());
}

TEST(EpochClock, AsksNothingOfACapturingStreamUntilItIsSaidToBeNone) {
  Fixture f;
  f.clock.note_stream(f.progress.stream(1, true));
  Epoch epoch;
  for (int i = 0; i < 100; ++i) epoch = f.clock.note_free(f.first, kMebibyte);
  EXPECT_FALSE(f.clock.is_issue_due());
  EXPECT_EQ(f.clock.issue_due() + f.clock.issue_pending(), 0u);
  f.clock.poll();
  EXPECT_EQ(f.clock.wait(epoch).error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(f.progress.calls(f.first).total(), 0);
  EXPECT_FALSE(f.clock.is_complete(epoch));

  f.clock.note_stream(f.first);
  EXPECT_TRUE(f.clock.is_issue_due());
  EXPECT_TRUE(f.clock.wait(epoch));
  EXPECT_TRUE(f.clock.is_complete(epoch));
}

TEST(EpochClock, DoesNotPollATicketFromBeforeACapture) {
  Fixture f;
  const Epoch epoch = f.clock.note_free(f.first, 1);
  f.clock.issue_pending();
  f.clock.note_stream(f.progress.stream(1, true));
  f.progress.reach_all(f.first);
  f.clock.poll();
  EXPECT_EQ(f.progress.calls(f.first).completed, 0);
  f.clock.note_stream(f.first);
  f.clock.poll();
  EXPECT_TRUE(f.clock.is_complete(epoch));
}

TEST(EpochClock, WaitsForTheTicketOfTheEpochAndNoLaterOne) {
  Fixture f;
  const Epoch early = f.clock.note_free(f.first, 1);
  f.clock.issue_pending();
  const Epoch late = f.clock.note_free(f.first, 1);
  f.clock.issue_pending();
  ASSERT_TRUE(f.clock.wait(early));
  EXPECT_EQ(f.progress.reached(f.first), 1u);
  EXPECT_TRUE(f.clock.is_complete(early));
  EXPECT_FALSE(f.clock.is_complete(late));
  ASSERT_TRUE(f.clock.wait(early));
  EXPECT_EQ(f.progress.calls(f.first).wait, 1) << "it is known to be complete";
}

TEST(EpochClock, IssuesTheTicketThatIsWaitedFor) {
  Fixture f;
  const Epoch epoch = f.clock.note_free(f.first, 1);
  ASSERT_TRUE(f.clock.wait(epoch));
  EXPECT_EQ(f.progress.issued(f.first), 1u);
  EXPECT_TRUE(f.clock.is_complete(epoch));
}

TEST(EpochClock, KeepsFreesOfAQueueThatRefusesForALaterTicket) {
  Fixture f;
  f.progress.fail(f.first, Error{ErrorCode::out_of_host_memory, "no events left"});
  Epoch epoch;
  for (int i = 0; i < 64; ++i) epoch = f.clock.note_free(f.first, 1);
  EXPECT_EQ(f.clock.issue_due(), 0u);
  EXPECT_FALSE(f.clock.is_issue_due()) << "a queue that refuses is not asked at every free";
  EXPECT_EQ(f.clock.wait(epoch).error().message, "no events left");
  EXPECT_FALSE(f.clock.is_complete(epoch));
  f.progress.fail(f.first);
  ASSERT_TRUE(f.clock.wait(epoch));
  EXPECT_TRUE(f.clock.is_complete(epoch));
}

TEST(EpochClock, TakesALostDeviceForOneThatRunsNothing) {
  Fixture f;
  const Epoch issued = f.clock.note_free(f.first, 1);
  f.clock.issue_pending();
  const Epoch not_issued = f.clock.note_free(f.first, 1);
  f.progress.fail(f.first, Error{ErrorCode::device_lost, "gone"});
  EXPECT_TRUE(f.clock.wait(issued));
  EXPECT_TRUE(f.clock.wait(not_issued));
  EXPECT_TRUE(f.clock.is_complete(not_issued));
}

TEST(EpochClock, DoesNotTakeAStreamThatComesBackForComplete) {
  Fixture f;
  const Epoch old = f.clock.note_free(f.first, 1);
  ASSERT_TRUE(f.clock.wait(old));
  const Epoch other = f.clock.note_free(f.second, 1);
  const Epoch fresh = f.clock.note_free(f.first, 1);
  EXPECT_TRUE(f.clock.is_complete(old));
  EXPECT_FALSE(f.clock.is_complete(fresh));
  EXPECT_FALSE(f.clock.is_complete(other));
}

TEST(EpochClock, MakesAStreamWaitForATicketFromBehindTheFree) {
  Fixture f;
  const Epoch before = f.clock.note_free(f.second, 1);
  f.clock.issue_pending();
  const Epoch after = f.clock.note_free(f.second, 1);
  EXPECT_TRUE(f.clock.make_wait(f.first, before));
  EXPECT_EQ(f.progress.awaited(f.first, f.second), 1u) << "that ticket is there";
  EXPECT_TRUE(f.clock.make_wait(f.first, after));
  EXPECT_EQ(f.progress.awaited(f.first, f.second), 2u);
  EXPECT_EQ(f.progress.issued(f.second), 2u);
  EXPECT_EQ(f.progress.calls(f.second).wait, 0);
  f.progress.reach_all(f.second);
  f.clock.poll();
  EXPECT_TRUE(f.clock.make_wait(f.first, after));
  EXPECT_EQ(f.progress.calls(f.first).make_wait, 2) << "nothing is left to wait for";
}

TEST(EpochClock, MakesNoStreamThatIsCapturingWaitAndNoneForIt) {
  Fixture f;
  const Epoch epoch = f.clock.note_free(f.second, 1);
  const Result<> waiting = f.clock.make_wait(f.progress.stream(1, true), epoch);
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().code, ErrorCode::failed_precondition);
  f.clock.note_stream(f.progress.stream(2, true));
  const Result<> awaited = f.clock.make_wait(f.first, epoch);
  ASSERT_FALSE(awaited);
  EXPECT_EQ(awaited.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(f.progress.calls(f.first).total() + f.progress.calls(f.second).total(), 0);
}

TEST(EpochClock, KnowsMoreThan64Streams) {
  Fixture f;
  std::vector<Epoch> epochs;
  for (int id = 0; id < 65; ++id) epochs.push_back(f.clock.note_free(f.progress.stream(100 + id), 1));
  EXPECT_EQ(f.clock.issue_pending(), 65u);
  for (int id = 0; id < 65; id += 2) f.progress.reach_all(f.progress.stream(100 + id));
  f.clock.poll();
  for (std::size_t id = 0; id < 65; ++id) EXPECT_EQ(f.clock.is_complete(epochs[id]), id % 2 == 0) << id;
}

TEST(EpochClock, KeepsItsPromiseWithFourThreads) {
  Fixture f;
  f.progress.finish_at_once(f.second);
  std::atomic<int> early{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 2000; ++i) {
        const StreamRef& stream = i % 2 == 0 ? f.first : f.second;
        const std::uint64_t issued_before = f.progress.issued(stream);
        const Epoch epoch = f.clock.note_free(stream, 1);
        if (thread % 2 == 0) f.clock.issue_pending();
        f.clock.poll();
        if (f.clock.is_complete(epoch) && f.progress.reached(stream) <= issued_before) ++early;
        if (i % 16 == 0 && !f.clock.wait(epoch)) ++early;
        if (i % 16 == 0 && !f.clock.is_complete(epoch)) ++early;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(early, 0);
}

}  // namespace
}  // namespace xpu::memory
