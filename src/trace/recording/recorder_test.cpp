#include "xpu/trace/recording/recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "trace/recording/manifest.hpp"
#include "trace/segment.hpp"
#include "trace/writer.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxLive = std::uint64_t{1} << 28;

mode_t mode_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& contents) { std::ofstream(path, std::ios::binary) << contents; }

std::vector<fs::path> files_like(const std::string& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".seg")) found.push_back(entry.path());
  }
  return found;
}
std::vector<fs::path> spares_in(const std::string& folder) { return files_like(folder, "spare-"); }
std::vector<fs::path> claimed_in(const std::string& folder, pid_t pid = ::getpid()) {
  return files_like(folder, std::to_string(pid) + "-");
}

// The writing side: this process (or a child) with a segment of its own and writers that follow the layout's rules.
class Program {
 public:
  explicit Program(const std::string& live_path) {
    Result<Segment*> claimed = Segment::claim(live_path, kMaxLive, 1'000);
    EXPECT_TRUE(claimed) << claimed.error().message;
    segment_ = claimed ? *claimed : nullptr;
  }
  Segment& segment() const { return *segment_; }
  std::unique_ptr<Writer> writer(std::uint32_t id) const {
    segment_->header().writer_count.fetch_add(1);
    return std::make_unique<Writer>(*segment_, id, 0, [](Writer&) {});
  }

 private:
  Segment* segment_ = nullptr;  // never freed, as in a program
};

// One launch: both of its records, or nothing.
bool launch(Writer& writer, std::uint64_t number) {
  OperationSubmittedRecord submitted{};
  submitted.header = {static_cast<std::uint16_t>(RecordKind::operation_submitted), sizeof submitted, 1u << kCommandShift};
  submitted.operation = make_operation(writer.id(), number);
  submitted.enter_ns = now_ns();
  submitted.exit_ns = submitted.enter_ns + 300 + number % 50;
  submitted.queue = writer.id();
  submitted.queue_sequence = static_cast<std::uint32_t>(number);
  submitted.what = 1;
  submitted.thread = writer.id();
  OperationCompletedRecord completed{};
  completed.header = {static_cast<std::uint16_t>(RecordKind::operation_completed), sizeof completed, 0};
  completed.operation = submitted.operation;
  completed.queue = writer.id();
  completed.queued = submitted.enter_ns + 100;
  completed.submit = completed.queued + 200;
  completed.start = completed.submit + 150 + number % 30;
  completed.end = completed.start + 900 + number % 70;
  return writer.append(submitted) && writer.append(completed);
}

// Launches first, first + 1, …; returns how many found room.
std::uint64_t launch_many(Writer& writer, std::uint64_t count, std::uint64_t first = 1) {
  std::uint64_t written = 0;
  while (written < count && launch(writer, first + written)) ++written;
  return written;
}

// What a recording holds: how often each operation was submitted and completed, and how many records of each kind.
struct Seen {
  std::map<std::pair<std::size_t, std::uint64_t>, int> submitted, completed;
  std::map<std::uint16_t, std::uint64_t> kinds;
  std::uint64_t lost = 0;

  bool each_once() const {
    const auto once = [](const auto& entry) { return entry.second == 1; };
    return std::all_of(submitted.begin(), submitted.end(), once) && std::all_of(completed.begin(), completed.end(), once);
  }
};

Seen see(const Recording& recording) {
  Seen seen;
  EXPECT_TRUE(recording.for_each_batch([&](std::size_t process, std::span<const std::byte> records) {
    for_each_record(records, [&](const RecordHeader& header) {
      ++seen.kinds[header.kind];
      switch (static_cast<RecordKind>(header.kind)) {
        case RecordKind::operation_submitted:
          ++seen.submitted[{process, reinterpret_cast<const OperationSubmittedRecord&>(header).operation}];
          break;
        case RecordKind::operation_completed:
          ++seen.completed[{process, reinterpret_cast<const OperationCompletedRecord&>(header).operation}];
          break;
        case RecordKind::loss: seen.lost += reinterpret_cast<const LossRecord&>(header).count; break;
        default: break;
      }
    });
  }));
  return seen;
}

Seen see(const std::string& path) {
  const Result<Recording> recording = Recording::open(path);
  EXPECT_TRUE(recording) << recording.error().message;
  if (!recording) return {};
  EXPECT_EQ(recording->damage(), "");
  return see(*recording);
}

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    std::string pattern = (fs::temp_directory_path() / "xpu_recorder_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    options_.path = folder_ + "/a.xpu";
    options_.argv = {"./program", "--fast"};
    options_.max_live_bytes = kMaxLive;
  }
  ~RecorderTest() override { fs::remove_all(folder_); }

  std::string live() const { return options_.path + ".live"; }
  std::unique_ptr<Recorder> create() const {
    Result<std::unique_ptr<Recorder>> recorder = Recorder::create(options_);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return recorder ? *std::move(recorder) : nullptr;
  }
  void expect_refused(ErrorCode code) const {
    const Result<std::unique_ptr<Recorder>> recorder = Recorder::create(options_);
    ASSERT_FALSE(recorder);
    EXPECT_EQ(recorder.error().code, code) << recorder.error().message;
    EXPECT_FALSE(recorder.error().message.empty());
  }
  // Until nothing is left to do, or a second has passed.
  static void poll_all(Recorder& recorder) {
    for (int round = 0; round < 1'000 && recorder.poll(); ++round) ::usleep(1'000);
  }
  static std::string finish(Recorder& recorder) {
    const Result<std::string> path = recorder.finish({true, 3, 0, 1'000, 20});
    EXPECT_TRUE(path) << path.error().message;
    return path ? *path : "";
  }

  std::string folder_;
  RecorderOptions options_;
};

TEST_F(RecorderTest, MakesAPrivateFolderWhateverTheUmask) {
  for (const mode_t mask : {0000, 0777}) {
    const mode_t before = ::umask(mask);
    std::unique_ptr<Recorder> recorder = create();
    ::umask(before);
    ASSERT_NE(recorder, nullptr);
    EXPECT_EQ(recorder->live_path(), live());
    EXPECT_EQ(mode_of(live()), 0700u);
    for (const fs::directory_entry& entry : fs::directory_iterator(live())) EXPECT_EQ(mode_of(entry.path()), 0600u) << entry.path();
    EXPECT_EQ(mode_of(finish(*recorder)), 0600u);
    fs::remove(options_.path);
  }
}

TEST_F(RecorderTest, WritesWhatTheProgramAndAReaderNeedBeforeTheProgramStarts) {
  options_.mode = RecordMode::api;
  options_.kernels = "^gemm";
  options_.start_paused = true;
  ::setenv("XPU_RECORDER_TEST", "\xff", 1);
  const std::unique_ptr<Recorder> recorder = create();
  ::unsetenv("XPU_RECORDER_TEST");
  ASSERT_NE(recorder, nullptr);

  OptionsBlock block{};
  const std::string bytes = contents_of(live() + "/options");
  ASSERT_EQ(bytes.size(), sizeof block);
  std::memcpy(&block, bytes.data(), sizeof block);
  EXPECT_EQ(block.magic, kOptionsMagic);
  EXPECT_EQ(block.mode, static_cast<std::uint32_t>(RecordMode::api));
  EXPECT_STREQ(block.kernels, "^gemm");
  EXPECT_EQ(block.start_paused, 1u);
  EXPECT_EQ(block.max_live_bytes, kMaxLive);
  EXPECT_EQ(block.recorder_pid, static_cast<std::uint64_t>(::getpid()));

  const Result<Manifest> manifest = manifest_from_json(contents_of(live() + "/manifest.json"));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->argv, options_.argv);
  EXPECT_EQ(manifest->program, "./program");
  EXPECT_FALSE(manifest->end.known);
  EXPECT_GT(manifest->start_realtime_ns, 0u);
  const std::pair<std::string, std::string> variable{"XPU_RECORDER_TEST", "\xff"};
  EXPECT_NE(std::find(manifest->environment.begin(), manifest->environment.end(), variable), manifest->environment.end());
}

TEST_F(RecorderTest, SparesAreReallyAllocatedAndAllTheirChunksReady) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const std::vector<fs::path> spares = spares_in(live());
  ASSERT_EQ(spares.size(), 2u);
  for (const fs::path& spare : spares) {
    struct stat status{};
    ASSERT_EQ(::stat(spare.c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), segment_bytes(kFirstChunks));
    EXPECT_GE(status.st_blocks * 512, status.st_size);
  }
  const Program program(live());
  EXPECT_EQ(program.segment().header().chunk_count.load(), kFirstChunks);
  for (std::uint32_t chunk = 0; chunk < kFirstChunks; ++chunk) EXPECT_NE(program.segment().take_chunk(1, chunk, 0), nullptr);
  EXPECT_EQ(program.segment().take_chunk(1, kFirstChunks, 0), nullptr);
}

TEST_F(RecorderTest, BadRequestsAreRefusedWithASentenceAndLeaveNothingBehind) {
  const RecorderOptions good = options_;
  for (const std::string& path : {std::string("a.xpu"), folder_ + "/a", folder_ + "/.xpu", std::string(), folder_ + "/"}) {
    options_.path = path;
    expect_refused(ErrorCode::invalid_argument);
  }
  options_ = good;
  options_.kernels = "(";
  expect_refused(ErrorCode::invalid_argument);
  options_.kernels = std::string(1'024, 'a');
  expect_refused(ErrorCode::invalid_argument);
  options_ = good;
  options_.path = folder_ + "/missing/a.xpu";
  expect_refused(ErrorCode::unavailable);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RecorderTest, AnExistingRecordingIsReplacedOnlyWhenAsked) {
  write_file(options_.path, "old");
  expect_refused(ErrorCode::failed_precondition);
  EXPECT_EQ(contents_of(options_.path), "old");
  EXPECT_FALSE(fs::exists(live()));

  options_.overwrite = true;
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  EXPECT_FALSE(fs::exists(options_.path)) << "a reader must not take the old one for the new one";
  EXPECT_EQ(finish(*recorder), options_.path);
  EXPECT_TRUE(Recording::open(options_.path));
}

TEST_F(RecorderTest, LinksAreNeverFollowed) {
  const std::string target = folder_ + "/target";
  write_file(target, "precious");
  fs::create_symlink(target, options_.path);
  expect_refused(ErrorCode::failed_precondition);
  options_.overwrite = true;
  {
    const std::unique_ptr<Recorder> recorder = create();
    ASSERT_NE(recorder, nullptr);
    finish(*recorder);
  }
  EXPECT_EQ(contents_of(target), "precious");
  EXPECT_FALSE(fs::is_symlink(options_.path));

  const std::string elsewhere = folder_ + "/elsewhere";
  fs::create_directory(elsewhere);
  write_file(elsewhere + "/manifest.json", "precious");
  fs::create_directory_symlink(elsewhere, live());
  expect_refused(ErrorCode::failed_precondition);
  EXPECT_EQ(contents_of(elsewhere + "/manifest.json"), "precious");
}

TEST_F(RecorderTest, AFolderInTheWayIsNeverReplaced) {
  options_.overwrite = true;
  fs::create_directory(options_.path);
  expect_refused(ErrorCode::failed_precondition);
}

TEST_F(RecorderTest, AnUnfinishedRecordingIsReplacedOnlyWhenAskedAndNobodyWritesIt) {
  std::unique_ptr<Recorder> first = create();
  ASSERT_NE(first, nullptr);
  expect_refused(ErrorCode::failed_precondition);
  options_.overwrite = true;
  expect_refused(ErrorCode::failed_precondition);
  const Program program(live());
  first.reset();

  options_.overwrite = false;
  expect_refused(ErrorCode::failed_precondition);
  options_.overwrite = true;
  const std::unique_ptr<Recorder> second = create();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(spares_in(live()).size(), 2u);
  EXPECT_TRUE(claimed_in(live()).empty()) << "a segment of the old recording";
}

TEST_F(RecorderTest, AClaimedSpareIsReplaced) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program first(live()), second(live());
  EXPECT_TRUE(spares_in(live()).empty());
  EXPECT_TRUE(recorder->poll());
  EXPECT_EQ(spares_in(live()).size(), 2u);
  EXPECT_EQ(recorder->status().processes_attached, 2u);
  EXPECT_EQ(recorder->status().processes_alive, 2u);
  first.segment().close();
  EXPECT_EQ(recorder->status().processes_alive, 1u);
}

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

// Runs `act` in a child that then waits to be killed; returns its number once `act` is over.
template <typename Act>
pid_t run_and_wait(Act&& act) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    act();
    static_cast<void>(!::write(ready[1], "x", 1));
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  return child;
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

// The recorder wrote a batch and was killed before it gave the chunks back: the segment is as before, the batch is there.
TEST_F(RecorderTest, AfterABatchThatWasWrittenAndChunksThatWereNotFreedNothingIsTwice) {
  std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  const auto writer = program.writer(1);
  const std::uint64_t written = launch_many(*writer, 20'000);
  const fs::path segment = claimed_in(live()).front();
  const std::string before = contents_of(segment);
  poll_all(*recorder);
  EXPECT_GT(recorder->status().operations, 10'000u);
  recorder.reset();
  std::fstream file(segment, std::ios::binary | std::ios::in | std::ios::out);
  file.write(before.data(), static_cast<std::streamsize>(before.size()));
  file.close();

  const Seen seen = see(live());
  EXPECT_EQ(seen.submitted.size(), written);
  EXPECT_EQ(seen.completed.size(), written);
  EXPECT_TRUE(seen.each_once());
}

TEST_F(RecorderTest, ARecorderKilledAtAnyMomentLosesNothingAndRepeatsNothing) {
  const std::uint64_t seed = now_ns();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    options_.path = folder_ + "/k" + std::to_string(round) + ".xpu";
    const pid_t child = run_and_wait([&] {
      Recorder* recorder = create().release();
      std::thread([recorder] {
        for (;;) recorder->poll();
      }).detach();
    });
    const Program program(live());
    const auto writer = program.writer(1);
    std::uint64_t written = 0;
    const std::uint64_t kill_at = 5'000 + random() % 60'000;
    while (written < kill_at && launch(*writer, written + 1)) ++written;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    written += launch_many(*writer, 1'000, written + 1);

    const Seen seen = see(live());
    EXPECT_EQ(seen.completed.size(), written);
    EXPECT_TRUE(seen.each_once());
  }
}

TEST_F(RecorderTest, AtTheFileSizeLimitTheRecorderLivesAndWhatFittedIsReadable) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{std::uint64_t{2} << 20, std::uint64_t{2} << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    const std::unique_ptr<Recorder> recorder = create();
    if (recorder == nullptr) ::_exit(2);
    const Program program(live());
    // 64 do not fit into 2 MiB, 32, 16 and 8 neither.
    if (program.segment().header().chunk_count.load() != 4) ::_exit(3);
    const auto writer = program.writer(1);
    std::mt19937_64 random(1);
    std::uint64_t written = 0;
    for (int round = 0; round < 3'000 && !recorder->status().storage_failed; ++round) {
      for (int record = 0; record < 500; ++record) {
        // Noise, so that the limit is reached soon.
        MemoryRecord noise{};
        noise.header = {static_cast<std::uint16_t>(RecordKind::memory), sizeof noise, 0};
        noise.address = random();
        noise.bytes = random();
        noise.total = random();
        noise.time_ns = written + 1;
        if (writer->append(noise)) ++written;
      }
      recorder->poll();
    }
    if (!recorder->status().storage_failed || recorder->status().storage_error.empty()) ::_exit(4);
    if (recorder->finish({true, 0, 0, 0, 0})) ::_exit(5);
    const Result<Recording> recording = Recording::open(live());
    if (!recording || !recording->damage().empty() || recording->finished()) ::_exit(6);
    const Seen seen = see(*recording);
    ::_exit(seen.kinds.at(static_cast<std::uint16_t>(RecordKind::memory)) == written ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A small file system of this process's own; false where that is not allowed.
bool mount_small(const std::string& folder, const char* size) {
  const std::string user = "0 " + std::to_string(::getuid()) + " 1", group = "0 " + std::to_string(::getgid()) + " 1";
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", user);
    write_file("/proc/self/gid_map", group);
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && ::mount("none", folder.c_str(), "tmpfs", 0, size) == 0;
}

TEST_F(RecorderTest, OnAFullDiskWhatEndedProcessesNoLongerNeedMakesRoomToFinish) {
  constexpr int kNotAllowed = 77;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!mount_small(folder_, "size=12m")) ::_exit(kNotAllowed);
    const std::unique_ptr<Recorder> recorder = create();
    if (recorder == nullptr) ::_exit(2);
    // One program fills its chunks, the other leaves most of its own untouched; no spare is left then.
    int counts[2];
    if (::pipe(counts) != 0) ::_exit(3);
    std::uint64_t written = 0;
    for (const std::uint64_t launches : {1'000'000u, 1u}) {
      const pid_t program = ::fork();
      if (program == 0) {
        const Program writing(live());
        const std::uint64_t done = launch_many(*writing.writer(1).release(), launches);
        static_cast<void>(!::write(counts[1], &done, sizeof done));
        ::_exit(0);
      }
      ::waitpid(program, nullptr, 0);
      std::uint64_t done = 0;
      if (::read(counts[0], &done, sizeof done) != sizeof done) ::_exit(4);
      written += done;
    }
    if (written < 5'000 || !spares_in(live()).empty()) ::_exit(8);
    // Fill what is left: to the last byte.
    const int filler = ::open((folder_ + "/filler").c_str(), O_CREAT | O_WRONLY, 0600);
    const std::vector<char> block(4'096);
    while (::write(filler, block.data(), block.size()) > 0) {
    }
    const Result<std::string> path = recorder->finish({true, 0, 0, 0, 0});
    if (!path) ::_exit(5);
    const Result<Recording> recording = Recording::open(*path);
    if (!recording || !recording->finished() || !recording->damage().empty()) ::_exit(6);
    const Seen seen = see(*recording);
    ::_exit(seen.completed.size() == written && seen.each_once() ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RecorderTest, ANameThatAppearedMeanwhileIsKeptAndFinishingCanBeTriedAgain) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  const Program program(live());
  const auto writer = program.writer(1);
  launch_many(*writer, 7);
  write_file(options_.path, "somebody else's");
  const Result<std::string> refused = recorder->finish({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(contents_of(options_.path), "somebody else's");
  const Seen seen = see(live());
  EXPECT_EQ(seen.submitted.size(), 7u);
  EXPECT_TRUE(seen.each_once());

  fs::remove(options_.path);
  const Seen finished = see(finish(*recorder));
  EXPECT_EQ(finished.submitted.size(), 7u);
  EXPECT_TRUE(finished.each_once());
  EXPECT_FALSE(fs::exists(live()));
}

// The file-size limit rises in small steps, so that finishing fails before, between and after its batches.
TEST_F(RecorderTest, FinishingInManyTriesTakesALivingProcessesChunkOnce) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::unique_ptr<Recorder> recorder = create();
    if (recorder == nullptr) ::_exit(1);
    const Program program(live());
    auto writer = program.writer(1);
    launch_many(*writer, 500);
    Result<std::string> path = Error{ErrorCode::internal, "not tried"};
    int tries = 0;
    for (rlim_t limit = 100; !path && tries < 1'000; limit += 50, ++tries) {
      const rlimit low{limit, RLIM_INFINITY};
      if (::setrlimit(RLIMIT_FSIZE, &low) != 0) ::_exit(2);
      path = recorder->finish({true, 0, 0, 0, 0});
      // The chunk is in the file and the table is not: the program hands the chunk over, not knowing that it was taken.
      if (!path && recorder->status().operations == 500) writer.reset();
    }
    if (!path || writer != nullptr || tries < 5) ::_exit(3);
    const Seen seen = see(*path);
    ::_exit(seen.completed.size() == 500 && seen.each_once() ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RecorderTest, FilesOfOthersInTheFolderStay) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  write_file(live() + "/notes.txt", "mine");
  finish(*recorder);
  EXPECT_EQ(contents_of(live() + "/notes.txt"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(live()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace xpu::trace
