// Profiles of memory, on a fake clock and with a provider of the test's own in the runtime's place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_snapshot.hpp"
#include "base/probe.hpp"
#include "xpu/profiler/profiler.hpp"

namespace xpu::profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What the provider was asked, in order, and what it answers.
struct MemoryProviderState {
  std::vector<std::string> calls;
  std::optional<Error> begin_error, end_error;
};
MemoryProviderState g_memory;

Result<> answer(const std::optional<Error>& error) { return error ? Result<>(*error) : Result<>(); }

constexpr base::MemorySnapshotProvider kTestMemory = {
    .begin =
        [](bool with_stacks) {
          g_memory.calls.emplace_back(with_stacks ? "begin with stacks" : "begin");
          return answer(g_memory.begin_error);
        },
    .end =
        [](const std::string& path) {
          g_memory.calls.push_back("end");
          if (!g_memory.end_error) std::ofstream(path) << "a snapshot";
          return answer(g_memory.end_error);
        },
    .cancel = []() noexcept { g_memory.calls.emplace_back("cancel"); },
};

class MemoryListener final : public ProfilerObserver {
 public:
  void stage_began(ProfileStage stage) override { stages.emplace_back(to_string(stage)); }
  void profile_ended(const ProfileResult& ended) override { result = ended; }
  std::vector<std::string> stages;
  std::optional<ProfileResult> result;
};

class MemoryProfileTest : public testing::Test {
 protected:
  MemoryProfileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "xpu_memory_profile_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    config_.takes_memory_snapshot = true;
    config_.memory_snapshot_duration = std::chrono::milliseconds(300);
    g_memory = {};
  }
  ~MemoryProfileTest() override {
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(probe::subscriber(), nullptr) << "nothing listens to commands";
  }
  static void SetUpTestSuite() { base::register_memory_snapshots(&kTestMemory); }

  Profiler::Options fake() {
    Profiler::Options options;
    options.folder = folder_;
    options.observer = &listener_;
    options.has_thread = false;
    options.now = [this] { return Schedule::Now{now_ms_, 1'700'000'000'000 + now_ms_, {}}; };
    return options;
  }
  void pass(Profiler& profiler, std::int64_t ms) {
    now_ms_ += ms;
    profiler.advance();
  }
  std::string snapshot_path() const { return folder_ + "/memory_snapshot_" + std::to_string(getpid()) + ".pickle"; }

  Config config_;
  MemoryListener listener_;
  std::string folder_;
  std::int64_t now_ms_ = 1'000;
};

TEST_F(MemoryProfileTest, MemoryIsNotedForSoLongAndThenWritten) {
  Profiler profiler(fake());
  ASSERT_TRUE(profiler.schedule(config_));
  EXPECT_THAT(listener_.stages, ElementsAre("Collection")) << "at once: there is nothing to warm up";
  EXPECT_THAT(g_memory.calls, ElementsAre("begin"));
  pass(profiler, 299);
  EXPECT_TRUE(profiler.is_busy());
  EXPECT_FALSE(std::filesystem::exists(snapshot_path()));
  pass(profiler, 1);
  EXPECT_FALSE(profiler.is_busy());
  EXPECT_THAT(listener_.stages, ElementsAre("Collection", "Post Processing"));
  EXPECT_THAT(g_memory.calls, ElementsAre("begin", "end")) << "and not cancelled behind it";
  ASSERT_TRUE(listener_.result.has_value());
  EXPECT_TRUE(listener_.result->is_written) << listener_.result->problem;
  EXPECT_EQ(listener_.result->path, snapshot_path());
  EXPECT_TRUE(std::filesystem::exists(snapshot_path()));
}

TEST_F(MemoryProfileTest, ItStartsAtATimeAndInAConfinedFolder) {
  Profiler::Options options = fake();
  options.is_confined = true;
  Profiler profiler(options);
  config_.start_time_unix_ms = 1'700'000'000'000 + now_ms_ + 5'000;
  config_.with_stack = true;
  config_.log_file = "/elsewhere/trace.json";
  EXPECT_EQ(profiler.schedule(config_).error().code, ErrorCode::invalid_argument);
  config_.log_file = "trace.json";
  ASSERT_TRUE(profiler.schedule(config_));
  EXPECT_THAT(g_memory.calls, ElementsAre());
  pass(profiler, 4'999);
  EXPECT_THAT(listener_.stages, ElementsAre());
  pass(profiler, 1);
  EXPECT_THAT(g_memory.calls, ElementsAre("begin with stacks"));
  pass(profiler, 300);
  ASSERT_TRUE(listener_.result.has_value());
  EXPECT_EQ(listener_.result->path, snapshot_path());
}

TEST_F(MemoryProfileTest, ACancelledOneLeavesEverythingAsItWas) {
  Profiler profiler(fake());
  ASSERT_TRUE(profiler.schedule(config_));
  EXPECT_EQ(profiler.schedule({}).error().message, "another profile is collecting");
  profiler.cancel("nobody wants it");
  EXPECT_THAT(g_memory.calls, ElementsAre("begin", "cancel"));
  EXPECT_THAT(listener_.stages, ElementsAre("Collection", "Cancellation"));
  ASSERT_TRUE(listener_.result.has_value());
  EXPECT_EQ(listener_.result->problem, "nobody wants it");
  EXPECT_FALSE(std::filesystem::exists(snapshot_path()));
}

TEST_F(MemoryProfileTest, WhatTheAllocatorsRefuseIsTheProblem) {
  Profiler profiler(fake());
  g_memory.begin_error = Error{ErrorCode::failed_precondition, "another profile notes what happens to memory"};
  ASSERT_TRUE(profiler.schedule(config_));
  ASSERT_TRUE(listener_.result.has_value());
  EXPECT_EQ(listener_.result->problem, "another profile notes what happens to memory");
  EXPECT_THAT(listener_.stages, ElementsAre("Cancellation"));
  EXPECT_THAT(g_memory.calls, ElementsAre("begin")) << "what did not begin is not cancelled: it may be another one's";
  g_memory.begin_error.reset();
  g_memory.end_error = Error{ErrorCode::unavailable, "cannot write it: the disk is full"};
  ASSERT_TRUE(profiler.schedule(config_));
  pass(profiler, 300);
  EXPECT_FALSE(listener_.result->is_written);
  EXPECT_EQ(listener_.result->problem, "cannot write it: the disk is full");
  EXPECT_EQ(listener_.result->path, "");
}

TEST_F(MemoryProfileTest, WhatMayNotBeIsRefusedAndNotesNothing) {
  Profiler profiler(fake());
  config_.log_file = "proto://x";
  EXPECT_THAT(profiler.schedule(config_).error().message, HasSubstr("allowed for PROFILE_MEMORY is a file"));
  config_.log_file.clear();
  config_.memory_snapshot_duration = std::chrono::milliseconds(0);
  EXPECT_THAT(profiler.schedule(config_).error().message, HasSubstr("PROFILE_MEMORY_DURATION_MSECS"));
  EXPECT_FALSE(profiler.is_busy());
  EXPECT_THAT(g_memory.calls, ElementsAre());
}

TEST_F(MemoryProfileTest, TheProfilersThreadDoesItToo) {
  Profiler::Options options;
  options.folder = folder_;
  options.observer = &listener_;
  Profiler profiler(options);
  config_.memory_snapshot_duration = std::chrono::milliseconds(20);
  ASSERT_TRUE(profiler.schedule(config_));
  const ProfileResult result = profiler.wait();
  EXPECT_TRUE(result.is_written) << result.problem;
  EXPECT_THAT(listener_.stages, ElementsAre("Collection", "Post Processing"));
}

}  // namespace
}  // namespace xpu::profiler
