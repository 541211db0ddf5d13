// Threads, chunk changes, running out of chunks, and fork.

#include "trace/writer.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trace/test_support/recorded_process.hpp"

namespace xpu::trace {
namespace {

using test_support::CopiedRecord;
using test_support::finish;
using test_support::launch;
using test_support::LiveFolder;
using test_support::RecordedProcess;
using test_support::SegmentView;

constexpr std::uint32_t kQueue = 7;

std::uint64_t count_of(const std::vector<LossRecord>& slots, std::uint32_t flags, std::uint32_t queue) {
  std::uint64_t count = 0;
  for (const LossRecord& slot : slots) {
    if (slot.header.flags == flags && slot.queue == queue) count += slot.count;
  }
  return count;
}

/// Launches until the first one is dropped, and returns how many were recorded.
std::uint32_t launch_until_dropped(const probe::Subscriber& table, std::uint32_t first_sequence = 1) {
  std::uint32_t sequence = first_sequence;
  while (launch(table, kQueue, sequence) != 0) ++sequence;
  return sequence - first_sequence;
}

TEST(WriterTest, AFullChunkIsHandedOverAndTheNextOneTaken) {
  const LiveFolder folder(3);
  const RecordedProcess process(folder);
  const std::uint32_t per_chunk = static_cast<std::uint32_t>((kChunkRecordsEnd - kChunkHeaderBytes) / sizeof(OperationSubmittedRecord));
  for (std::uint32_t sequence = 1; sequence <= per_chunk; ++sequence) ASSERT_NE(launch(*process.table, kQueue, sequence), 0u);
  const SegmentView segment = folder.segment();
  EXPECT_EQ(segment.chunks_in_state(ChunkState::full), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(segment.chunks_in_state(ChunkState::open), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(segment.chunk(0).sequence, 0u);
  EXPECT_EQ(segment.chunk(1).sequence, 1u);
  EXPECT_EQ(segment.chunk(0).writer, segment.chunk(1).writer);
  EXPECT_LE(segment.chunk(0).committed.load(), kChunkRecordsEnd - kChunkHeaderBytes);
  EXPECT_EQ(segment.records(RecordKind::operation_submitted).size(), per_chunk);
}

TEST(WriterTest, WithoutAFreeChunkTheNewestIsDroppedAndCountedPerQueue) {
  const LiveFolder folder(2);
  const RecordedProcess process(folder);
  const probe::Subscriber& table = *process.table;
  const std::uint32_t recorded = launch_until_dropped(table);
  EXPECT_GT(recorded, 1'000u);
  // The first dropped one was recorded + 1.
  for (std::uint32_t i = 2; i <= 10; ++i) EXPECT_EQ(launch(table, kQueue, recorded + i), 0u);
  for (std::uint32_t sequence = 1; sequence <= 3; ++sequence) EXPECT_EQ(launch(table, kQueue + 1, sequence), 0u);

  const SegmentView segment = folder.segment();
  EXPECT_EQ(segment.records(RecordKind::operation_submitted).size(), recorded);
  const std::vector<LossRecord> slots = segment.loss_slots();
  EXPECT_EQ(count_of(slots, 0, kQueue), 10u);
  EXPECT_EQ(count_of(slots, 0, kQueue + 1), 3u);
  const auto slot = std::find_if(slots.begin(), slots.end(), [](const LossRecord& loss) { return loss.queue == kQueue; });
  ASSERT_NE(slot, slots.end());
  EXPECT_EQ(slot->last_sequence, recorded + 10);
  EXPECT_EQ(slot->cause, static_cast<std::uint32_t>(probe::LossCause::no_chunk));
  EXPECT_EQ(operation_counter(slot->first_operation), recorded + 1);
  EXPECT_EQ(operation_counter(slot->last_operation), recorded + 10);
  EXPECT_GT(slot->time_ns, 0u);
}

TEST(WriterTest, ADroppedCompletionIsALossOfItsOwnKind) {
  const LiveFolder folder(1);
  const RecordedProcess process(folder);
  const probe::OperationId first = launch(*process.table, kQueue, 1);
  launch_until_dropped(*process.table, 2);
  // The room that is too small for a submission may still hold a completion or two.
  for (int i = 0; i < 5; ++i) finish(*process.table, first, kQueue);
  const SegmentView segment = folder.segment();
  const std::uint64_t written = segment.records(RecordKind::operation_completed).size();
  EXPECT_LE(written, 2u);
  EXPECT_EQ(count_of(segment.loss_slots(), kFlagCompletionLost, kQueue), 5 - written);
}

TEST(WriterTest, ALossThatFindsNoRoomIsAddedToTheCounts) {
  const LiveFolder folder(1);
  const RecordedProcess process(folder);
  const probe::OperationId first = launch(*process.table, kQueue, 1);
  launch_until_dropped(*process.table, 2);
  for (int i = 0; i < 3; ++i) finish(*process.table, first, kQueue);
  process.table->lost({.queue = kQueue, .cause = probe::LossCause::ring_full, .first = first, .last = first + 41, .count = 42});
  std::uint64_t ring_full = 0;
  for (const LossRecord& slot : folder.segment().loss_slots()) {
    if (slot.cause == static_cast<std::uint32_t>(probe::LossCause::ring_full)) {
      EXPECT_EQ(slot.header.flags, kFlagCompletionLost);
      ring_full += slot.count;
    }
  }
  EXPECT_EQ(ring_full, 42u);
}

TEST(WriterTest, DroppedRecordsThatAreNoOperationsStayOutOfTheBooks) {
  const LiveFolder folder(1);
  const RecordedProcess process(folder);
  launch(*process.table, kQueue, 1);
  launch_until_dropped(*process.table, 2);
  for (int i = 0; i < 4; ++i) process.table->wait({});
  probe::Operation refused;
  refused.queue = kQueue;
  const probe::OperationId id = process.table->begin(refused);
  EXPECT_FALSE(process.table->submitted(id, refused, {0, -5, 0}));
  const auto slots = folder.segment().loss_slots();
  EXPECT_EQ(count_of(slots, 0, kQueue), 1u);
  const std::uint64_t waits = folder.segment().records(RecordKind::synchronization).size();
  EXPECT_EQ(count_of(slots, kFlagNotOperation, 0), 4 - waits + 1);
}

TEST(WriterTest, MoreQueuesThanSlotsShareTheLastOne) {
  const LiveFolder folder(1);
  const RecordedProcess process(folder);
  launch_until_dropped(*process.table);
  std::uint64_t dropped = 1;
  for (std::uint32_t queue = 100; queue < 140; ++queue) {
    for (std::uint32_t sequence = 1; sequence <= queue % 3 + 1; ++sequence, ++dropped) launch(*process.table, queue, sequence);
  }
  const auto slots = folder.segment().loss_slots();
  EXPECT_EQ(slots.size(), kMaxLossSlots);
  std::uint64_t counted = 0;
  for (const LossRecord& slot : slots) counted += slot.count;
  EXPECT_EQ(counted, dropped);
  EXPECT_EQ(slots.back().queue, 0u);
  EXPECT_GT(slots.back().count, 1u);
  EXPECT_EQ(slots.back().header.flags, 0u);
}

TEST(WriterTest, AThreadThatNeverHadAChunkCountsInTheHeader) {
  const LiveFolder folder(1);
  const RecordedProcess process(folder);
  const probe::OperationId first = launch(*process.table, kQueue, 1);
  launch_until_dropped(*process.table, 2);
  std::thread([&] {
    EXPECT_EQ(launch(*process.table, kQueue + 1, 1), 0u);
    finish(*process.table, first, kQueue);
  }).join();
  EXPECT_EQ(folder.segment().header().lost_before_any_chunk.load(), 2u);
}

TEST(WriterTest, RecordingGoesOnAsSoonAsAChunkIsFree) {
  const LiveFolder folder(2);
  const RecordedProcess process(folder);
  const std::uint32_t recorded = launch_until_dropped(*process.table);
  const SegmentView segment = folder.segment();
  std::vector<CopiedRecord> drained;
  ASSERT_EQ(segment.recycle(&drained), 1u);
  // A writer that found nothing looks again only after a fraction of a millisecond, so the number of further drops is not known.
  std::uint32_t sequence = recorded + 2, dropped = 1;
  while (launch(*process.table, kQueue, sequence) == 0) ++sequence, ++dropped;
  EXPECT_EQ(count_of(segment.loss_slots(), 0, kQueue), dropped);
  EXPECT_EQ(segment.chunks_in_state(ChunkState::full).size(), 1u) << "the chunk that counted the losses goes to the recorder too";
}

TEST(WriterTest, DefinitionsThatFoundNoRoomAreWrittenWithTheNextChunk) {
  const LiveFolder folder(1);
  const RecordedProcess process(folder);
  const probe::Subscriber& table = *process.table;
  const std::uint32_t recorded = launch_until_dropped(table);
  for (int i = 0; i < 10; ++i) table.call_begin(1, 1);  // the last gap
  const probe::Id text = probe::intern("interned while no chunk was free");
  probe::KernelDescription kernel;
  kernel.name = "made while no chunk was free";
  table.object(probe::ObjectKind::kernel, 300, probe::ObjectEvent::created, &kernel);
  table.object(probe::ObjectKind::kernel, 301, probe::ObjectEvent::created, &kernel);
  table.object(probe::ObjectKind::kernel, 301, probe::ObjectEvent::destroyed, nullptr);

  SegmentView segment = folder.segment();
  ASSERT_TRUE(segment.records(RecordKind::kernel).empty());
  segment.grow(3);
  std::uint32_t sequence = recorded + 2;
  while (launch(table, kQueue, sequence) == 0) ++sequence;

  std::set<std::uint32_t> kernels, ended, texts;
  bool launched = false;
  std::vector<CopiedRecord> after;
  for (const CopiedRecord& record : segment.records()) {
    switch (record.kind()) {
      case RecordKind::kernel: kernels.insert(record.as<KernelRecord>().what); break;
      case RecordKind::object_end: ended.insert(record.as<ObjectEndRecord>().id); break;
      case RecordKind::string: texts.insert(record.as<StringRecord>().id); break;
      case RecordKind::operation_submitted:
        if (record.as<OperationSubmittedRecord>().queue_sequence == sequence) {
          launched = true;
          EXPECT_TRUE(kernels.contains(300)) << "definitions come before the record that could be written again";
        }
        break;
      default: break;
    }
  }
  EXPECT_TRUE(launched);
  EXPECT_EQ(kernels, (std::set<std::uint32_t>{300, 301}));
  EXPECT_EQ(ended, (std::set<std::uint32_t>{301}));
  EXPECT_TRUE(texts.contains(text));
}

TEST(WriterTest, AThreadGivesItsChunkBackWhenItEnds) {
  const LiveFolder folder(4);
  const RecordedProcess process(folder);
  std::thread([&] {
    pthread_setname_np(pthread_self(), "short-lived");
    launch(*process.table, kQueue, 1);
    EXPECT_EQ(folder.segment().chunks_in_state(ChunkState::open).size(), 1u);
  }).join();
  EXPECT_EQ(folder.segment().chunks_in_state(ChunkState::open).size(), 0u);
  EXPECT_EQ(folder.segment().chunks_in_state(ChunkState::full).size(), 1u);
  const auto threads = folder.segment().records(RecordKind::thread);
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(probe::text_of(threads[0].as<ThreadRecord>().name), "short-lived");
}

TEST(WriterTest, ARecordFromALaterThreadDestructorIsKept) {
  const LiveFolder folder(4);
  const RecordedProcess process(folder);
  static const probe::Subscriber* table = nullptr;
  table = process.table;
  struct PublishesWhenDestroyed {
    ~PublishesWhenDestroyed() { launch(*table, kQueue, 2); }
  };
  // Keys are destroyed in the order of creation, thread_local objects before keys; the key made here comes after the writer's.
  static pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, [](void*) { launch(*table, kQueue, 3); }), 0);
  std::thread([&] {
    static thread_local PublishesWhenDestroyed late;
    (void)&late;
    pthread_setspecific(key, &key);
    launch(*table, kQueue, 1);
  }).join();
  pthread_key_delete(key);
  EXPECT_EQ(folder.segment().records(RecordKind::operation_submitted).size(), 3u);
}

TEST(WriterTest, ManyThreadsLoseNothingWhileARecorderRecycles) {
  constexpr std::uint32_t kThreads = 6, kLaunches = 20'000;
  const LiveFolder folder(64);
  std::vector<CopiedRecord> drained;
  {
    const RecordedProcess process(folder);
    probe::QueueDescription queue;
    process.table->object(probe::ObjectKind::queue, 1, probe::ObjectEvent::created, &queue);
    std::vector<std::thread> threads;
    std::atomic<std::uint32_t> running{kThreads};
    for (std::uint32_t thread = 1; thread <= kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::uint32_t sequence = 1; sequence <= kLaunches; ++sequence) {
          if (const probe::OperationId id = launch(*process.table, thread, sequence)) finish(*process.table, id, thread);
          if (sequence % 1'000 == 0) probe::intern("text " + std::to_string(sequence));
        }
        running.fetch_sub(1);
      });
    }
    const SegmentView segment = folder.segment();
    while (running != 0) segment.recycle(&drained);
    for (std::thread& thread : threads) thread.join();
    segment.recycle(&drained);
    for (CopiedRecord& record : segment.records()) drained.push_back(std::move(record));
    EXPECT_EQ(segment.header().writer_count.load(), kThreads + 1);
    std::uint64_t lost = segment.header().lost_before_any_chunk.load();
    for (const LossRecord& slot : segment.loss_slots()) lost += slot.count;
    EXPECT_EQ(lost, 0u);
  }
  std::map<std::uint32_t, std::uint32_t> next;
  std::set<std::uint64_t> submitted, completed, threads;
  for (const CopiedRecord& record : drained) {
    if (record.kind() == RecordKind::operation_submitted) submitted.insert(record.as<OperationSubmittedRecord>().operation);
    if (record.kind() == RecordKind::operation_completed) completed.insert(record.as<OperationCompletedRecord>().operation);
    if (record.kind() == RecordKind::thread) threads.insert(record.as<ThreadRecord>().thread);
  }
  EXPECT_EQ(submitted.size(), std::size_t{kThreads} * kLaunches);
  EXPECT_EQ(completed, submitted);
  EXPECT_EQ(threads.size(), kThreads + 1);
}

TEST(WriterTest, AnInterruptingSignalHandlerNeverCorruptsARecord) {
  const LiveFolder folder(256);
  const RecordedProcess process(folder);
  static const probe::Subscriber* table = nullptr;
  static std::atomic<std::uint32_t> handled;
  table = process.table;
  handled = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { launch(*table, 2, ++handled); };
  action.sa_flags = SA_RESTART;
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::uint32_t launched = 0;
  launch(*table, kQueue, ++launched);  // the first record of a thread claims its place, with locks that no handler may take
  const pthread_t self = pthread_self();
  std::atomic<bool> stop{false};
  std::thread disturber([&] {
    while (!stop) pthread_kill(self, SIGUSR1);
  });
  while (launched < 100'000) launch(*table, kQueue, ++launched);
  stop = true;
  disturber.join();
  sigaction(SIGUSR1, &before, nullptr);

  // Walking the chunks asserts that each record is whole; what a handler could not write is in the header's count.
  const SegmentView segment = folder.segment();
  std::uint64_t own = 0, handlers = 0;
  std::set<std::uint64_t> operations;
  for (const CopiedRecord& record : segment.records(RecordKind::operation_submitted)) {
    ++(record.as<OperationSubmittedRecord>().queue == kQueue ? own : handlers);
    EXPECT_TRUE(operations.insert(record.as<OperationSubmittedRecord>().operation).second);
  }
  EXPECT_EQ(own, launched);
  EXPECT_EQ(handlers + segment.header().lost_before_any_chunk.load(), handled.load());
  EXPECT_GT(handled.load(), 0u);
}

// ---- fork

int wait_for(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(WriterForkTest, AChildHasASegmentOfItsOwnWithEverythingThatLives) {
  const LiveFolder folder(4, 2);
  const RecordedProcess process(folder);
  const probe::Subscriber& table = *process.table;
  const probe::Id text = probe::intern("interned by the parent");
  probe::QueueDescription queue;
  queue.native = 0x1234;
  table.object(probe::ObjectKind::queue, kQueue, probe::ObjectEvent::created, &queue);
  for (std::uint32_t sequence = 1; sequence <= 5; ++sequence) launch(table, kQueue, sequence);
  const probe::OperationId pending = launch(table, kQueue, 6);

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    finish(table, pending, kQueue);  // the parent's to complete
    table.lost({.queue = kQueue, .cause = probe::LossCause::fork, .first = pending, .last = pending, .count = 1});
    for (std::uint32_t sequence = 7; sequence <= 8; ++sequence) {
      if (launch(table, kQueue, sequence) == 0) _exit(1);
    }
    _exit(0);
  }
  EXPECT_EQ(wait_for(child), 0);
  finish(table, pending, kQueue);

  EXPECT_EQ(folder.segment_of(static_cast<std::uint64_t>(getpid())).records(RecordKind::operation_submitted).size(), 6u);
  EXPECT_EQ(folder.segment_of(static_cast<std::uint64_t>(getpid())).records(RecordKind::operation_completed).size(), 1u);
  const SegmentView segment = folder.segment_of(static_cast<std::uint64_t>(child));
  EXPECT_EQ(segment.records(RecordKind::operation_submitted).size(), 2u);
  EXPECT_TRUE(segment.records(RecordKind::operation_completed).empty());
  EXPECT_TRUE(segment.records(RecordKind::loss).empty());
  ASSERT_EQ(segment.records(RecordKind::process).size(), 1u);
  EXPECT_EQ(segment.records(RecordKind::process)[0].as<ProcessRecord>().parent, static_cast<std::uint32_t>(getpid()));
  const auto queues = segment.records(RecordKind::queue);
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(queues[0].as<QueueRecord>().native, 0x1234u);
  EXPECT_EQ(queues[0].as<QueueRecord>().published_before, 6u) << "the parent's commands are not the child's";
  const auto strings = segment.records(RecordKind::string);
  EXPECT_TRUE(
      std::any_of(strings.begin(), strings.end(), [&](const CopiedRecord& record) { return record.as<StringRecord>().id == text; }));
}

TEST(WriterForkTest, AChildThatRecordsNothingClaimsNothing) {
  const LiveFolder folder(4, 2);
  const RecordedProcess process(folder);
  launch(*process.table, kQueue, 1);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(folder.spare_count(), 1u);
}

TEST(WriterForkTest, OperationIdsOfParentAndChildNeverMeet) {
  const LiveFolder folder(4, 2);
  const RecordedProcess process(folder);
  const std::uint32_t parent_writer = operation_writer(launch(*process.table, kQueue, 1));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::uint32_t writer = operation_writer(launch(*process.table, kQueue, 1));
    _exit(write(ends[1], &writer, sizeof writer) == sizeof writer ? 0 : 1);
  }
  EXPECT_EQ(wait_for(child), 0);
  std::uint32_t child_writer = 0;
  ASSERT_EQ(read(ends[0], &child_writer, sizeof child_writer), static_cast<ssize_t>(sizeof child_writer));
  close(ends[0]);
  close(ends[1]);
  EXPECT_GT(child_writer, parent_writer);
}

TEST(WriterForkTest, ForkingWhileOtherThreadsRecordNeitherHangsNorTearsTheParent) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "gcc 12's AddressSanitizer does not take its allocator's locks before a fork: the child waits in malloc for ever";
#endif
  const LiveFolder folder(32, 12);
  const RecordedProcess process(folder);
  const probe::Subscriber& table = *process.table;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint32_t queue = 1; queue <= 3; ++queue) {
    threads.emplace_back([&, queue] {
      for (std::uint32_t sequence = 1; !stop; ++sequence) {
        if (const probe::OperationId id = launch(table, queue, sequence)) finish(table, id, queue);
        if (sequence % 64 == 0) {
          probe::KernelDescription kernel;
          const std::string name = "kernel " + std::to_string(sequence % 1'000);
          kernel.name = name;
          table.object(probe::ObjectKind::kernel, sequence, probe::ObjectEvent::created, &kernel);
          table.object(probe::ObjectKind::kernel, sequence, probe::ObjectEvent::destroyed, nullptr);
        }
        if (queue == 1 && sequence % 512 == 0) folder.segment_of(static_cast<std::uint64_t>(getpid())).recycle();
      }
    });
  }
  while (folder.claimed_paths().empty()) std::this_thread::yield();
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a lock that stayed locked must not hang the test
      for (std::uint32_t sequence = 1; sequence <= 100; ++sequence) {
        if (launch(table, 50, sequence) == 0) _exit(1);
      }
      _exit(0);
    }
    EXPECT_EQ(wait_for(child), 0) << "round " << round;
    EXPECT_EQ(folder.segment_of(static_cast<std::uint64_t>(child)).records(RecordKind::operation_submitted).size(), 100u);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  // The children's queue is nowhere in the parent.
  for (const CopiedRecord& record : folder.segment_of(static_cast<std::uint64_t>(getpid())).records(RecordKind::operation_submitted)) {
    ASSERT_NE(record.as<OperationSubmittedRecord>().queue, 50u);
  }
}

}  // namespace
}  // namespace xpu::trace
