#include "xpu/trace/recording/recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

using RecorderFaultsTest = RecorderTest;

// The recorder wrote a batch and was killed before it gave the chunks back: the segment is as before, the batch is there.
TEST_F(RecorderFaultsTest, AfterABatchThatWasWrittenAndChunksThatWereNotFreedNothingIsTwice) {
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

TEST_F(RecorderFaultsTest, ARecorderKilledAtAnyMomentLosesNothingAndRepeatsNothing) {
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

TEST_F(RecorderFaultsTest, AtTheFileSizeLimitTheRecorderLivesAndWhatFittedIsReadable) {
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

TEST_F(RecorderFaultsTest, OnAFullDiskWhatEndedProcessesNoLongerNeedMakesRoomToFinish) {
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

// The file-size limit rises in small steps, so that finishing fails before, between and after its batches.
TEST_F(RecorderFaultsTest, FinishingInManyTriesTakesALivingProcessesChunkOnce) {
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

}  // namespace
}  // namespace xpu::trace
