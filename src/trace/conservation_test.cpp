#include "xpu/trace/conservation.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/probe.hpp"
#include "tests/support/recording_builder.hpp"

namespace xpu::trace {
namespace {

using test_support::completion;
using test_support::loss;
using test_support::queue_record;
using test_support::RecordingBuilder;
using test_support::submission;

constexpr std::uint32_t kNoChunk = static_cast<std::uint32_t>(probe::LossCause::no_chunk);
constexpr std::uint32_t kRingFull = static_cast<std::uint32_t>(probe::LossCause::ring_full);

class ConservationTest : public ::testing::Test {
 protected:
  std::size_t add_process(SegmentState state = SegmentState::closed, std::uint32_t writers = 1) {
    ProcessInfo info;
    info.pid = 100 + processes_;
    info.start_ns = 5 + processes_++;
    info.state = state;
    info.writer_count = writers;
    return builder_.add_process(info);
  }
  void add_queue(std::size_t process, std::uint32_t queue, std::uint32_t published_before = 0) {
    builder_.add(process, 1, queue_record(queue, published_before));
  }
  /// Commands first to last of a queue by writer 1, submitted and completed; operation = sequence.
  void add_commands(std::size_t process, std::uint32_t queue, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t sequence = first; sequence <= last; ++sequence) {
      builder_.add(process, 1, submission(operation(queue, sequence), queue, sequence, sequence * 1'000));
      builder_.add(process, 1, completion(operation(queue, sequence), queue));
    }
  }
  static std::uint64_t operation(std::uint32_t queue, std::uint32_t sequence) { return make_operation(queue, sequence); }

  /// Read from a finished file, from a live folder, and from one half of which is compacted: the books are the same.
  Conservation check() {
    const std::string name = folder_ / ("recording" + std::to_string(checks_++));
    EXPECT_TRUE(builder_.write_file(name + ".xpu"));
    EXPECT_TRUE(builder_.write_folder(name + "-live.xpu.live"));
    EXPECT_TRUE(builder_.write_folder(name + "-half.xpu.live", 1));
    const Conservation books = read(name + ".xpu");
    for (const std::string& other : {name + "-live.xpu.live", name + "-half.xpu.live"}) {
      const Conservation same = read(other);
      EXPECT_EQ(same.total.submitted, books.total.submitted) << other;
      EXPECT_EQ(same.total.recorded, books.total.recorded) << other;
      EXPECT_EQ(same.total.lost, books.total.lost) << other;
      EXPECT_EQ(same.total.pending, books.total.pending) << other;
      EXPECT_EQ(same.total.unexplained, books.total.unexplained) << other;
      EXPECT_EQ(same.filtered, books.filtered) << other;
      EXPECT_EQ(same.pending.size(), books.pending.size()) << other;
    }
    return books;
  }

  RecordingBuilder builder_;

 private:
  Conservation read(const std::string& path) {
    Result<Recording> recording = Recording::open(path);
    if (!recording) {
      ADD_FAILURE() << to_string(recording.error());
      return {};
    }
    EXPECT_EQ(recording->damage(), "");
    Result<Conservation> books = check_conservation(*recording);
    EXPECT_TRUE(books);
    return books ? *books : Conservation{};
  }

  test_support::TemporaryFolder folder_;
  std::uint64_t processes_ = 0;
  int checks_ = 0;
};

void expect_total(const Conservation& books, std::uint64_t submitted, std::uint64_t recorded, std::uint64_t lost, std::uint64_t pending,
                  std::int64_t unexplained) {
  EXPECT_EQ(books.total.submitted, submitted);
  EXPECT_EQ(books.total.recorded, recorded);
  EXPECT_EQ(books.total.lost, lost);
  EXPECT_EQ(books.total.pending, pending);
  EXPECT_EQ(books.total.unexplained, unexplained);
}

TEST_F(ConservationTest, CloseWhenEverythingIsOnRecord) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_queue(process, 2);
  add_commands(process, 1, 1, 10);
  add_commands(process, 2, 1, 5);
  const Conservation books = check();
  expect_total(books, 15, 15, 0, 0, 0);
  ASSERT_EQ(books.queues.size(), 2u);
  EXPECT_EQ(books.queues[0].queue, 1u);
  EXPECT_EQ(books.queues[0].submitted, 10u);
  EXPECT_EQ(books.queues[1].queue, 2u);
  EXPECT_EQ(books.queues[1].submitted, 5u);
  EXPECT_TRUE(books.pending.empty());
  EXPECT_TRUE(books.losses.empty());
}

TEST_F(ConservationTest, ShowAMissingCompletionAsPendingByName) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 9);
  auto last = submission(operation(1, 10), 1, 10, 77'000);
  last.what = 4;
  last.api = 5;
  builder_.add(process, 1, last);
  const Conservation books = check();
  expect_total(books, 10, 9, 0, 1, 0);
  ASSERT_EQ(books.pending.size(), 1u);
  EXPECT_EQ(books.pending[0].operation, operation(1, 10));
  EXPECT_EQ(books.pending[0].queue, 1u);
  EXPECT_EQ(books.pending[0].what, 4u);
  EXPECT_EQ(books.pending[0].api, 5u);
  EXPECT_EQ(books.pending[0].enter_ns, 77'000u);
  EXPECT_EQ(books.pending[0].flags >> kCommandShift, 1u);
}

TEST_F(ConservationTest, ShowAMissingSubmissionAsUnexplained) {
  for (const std::uint32_t missing : {1u, 4u, 10u}) {  // the first, one in the middle, and the last, whose number nobody else tells
    builder_ = RecordingBuilder();
    const std::size_t process = add_process();
    add_queue(process, 1);
    for (std::uint32_t sequence = 1; sequence <= 10; ++sequence) {
      if (sequence != missing) builder_.add(process, 1, submission(operation(1, sequence), 1, sequence));
      builder_.add(process, 1, completion(operation(1, sequence), 1));
    }
    const Conservation books = check();
    expect_total(books, 10, 9, 0, 0, 1);
  }
}

TEST_F(ConservationTest, ShowAMissingSubmissionAndCompletionAsUnexplained) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 3);
  add_commands(process, 1, 5, 6);
  expect_total(check(), 6, 5, 0, 0, 1);
}

TEST_F(ConservationTest, CountACompletionOnceHoweverOftenItIsThere) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 2);
  builder_.add(process, 1, completion(operation(1, 1), 1));
  builder_.add(process, 1, submission(operation(1, 2), 1, 2));
  expect_total(check(), 2, 2, 0, 0, 0);
}

TEST_F(ConservationTest, JoinACompletionThatStandsBeforeItsSubmission) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  auto early = completion(operation(1, 1), 1);
  early.header.flags = kFlagFailed | kFlagUntimed;
  builder_.add(process, 2, early);
  builder_.add(process, 1, submission(operation(1, 1), 1, 1));
  const Conservation books = check();
  expect_total(books, 1, 1, 0, 0, 0);
  EXPECT_EQ(books.total.failed, 1u);
  EXPECT_EQ(books.total.untimed, 1u);
}

TEST_F(ConservationTest, CountFailedAndUntimedCompletionsAsRecorded) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  for (std::uint32_t sequence = 1; sequence <= 6; ++sequence) {
    builder_.add(process, 1, submission(operation(1, sequence), 1, sequence));
    auto record = completion(operation(1, sequence), 1);
    if (sequence <= 2) record.header.flags = kFlagFailed;
    if (sequence >= 4) record.header.flags = kFlagUntimed;
    builder_.add(process, 1, record);
  }
  const Conservation books = check();
  expect_total(books, 6, 6, 0, 0, 0);
  EXPECT_EQ(books.total.failed, 2u);
  EXPECT_EQ(books.total.untimed, 3u);
}

TEST_F(ConservationTest, CountACallThatTheDriverRefusedOnlyAsRefused) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 2);
  auto refused = submission(operation(1, 9), 1, 0);
  refused.header.flags |= kFlagFailed;
  builder_.add(process, 1, refused);
  const Conservation books = check();
  expect_total(books, 2, 2, 0, 0, 0);
  EXPECT_EQ(books.refused_calls, 1u);
  EXPECT_TRUE(books.pending.empty());
}

TEST_F(ConservationTest, ExplainDroppedSubmissionsByTheirLossRecord) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 5);
  builder_.add_loss(process, 1, loss(1, kNoChunk, 3, 0, 8));  // 6, 7, 8
  add_commands(process, 1, 9, 9);
  const Conservation books = check();
  expect_total(books, 9, 6, 3, 0, 0);
  ASSERT_EQ(books.losses.size(), 1u);
  EXPECT_EQ(books.losses[0].queue, 1u);
  EXPECT_EQ(books.losses[0].cause, kNoChunk);
  EXPECT_EQ(books.losses[0].count, 3u);
}

TEST_F(ConservationTest, CountSubmissionsOfAQueueThatHasNothingButLosses) {
  const std::size_t process = add_process();
  builder_.add_loss(process, 1, loss(7, kNoChunk, 12, 0, 12));
  expect_total(check(), 12, 0, 12, 0, 0);
}

TEST_F(ConservationTest, ExplainDroppedCompletionsAndDoNotCallThemPending) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 5);
  for (std::uint32_t sequence = 6; sequence <= 8; ++sequence) builder_.add(process, 1, submission(operation(1, sequence), 1, sequence));
  auto dropped = loss(1, kRingFull, 2, kFlagCompletionLost, 0);
  dropped.first_operation = operation(1, 6);
  dropped.last_operation = operation(1, 7);
  builder_.add(process, 1, dropped);
  const Conservation books = check();
  expect_total(books, 8, 5, 2, 1, 0);
  ASSERT_EQ(books.pending.size(), 1u);
  EXPECT_EQ(books.pending[0].operation, operation(1, 8));
}

TEST_F(ConservationTest, AddUpLossesOfTheSameCauseAndKeepOthersApart) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  builder_.add_loss(process, 1, loss(1, kNoChunk, 3, 0, 3));
  builder_.add_loss(process, 2, loss(1, kNoChunk, 2, 0, 5));
  builder_.add_loss(process, 2, loss(1, kRingFull, 1, 0, 6));
  const Conservation books = check();
  expect_total(books, 6, 0, 6, 0, 0);
  ASSERT_EQ(books.losses.size(), 2u);
  EXPECT_EQ(books.losses[0].count, 5u);
  EXPECT_EQ(books.losses[1].count, 1u);
}

TEST_F(ConservationTest, KeepLostRecordsThatAreNoOperationsOutOfTheBooks) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 2);
  builder_.add_loss(process, 1, loss(0, kNoChunk, 40, kFlagNotOperation));
  builder_.add_loss(process, 1, loss(1, kNoChunk, 0));  // a slot that was opened and never counted in
  const Conservation books = check();
  expect_total(books, 2, 2, 0, 0, 0);
  EXPECT_EQ(books.other_records_lost, 40u);
  EXPECT_TRUE(books.losses.empty());
}

TEST_F(ConservationTest, LetLossesWithoutAQueueExplainGapsFirst) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  add_commands(process, 1, 1, 3);
  add_commands(process, 1, 6, 6);
  builder_.add_loss(process, 1, loss(0, kNoChunk, 3));
  const Conservation books = check();
  expect_total(books, 7, 4, 3, 0, 0);  // 4 and 5 are two of the three; the third was on a queue that nobody knows
  ASSERT_EQ(books.queues.size(), 1u);
  EXPECT_EQ(books.queues[0].lost, 2u);
}

TEST_F(ConservationTest, LetLostCompletionsWithoutAQueueExplainWhatSeemsPending) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  builder_.add(process, 1, submission(operation(1, 1), 1, 1));
  auto dropped = loss(0, kNoChunk, 1, kFlagCompletionLost);
  dropped.first_operation = dropped.last_operation = operation(1, 1);
  builder_.add_loss(process, 1, dropped);
  expect_total(check(), 1, 0, 1, 0, 0);
}

TEST_F(ConservationTest, CountLossesOfThreadsThatNeverHadAChunk) {
  const std::size_t process = add_process();
  builder_.process(process).lost_before_any_chunk = 3;
  add_queue(process, 1);
  add_commands(process, 1, 1, 2);
  add_commands(process, 1, 4, 4);
  const Conservation books = check();
  expect_total(books, 6, 3, 3, 0, 0);
  EXPECT_EQ(books.lost_before_any_chunk, 3u);
  ASSERT_EQ(books.losses.size(), 1u);
  EXPECT_EQ(books.losses[0].queue, 0u);
  EXPECT_EQ(books.losses[0].cause, kNoChunk);
}

TEST_F(ConservationTest, LetSuchLossesExplainWhatAProcessLeftOpenThatEndedInGoodOrder) {
  for (const SegmentState state : {SegmentState::closed, SegmentState::attached}) {
    builder_ = RecordingBuilder();
    const std::size_t process = add_process(state);
    builder_.process(process).lost_before_any_chunk = 1;
    add_queue(process, 1);
    add_commands(process, 1, 1, 2);
    builder_.add(process, 1, submission(operation(1, 3), 1, 3));
    if (state == SegmentState::closed) {
      expect_total(check(), 3, 2, 1, 0, 0);
    } else {
      expect_total(check(), 4, 2, 1, 1, 0);  // it may well have been on the device
    }
  }
}

TEST_F(ConservationTest, TakeGapsOfAProcessThatDiedForCommandsInTheDriver) {
  const std::size_t process = add_process(SegmentState::attached, 2);
  add_queue(process, 1);
  add_queue(process, 2);
  add_commands(process, 1, 1, 3);
  add_commands(process, 1, 5, 5);
  add_commands(process, 2, 2, 2);
  expect_total(check(), 7, 5, 0, 2, 0);
}

TEST_F(ConservationTest, TakeNoMoreGapsForThemThanThereWereThreads) {
  const std::size_t process = add_process(SegmentState::attached, 1);
  add_queue(process, 1);
  add_commands(process, 1, 1, 3);
  add_commands(process, 1, 6, 6);
  expect_total(check(), 6, 4, 0, 1, 1);
}

TEST_F(ConservationTest, TakeNoGapsForThemInAProcessThatEndedInGoodOrder) {
  const std::size_t process = add_process(SegmentState::closed, 4);
  add_queue(process, 1);
  add_commands(process, 1, 2, 2);
  expect_total(check(), 2, 1, 0, 0, 1);
}

TEST_F(ConservationTest, ACompletionWhoseSubmissionIsMissingIsNotInTheDriver) {
  const std::size_t process = add_process(SegmentState::attached, 4);
  add_queue(process, 1);
  add_commands(process, 1, 1, 2);
  builder_.add(process, 1, completion(operation(1, 3), 1));
  add_commands(process, 1, 4, 4);
  expect_total(check(), 4, 3, 0, 0, 1);
}

TEST_F(ConservationTest, DoNotCountWhatWasUsedBeforeTheQueueWasPublished) {
  const std::size_t process = add_process();
  add_queue(process, 1, 1'000);
  add_commands(process, 1, 1'001, 1'010);
  expect_total(check(), 10, 10, 0, 0, 0);
}

TEST_F(ConservationTest, DoNotCountWhatWasUsedWhileNobodyListened) {
  const std::size_t process = add_process();
  add_queue(process, 1, 0);
  add_commands(process, 1, 1, 10);
  add_queue(process, 1, 500);
  add_commands(process, 1, 501, 503);
  add_queue(process, 1, 503);  // published again with newer facts, nothing skipped
  add_commands(process, 1, 504, 505);
  expect_total(check(), 15, 15, 0, 0, 0);
}

TEST_F(ConservationTest, TellAChildsQueuesFromItsParents) {
  const std::size_t parent = add_process(), child = add_process();
  add_queue(parent, 1);
  add_commands(parent, 1, 1, 10);
  add_queue(child, 1, 6);
  add_commands(child, 1, 7, 8);  // the same operation ids as the parent's
  const Conservation books = check();
  expect_total(books, 12, 12, 0, 0, 0);
  ASSERT_EQ(books.queues.size(), 2u);
  EXPECT_EQ(books.queues[0].process, parent);
  EXPECT_EQ(books.queues[1].process, child);
  EXPECT_EQ(books.queues[1].submitted, 2u);
}

TEST_F(ConservationTest, SumFilteredOperationsOfHeadersAndChunks) {
  const std::size_t process = add_process();
  builder_.process(process).filtered = 5;
  builder_.count_filtered(process, 1, 30);
  add_queue(process, 1);
  builder_.next_chunk(process, 1);
  builder_.count_filtered(process, 1, 200);
  add_commands(process, 1, 1, 1);
  EXPECT_EQ(check().filtered, 235u);
}

TEST_F(ConservationTest, ListTheThousandOldestPendingCommandsInOrder) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  for (std::uint32_t sequence = 1; sequence <= 1'500; ++sequence) {
    builder_.add(process, 1, submission(operation(1, sequence), 1, sequence, (sequence * 7'919) % 1'500));
  }
  const Conservation books = check();
  EXPECT_EQ(books.total.pending, 1'500u);
  ASSERT_EQ(books.pending.size(), 1'000u);
  for (std::size_t index = 0; index < books.pending.size(); ++index) EXPECT_EQ(books.pending[index].enter_ns, index);
}

TEST_F(ConservationTest, HoldOperationIdsOfAnySize) {
  const std::size_t process = add_process();
  add_queue(process, 1);
  std::uint32_t sequence = 0;
  for (const std::uint64_t operation :
       {std::uint64_t{0}, std::uint64_t{1} << 39, ~std::uint64_t{0}, make_operation(0xffffff, 5), make_operation(7, 1023)}) {
    builder_.add(process, 1, submission(operation, 1, ++sequence));
    builder_.add(process, 1, completion(operation, 1));
  }
  expect_total(check(), 5, 5, 0, 0, 0);
}

TEST(LossCauseTest, HaveNames) {
  EXPECT_STREQ(loss_cause_name(kNoChunk), "no_chunk");
  EXPECT_STREQ(loss_cause_name(kRingFull), "ring_full");
  EXPECT_STREQ(loss_cause_name(static_cast<std::uint32_t>(probe::LossCause::driver_refused_event)), "driver_refused_event");
  EXPECT_STREQ(loss_cause_name(static_cast<std::uint32_t>(probe::LossCause::driver_lost_times)), "driver_lost_times");
  EXPECT_STREQ(loss_cause_name(static_cast<std::uint32_t>(probe::LossCause::layer_off)), "layer_off");
  EXPECT_STREQ(loss_cause_name(static_cast<std::uint32_t>(probe::LossCause::fork)), "fork");
  EXPECT_STREQ(loss_cause_name(99), "unknown");
}

}  // namespace
}  // namespace xpu::trace
