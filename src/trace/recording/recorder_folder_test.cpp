#include "xpu/trace/recording/recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trace/recording/manifest.hpp"
#include "trace/test_support/recorder_fixture.hpp"

namespace xpu::trace {
namespace {

using namespace test_support;  // NOLINT(google-build-using-namespace): a fixture's own vocabulary

using RecorderFolderTest = RecorderTest;

TEST_F(RecorderFolderTest, MakesAPrivateFolderWhateverTheUmask) {
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

TEST_F(RecorderFolderTest, WritesWhatTheProgramAndAReaderNeedBeforeTheProgramStarts) {
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

TEST_F(RecorderFolderTest, SparesAreReallyAllocatedAndAllTheirChunksReady) {
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

TEST_F(RecorderFolderTest, BadRequestsAreRefusedWithASentenceAndLeaveNothingBehind) {
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

TEST_F(RecorderFolderTest, AnExistingRecordingIsReplacedOnlyWhenAsked) {
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

TEST_F(RecorderFolderTest, LinksAreNeverFollowed) {
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

TEST_F(RecorderFolderTest, AFolderInTheWayIsNeverReplaced) {
  options_.overwrite = true;
  fs::create_directory(options_.path);
  expect_refused(ErrorCode::failed_precondition);
}

TEST_F(RecorderFolderTest, AnUnfinishedRecordingIsReplacedOnlyWhenAskedAndNobodyWritesIt) {
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

TEST_F(RecorderFolderTest, AClaimedSpareIsReplaced) {
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

TEST_F(RecorderFolderTest, ANameThatAppearedMeanwhileIsKeptAndFinishingCanBeTriedAgain) {
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

TEST_F(RecorderFolderTest, FilesOfOthersInTheFolderStay) {
  const std::unique_ptr<Recorder> recorder = create();
  ASSERT_NE(recorder, nullptr);
  write_file(live() + "/notes.txt", "mine");
  finish(*recorder);
  EXPECT_EQ(contents_of(live() + "/notes.txt"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(live()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace xpu::trace
