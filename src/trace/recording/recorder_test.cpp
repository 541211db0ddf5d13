#include "xpu/trace/recording/recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "trace/test_support/recorder_fixture.hpp"

namespace xpu::trace {
namespace {

using namespace test_support;  // NOLINT(google-build-using-namespace): a fixture's own vocabulary

TEST_F(RecorderTest, FullChunksAreCompactedAndHandedBackWhileTheProgramRuns) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  const auto writer = program.writer(1);
  std::uint64_t written = 0;
  // Twice as much as fits without a recorder.
  for (int round = 0; round < 20; ++round) {
    written += launch_many(*writer, 15'000, written + 1);
    poll_all(*recorder);
  }
  EXPECT_EQ(written, 300'000u);
  EXPECT_GT(recorder->status().operations, 290'000u);
  EXPECT_FALSE(recorder->status().storage_failed);
  const std::string path = finish(*recorder);
  EXPECT_EQ(path, options_.path);
  EXPECT_FALSE(fs::exists(live()));
  const Seen seen = see(path);
  EXPECT_EQ(seen.submitted.size(), written);
  EXPECT_EQ(seen.completed.size(), written);
  EXPECT_TRUE(seen.each_once());
  EXPECT_LE(fs::file_size(path), 12 * written);
}

TEST_F(RecorderTest, ManyThreadsLoseNothingAndNothingTwice) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  constexpr std::uint64_t kEach = 60'000;
  std::atomic<int> running{4};
  std::vector<std::thread> threads;
  for (std::uint32_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      const auto writer = program.writer(id);
      for (std::uint64_t number = 1; number <= kEach;) {
        if (launch(*writer, number)) {
          ++number;
        } else {
          std::this_thread::yield();
        }
      }
      --running;
    });
  }
  while (running != 0) recorder->poll();
  for (std::thread& thread : threads) thread.join();
  const Seen seen = see(finish(*recorder));
  // A launch that found room for its first record only was written again.
  EXPECT_EQ(seen.submitted.size(), 4 * kEach);
  EXPECT_EQ(seen.completed.size(), 4 * kEach);
  EXPECT_TRUE(std::all_of(seen.completed.begin(), seen.completed.end(), [](const auto& entry) { return entry.second == 1; }));
}

TEST_F(RecorderTest, ReadyChunksGrowWithTheRateUpToAQuarterOfTheLimit) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  recorder->poll();
  // Whoever takes all that is ready gets more, until there may be no more.
  std::uint32_t sequence = 0;
  const auto take_all = [&] {
    const std::uint32_t before = sequence;
    while (program.segment().take_chunk(1, sequence, 0) != nullptr) ++sequence;
    return sequence - before;
  };
  EXPECT_EQ(take_all(), kFirstChunks);
  while (sequence < kMaxLive / 4 / kChunkBytes && !::testing::Test::HasFailure()) {
    for (int round = 0; round < 1'000 && program.segment().header().chunk_count.load() == sequence; ++round) {
      ::usleep(1'000);
      recorder->poll();
    }
    const std::uint32_t published = program.segment().header().chunk_count.load() - sequence;
    ASSERT_GT(published, 0u);
    EXPECT_EQ(take_all(), published) << "every published chunk is ready";
  }
  EXPECT_EQ(sequence, kMaxLive / 4 / kChunkBytes);
  EXPECT_EQ(fs::file_size(claimed_in(live()).front()), segment_bytes(sequence));
  for (int round = 0; round < 20; ++round) recorder->poll();
  EXPECT_EQ(take_all(), 0u);
}

TEST_F(RecorderTest, AllSegmentsTogetherKeepTheLimitExceptForTheFewestChunksOfEach) {
  options_.max_live_bytes = std::uint64_t{16} << 20;
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  std::vector<Program> programs;
  for (int process = 0; process < 12; ++process) {
    programs.emplace_back(live());
    recorder->poll();
  }
  std::uint64_t bytes = 0, beyond = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(live())) {
    if (entry.path().extension() != ".seg") continue;
    if (bytes + segment_bytes(4) > options_.max_live_bytes) ++beyond;
    bytes += entry.file_size();
  }
  EXPECT_LE(bytes, options_.max_live_bytes + beyond * segment_bytes(4) + segment_bytes(4) * 14);
  for (const Program& program : programs) {
    EXPECT_GE(program.segment().header().chunk_count.load(), 4u);
    EXPECT_LE(program.segment().header().chunk_count.load(), options_.max_live_bytes / 4 / kChunkBytes);
  }
}

TEST_F(RecorderTest, AKilledProcessIsDrainedAtOnceAndItsSegmentRemoved) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const pid_t child = run_and_wait([&] {
    const Program program(live());
    const auto writer = program.writer(1).release();
    launch_many(*writer, 3'000);
    program.segment().header().lost_before_any_chunk.store(5);
    writer->count_filtered();
    program.segment().header().filtered.store(7);
  });
  recorder->poll();
  EXPECT_EQ(recorder->status().processes_alive, 1u);
  ASSERT_EQ(claimed_in(live(), child).size(), 1u);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // a zombie has ended too
  recorder->poll();
  EXPECT_TRUE(claimed_in(live(), child).empty());
  EXPECT_EQ(recorder->status().processes_alive, 0u);
  EXPECT_EQ(recorder->status().operations, 3'000u);
  ::waitpid(child, nullptr, 0);

  for (const std::string& path : {live(), finish(*recorder)}) {
    if (!fs::exists(path)) continue;
    const Result<Recording> recording = Recording::open(path);
    ASSERT_TRUE(recording);
    ASSERT_EQ(recording->processes().size(), 1u);
    const ProcessInfo& process = recording->processes()[0];
    EXPECT_EQ(process.pid, static_cast<std::uint64_t>(child));
    EXPECT_EQ(process.state, SegmentState::attached) << "it did not detach in good order";
    EXPECT_EQ(process.domain, ClockDomain::monotonic);
    EXPECT_EQ(process.lost_before_any_chunk, 5u);
    EXPECT_EQ(process.filtered, 8u);
    EXPECT_EQ(process.writer_count, 1u);
    EXPECT_EQ(see(*recording).submitted.size(), 3'000u);
  }
}

TEST_F(RecorderTest, ManyProcessesThatComeAndGoAreAllInTheFile) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  constexpr int kProcesses = 20;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      const Program program(live());
      const auto writer = program.writer(1);
      launch_many(*writer, 100);
      if (process % 2 == 0) program.segment().close();
      ::_exit(0);
    }
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) recorder->poll();
    EXPECT_EQ(status, 0);
  }
  const Result<Recording> recording = Recording::open(finish(*recorder));
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->processes().size(), static_cast<std::size_t>(kProcesses));
  int closed = 0;
  for (const ProcessInfo& process : recording->processes()) closed += process.state == SegmentState::closed ? 1 : 0;
  EXPECT_EQ(closed, kProcesses / 2);
  EXPECT_EQ(see(*recording).submitted.size(), 100u * kProcesses);
}

TEST_F(RecorderTest, AClaimantThatDiesBeforeItWritesAnythingLeavesNoTrace) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const pid_t child = run_and_wait([] {});
  fs::rename(spares_in(live()).front(), live() + "/" + std::to_string(child) + "-123.seg");
  recorder->poll();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  recorder->poll();
  EXPECT_TRUE(claimed_in(live(), child).empty());
  const Result<Recording> recording = Recording::open(finish(*recorder));
  ASSERT_TRUE(recording);
  EXPECT_TRUE(recording->processes().empty());
}

TEST_F(RecorderTest, AtTheEndLivingProcessesAreSwitchedOffAndTheirOpenChunksTaken) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  const auto writer = program.writer(1);
  launch_many(*writer, 10);
  const Result<Recording> recording = Recording::open(finish(*recorder));
  EXPECT_EQ(program.segment().header().state.load(), static_cast<std::uint32_t>(SegmentState::off));
  EXPECT_EQ(program.segment().header().off_reason.load(), static_cast<std::uint32_t>(OffReason::recording_finished));
  EXPECT_GE(launch_many(*writer, 10), 0u) << "a late writer is no harm";
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->processes().size(), 1u);
  EXPECT_EQ(recording->processes()[0].state, SegmentState::off);
  EXPECT_EQ(see(*recording).submitted.size(), 10u);
  EXPECT_TRUE(recording->finished());
  EXPECT_TRUE(recording->manifest().end.known);
  EXPECT_EQ(recording->manifest().end.exit_code, 3);
}

TEST_F(RecorderTest, LossesAndFilteredOperationsGoWithTheirChunks) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  auto writer = program.writer(1);
  const std::uint64_t written = launch_many(*writer, 1'000'000);
  EXPECT_LT(written, 150'000u) << "without a recorder at work only the first chunks are there";
  Dropped dropped;
  dropped.queue = 1;
  dropped.count = 4;
  writer->count_dropped(dropped);
  dropped.queue = 2;
  writer->count_dropped(dropped);
  for (int operation = 0; operation < 9; ++operation) writer->count_filtered();
  writer.reset();
  poll_all(*recorder);
  const Result<Recording> recording = Recording::open(finish(*recorder));
  ASSERT_TRUE(recording);
  const Seen seen = see(*recording);
  EXPECT_EQ(seen.lost, 8u);
  EXPECT_EQ(seen.completed.size(), written);
  EXPECT_EQ(recording->processes()[0].filtered, 9u);
}

TEST_F(RecorderTest, KindsAndRecordsThatThisVersionDoesNotKnowAreKept) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  const auto writer = program.writer(1);
  std::vector<std::byte> record(72, std::byte{7});
  for (const std::uint16_t kind : {std::uint16_t{60}, std::uint16_t{5'000}, static_cast<std::uint16_t>(RecordKind::operation_submitted)}) {
    const RecordHeader header{kind, 72, 0};
    std::memcpy(record.data(), &header, sizeof header);
    for (int count = 0; count < 100; ++count) ASSERT_TRUE(writer->append_records(record));
  }
  const Result<Recording> recording = Recording::open(finish(*recorder));
  ASSERT_TRUE(recording);
  std::map<std::uint16_t, int> whole;
  EXPECT_TRUE(recording->for_each_batch([&](std::size_t, std::span<const std::byte> records) {
    for_each_record(records, [&](const RecordHeader& header) {
      const std::vector<std::byte> expected(64, std::byte{7});
      if (header.size == 72 && std::memcmp(&header + 1, expected.data(), 64) == 0) ++whole[header.kind];
    });
  }));
  EXPECT_EQ(whole, (std::map<std::uint16_t, int>{{60, 100}, {5'000, 100}, {16, 100}}));
}

TEST_F(RecorderTest, CommittedBytesThatAreNoRecordAreCountedAndTheRestIsKept) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  const auto writer = program.writer(1);
  launch_many(*writer, 5);
  std::byte* place = writer->reserve(64);
  std::memset(place, 0x55, 64);
  writer->commit(64);
  const Result<Recording> recording = Recording::open(finish(*recorder));
  ASSERT_TRUE(recording);
  EXPECT_NE(recording->damage().find("64 bytes"), std::string::npos) << recording->damage();
  EXPECT_EQ(see(*recording).completed.size(), 5u);
}

TEST_F(RecorderTest, PausingReachesEverySegmentAndThoseToCome) {
  options_.start_paused = true;
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program first(live());
  EXPECT_TRUE(first.segment().is_paused());
  recorder->poll();
  recorder->set_paused(false);
  EXPECT_FALSE(first.segment().is_paused());
  const Program second(live());
  EXPECT_FALSE(second.segment().is_paused());
  recorder->set_paused(true);
  recorder->poll();
  EXPECT_TRUE(second.segment().is_paused());
}

}  // namespace
}  // namespace xpu::trace
