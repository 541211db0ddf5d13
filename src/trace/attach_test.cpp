// A whole program with the trace in it, started as `xpu record` or a person would.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "trace/test_support/live_folder.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {
namespace {

using test_support::CopiedRecord;
using test_support::LiveFolder;
using test_support::make_options;
using test_support::SegmentView;

struct Outcome {
  pid_t pid = 0;
  int status = -1;
  std::string said;  ///< On standard error.
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

Outcome run(const std::string& live_path, const std::string& ending, const std::string& program = PROGRAM_PATH) {
  const std::string errors = (std::filesystem::temp_directory_path() / ("attach-test-" + std::to_string(getpid()))).string();
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  if (!live_path.empty()) variables.push_back("XPU_RECORD=" + live_path);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string path = program, argument = ending;
  char* arguments[] = {path.data(), argument.data(), nullptr};

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Outcome outcome;
  EXPECT_EQ(posix_spawn(&outcome.pid, program.c_str(), &actions, nullptr, arguments, environment.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(waitpid(outcome.pid, &outcome.status, 0), outcome.pid);
  std::ostringstream text;
  text << std::ifstream(errors).rdbuf();
  outcome.said = text.str();
  std::filesystem::remove(errors);
  return outcome;
}

std::size_t count(const SegmentView& segment, RecordKind kind) { return segment.records(kind).size(); }
SegmentState state_of(const SegmentView& segment) { return static_cast<SegmentState>(segment.header().state.load()); }

TEST(AttachTest, WithoutTheVariableNobodyListens) {
  const Outcome outcome = run("", "is-recorded");
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.said, "");
}

TEST(AttachTest, AProgramThatPublishesNothingClaimsNothing) {
  const LiveFolder folder(4, 2);
  const Outcome outcome = run(folder.path(), "is-recorded");
  EXPECT_EQ(outcome.exit_code(), 1);
  EXPECT_EQ(outcome.said, "");
  EXPECT_EQ(folder.spare_count(), 2u);
}

TEST(AttachTest, ALayersDrainAndAStaticDestructorsLaunchAreOnRecordAndTheSegmentIsClosed) {
  const LiveFolder folder(4, 2);
  const Outcome outcome = run(folder.path(), "return");
  EXPECT_EQ(outcome.exit_code(), 5);
  EXPECT_EQ(outcome.said, "");
  const SegmentView segment = folder.segment_of(static_cast<std::uint64_t>(outcome.pid));
  EXPECT_EQ(state_of(segment), SegmentState::closed);
  EXPECT_EQ(count(segment, RecordKind::operation_submitted), 4u);
  EXPECT_EQ(count(segment, RecordKind::operation_completed), 4u);
}

TEST(AttachTest, QuickExitClosesTheSegment) {
  const LiveFolder folder;
  EXPECT_EQ(run(folder.path(), "quick_exit").exit_code(), 4);
  EXPECT_EQ(state_of(folder.segment()), SegmentState::closed);
  EXPECT_EQ(count(folder.segment(), RecordKind::operation_completed), 2u);
}

TEST(AttachTest, EndingWithoutHandlersLeavesWhatWasWritten) {
  for (const char* ending : {"_exit", "abort"}) {
    const LiveFolder folder;
    const Outcome outcome = run(folder.path(), ending);
    EXPECT_TRUE(outcome.exit_code() == 3 || (WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGABRT)) << outcome.status;
    EXPECT_EQ(state_of(folder.segment()), SegmentState::attached);
    EXPECT_EQ(count(folder.segment(), RecordKind::operation_submitted), 3u);
    EXPECT_EQ(count(folder.segment(), RecordKind::operation_completed), 2u);
  }
}

TEST(AttachTest, AProgramThatReplacesItselfHasASegmentForEach) {
  const LiveFolder folder(4, 2);
  const Outcome outcome = run(folder.path(), "exec");
  EXPECT_EQ(outcome.exit_code(), 5);
  const std::vector<std::string> paths = folder.claimed_paths();
  ASSERT_EQ(paths.size(), 2u);
  std::map<SegmentState, int> states;
  for (const std::string& path : paths) ++states[state_of(SegmentView(path))];
  EXPECT_EQ(states, (std::map<SegmentState, int>{{SegmentState::attached, 1}, {SegmentState::closed, 1}}));
}

TEST(AttachTest, OptionsDecideWhatIsRecorded) {
  OptionsBlock options = make_options(RecordMode::device_only);
  std::strcpy(options.kernels, "(");
  const LiveFolder folder(4, 1, &options);
  const Outcome outcome = run(folder.path(), "return");
  EXPECT_EQ(outcome.exit_code(), 5);
  EXPECT_NE(outcome.said.find("\"(\" is not a POSIX extended regular expression"), std::string::npos) << outcome.said;
  EXPECT_EQ(folder.spare_count(), 1u);
}

TEST(AttachTest, WhatIsNoFolderOfARecorderIsRefusedWithOneSentence) {
  OptionsBlock other_version = make_options();
  other_version.format = 99;
  const LiveFolder newer(4, 1, &other_version);
  const LiveFolder linked;
  std::filesystem::rename(linked.path() + "/options", linked.path() + "/elsewhere");
  std::filesystem::create_symlink(linked.path() + "/elsewhere", linked.path() + "/options");
  for (const std::string& path : {newer.path(), linked.path(), std::string("relative.xpu.live")}) {
    const Outcome outcome = run(path, "return");
    EXPECT_EQ(outcome.exit_code(), 5);
    EXPECT_NE(outcome.said.find("xpu: warning: trace: this process is not recorded: "), std::string::npos) << outcome.said;
    EXPECT_EQ(std::count(outcome.said.begin(), outcome.said.end(), '\n'), 1) << outcome.said;
  }
  EXPECT_EQ(newer.spare_count() + linked.spare_count(), 2u);
}

TEST(AttachTest, ADeadRecordersSparesAreStillFilled) {
  const Outcome ended = run("", "is-recorded");
  OptionsBlock options = make_options();
  options.recorder_pid = static_cast<std::uint64_t>(ended.pid);
  const LiveFolder folder(4, 1, &options);
  const Outcome outcome = run(folder.path(), "return");
  EXPECT_EQ(outcome.exit_code(), 5);
  EXPECT_NE(outcome.said.find("is gone"), std::string::npos) << outcome.said;
  EXPECT_EQ(count(folder.segment(), RecordKind::operation_completed), 4u);
}

TEST(AttachTest, WithoutALauncherTheProgramWritesTheFinishedFileItself) {
  const LiveFolder elsewhere(4, 0);  // for its temporary directory
  const std::string live_path = std::filesystem::path(elsewhere.path()).parent_path().string() + "/by-hand.xpu.live";
  const Outcome outcome = run(live_path, "return");
  EXPECT_EQ(outcome.exit_code(), 5);
  EXPECT_EQ(outcome.said, "");
  EXPECT_FALSE(std::filesystem::exists(live_path));
  const Result<Recording> recording = Recording::open(live_path.substr(0, live_path.size() - 5));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->finished());
  EXPECT_EQ(recording->damage(), "");
  EXPECT_EQ(recording->manifest().end.exit_code, 5);
  std::map<RecordKind, int> kinds;
  ASSERT_TRUE(recording->for_each_batch([&](std::size_t, std::span<const std::byte> records) {
    for_each_record(records, [&](const RecordHeader& header) { ++kinds[static_cast<RecordKind>(header.kind)]; });
  }));
  EXPECT_GE(kinds[RecordKind::operation_submitted], 3);
  EXPECT_GE(kinds[RecordKind::operation_completed], 3);
}

TEST(AttachTest, RaisedPrivilegesMeanThatTheVariableIsNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program that is owned by somebody else";
  const LiveFolder folder;
  const std::filesystem::path parent = std::filesystem::path(folder.path()).parent_path();
  std::filesystem::permissions(parent, std::filesystem::perms(0755));
  const std::string copy = parent.string() + "/set-user-id";
  std::filesystem::copy_file(PROGRAM_PATH, copy);
  ASSERT_EQ(chown(copy.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  const Outcome outcome = run(folder.path(), "is-recorded", copy);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.said, "");
}

}  // namespace
}  // namespace xpu::trace
