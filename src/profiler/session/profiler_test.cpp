// Profiles that are made when they are due: on a fake clock without a thread, and on the real one with it.

#include "xpu/profiler/profiler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/outputs.hpp"

namespace xpu::profiler {
namespace {

using test_support::TestPublisher;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "xpu_profiler_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

class Listener final : public ProfilerObserver {
 public:
  void stage_began(ProfileStage stage) override { stages.emplace_back(to_string(stage)); }
  void profile_ended(const ProfileResult& result) override { results.push_back(result); }
  std::vector<std::string> stages;
  std::vector<ProfileResult> results;
};

class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() : publisher_(TestPublisher::instance()) {}
  ~ProfilerTest() override { EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still"; }

  Profiler::Options fake() {
    Profiler::Options options;
    options.folder = folder_.path();
    options.observer = &listener_;
    options.has_thread = false;
    options.now = [this] { return Schedule::Now{now_ms_, 1'700'000'000'000 + now_ms_, {}}; };
    return options;
  }
  void pass(Profiler& profiler, std::int64_t ms) {
    now_ms_ += ms;
    profiler.advance();
  }
  void run(int launches) {
    for (int launch = 0; launch < launches; ++launch) publisher_.run();
  }
  static std::size_t kernels_in(const std::string& path) {
    std::ifstream file(path);
    const Json trace = Json::parse(file);
    std::size_t kernels = 0;
    for (const Json& event : trace["traceEvents"]) kernels += event.value("cat", "") == "kernel" ? 1 : 0;
    return kernels;
  }

  TestPublisher& publisher_;
  TemporaryFolder folder_;
  Listener listener_;
  std::int64_t now_ms_ = 1'000;
};

TEST_F(ProfilerTest, AProfileOfSomeTimeIsWarmedUpCollectedAndWritten) {
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(2);
  config.duration = std::chrono::milliseconds(500);
  config.trace_id = "42";
  ASSERT_TRUE(profiler.schedule(config));
  EXPECT_TRUE(profiler.is_busy());
  run(3);
  pass(profiler, 1'999);
  EXPECT_THAT(listener_.stages, ElementsAre("Warm Up"));
  run(5);
  pass(profiler, 1);
  EXPECT_THAT(listener_.stages, ElementsAre("Warm Up", "Collection"));
  run(7);
  pass(profiler, 499);
  run(2);
  pass(profiler, 1);
  EXPECT_THAT(listener_.stages, ElementsAre("Warm Up", "Collection", "Post Processing"));
  EXPECT_FALSE(profiler.is_busy());
  ASSERT_EQ(listener_.results.size(), 1u);
  const ProfileResult& result = listener_.results[0];
  EXPECT_TRUE(result.is_written) << result.problem;
  EXPECT_EQ(result.trace.kernels, 9u);
  EXPECT_EQ(result.path, folder_.path() + "/xpu_activities_" + std::to_string(getpid()) + ".json");
  EXPECT_EQ(kernels_in(result.path), 9u);
  std::ifstream file(result.path);
  EXPECT_EQ(Json::parse(file)["trace_id"].get<std::string>(), "42");
  EXPECT_EQ(profiler.wait().path, result.path);
}

TEST_F(ProfilerTest, AProfileOfSomeIterationsBeginsAndEndsWithOne) {
  Profiler profiler(fake());
  profiler.step();
  Config config;
  config.start_iteration = 4;
  config.warmup_iterations = 1;
  config.iterations = 2;
  config.log_file = folder_.path() + "/iterations.json";
  ASSERT_TRUE(profiler.schedule(config));
  for (int iteration = 2; iteration <= 7; ++iteration) {
    profiler.step();
    run(iteration);
    pass(profiler, 10);
  }
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_EQ(listener_.results[0].trace.kernels, 4u + 5u);
  EXPECT_THAT(listener_.stages, ElementsAre("Warm Up", "Collection", "Post Processing"));
}

TEST_F(ProfilerTest, OneAtATimeAndTheNextAfterIt) {
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(0);
  ASSERT_TRUE(profiler.schedule(config));
  const Result<> refused = profiler.schedule(config);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(refused.error().message, "another profile is collecting");
  run(1);
  pass(profiler, 500);
  ASSERT_EQ(listener_.results.size(), 1u);
  config.log_file = folder_.path() + "/next.pftrace";
  ASSERT_TRUE(profiler.schedule(config));
  run(2);
  pass(profiler, 500);
  ASSERT_EQ(listener_.results.size(), 2u);
  EXPECT_TRUE(listener_.results[1].is_written) << listener_.results[1].problem;
  EXPECT_THAT(listener_.results[1].path, HasSubstr("next"));
}

TEST_F(ProfilerTest, WhatMayNotBeIsRefusedAndPlansNothing) {
  Profiler::Options options = fake();
  options.is_confined = true;
  Profiler profiler(options);
  Config config;
  config.log_file = "/somewhere/else.json";
  EXPECT_EQ(profiler.schedule(config).error().code, ErrorCode::invalid_argument);
  config = {};
  config.start_iteration = 3;
  EXPECT_EQ(profiler.schedule(config).error().code, ErrorCode::failed_precondition);
  config = {};
  config.start_time_unix_ms = 1'700'000'000'000 - 60'000;
  EXPECT_EQ(profiler.schedule(config).error().code, ErrorCode::invalid_argument);
  config = {};
  config.is_enabled = false;
  EXPECT_THAT(profiler.schedule(config).error().message, HasSubstr("ACTIVITIES_ENABLED=false"));
  EXPECT_FALSE(profiler.is_busy());
  EXPECT_TRUE(listener_.stages.empty());
}

TEST_F(ProfilerTest, ATraceMayGoToARegisteredOutputWhichSeesTheMetadata) {
  struct Received {
    std::size_t kernels = 0;
    ExportOptions options;
  } received;
  class Taker final : public Sink {
   public:
    explicit Taker(Received& to) : to_(to) {}
    void handle_kernel_activity(const KernelActivity&) override { ++to_.kernels; }

   private:
    Received& to_;
  };
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(0);
  config.log_file = "taker://host/42";
  config.trace_id = "17";
  const Result<> refused = profiler.schedule(config);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << "said at once, and not when the profile is over";
  EXPECT_THAT(refused.error().message, HasSubstr("taker://"));
  EXPECT_FALSE(profiler.is_busy());
  ASSERT_TRUE(register_output("taker", [&](const ExportOptions& options) -> Result<std::unique_ptr<Sink>> {
    received.options = options;
    return std::unique_ptr<Sink>(new Taker(received));
  }));
  ASSERT_TRUE(profiler.schedule(config));
  run(3);
  pass(profiler, 500);
  EXPECT_TRUE(unregister_output("taker"));
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_TRUE(listener_.results[0].is_written) << listener_.results[0].problem;
  EXPECT_EQ(listener_.results[0].path, "taker://host/42");
  EXPECT_EQ(listener_.results[0].trace.kernels, 3u);
  EXPECT_EQ(received.kernels, 3u);
  EXPECT_EQ(received.options.path, "taker://host/42");
  ASSERT_EQ(received.options.metadata.size(), 1u);
  EXPECT_EQ(received.options.metadata[0], (std::pair<std::string, std::string>("trace_id", "17")));
  EXPECT_EQ(folder_.files(), 0u);
}

TEST_F(ProfilerTest, AnOutputThatGoesAwayIsAProblemInASentence) {
  ASSERT_TRUE(register_output("gone", [](const ExportOptions&) -> Result<std::unique_ptr<Sink>> { return std::make_unique<Sink>(); }));
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(0);
  config.log_file = "gone://x";
  ASSERT_TRUE(profiler.schedule(config));
  EXPECT_TRUE(unregister_output("gone"));
  pass(profiler, 500);
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_FALSE(listener_.results[0].is_written);
  EXPECT_THAT(listener_.results[0].problem, HasSubstr("gone://"));
}

TEST_F(ProfilerTest, OutputsAreForConfigurationsOfTheProgramItself) {
  ASSERT_TRUE(register_output("inside", [](const ExportOptions&) -> Result<std::unique_ptr<Sink>> { return std::make_unique<Sink>(); }));
  Profiler::Options options = fake();
  options.is_confined = true;
  Profiler profiler(options);
  for (const char* path : {"inside://x", "file://x.json", "INSIDE://x"}) {
    Config config;
    config.log_file = path;
    EXPECT_EQ(profiler.schedule(config).error().code, ErrorCode::invalid_argument) << path;
  }
  EXPECT_TRUE(unregister_output("inside"));
}

TEST_F(ProfilerTest, ACancelledProfileLeavesNoFileAndSaysWhy) {
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(1);
  ASSERT_TRUE(profiler.schedule(config));
  pass(profiler, 1'000);
  run(1);
  profiler.cancel("the user changed his mind");
  EXPECT_THAT(listener_.stages, ElementsAre("Warm Up", "Collection", "Cancellation"));
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_EQ(listener_.results[0].problem, "the user changed his mind");
  EXPECT_FALSE(listener_.results[0].is_written);
  EXPECT_EQ(folder_.files(), 0u);
  EXPECT_FALSE(profiler.is_busy());
  EXPECT_EQ(probe::subscriber(), nullptr);
}

TEST_F(ProfilerTest, AProcessThatSomebodyElseListensToIsAProblemInASentence) {
  static constinit probe::Subscriber other = {.abi = probe::kAbi,
                                              .object = [](probe::ObjectKind, probe::Id, probe::ObjectEvent, const void*) {}};
  ASSERT_TRUE(probe::subscribe(&other));
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(0);
  EXPECT_TRUE(profiler.schedule(config));
  probe::unsubscribe();
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_THAT(listener_.results[0].problem, HasSubstr("somebody else listens"));
}

TEST_F(ProfilerTest, AFolderThatIsNotThereIsAProblemInASentence) {
  Profiler profiler(fake());
  Config config;
  config.warmup_duration = std::chrono::seconds(0);
  config.log_file = folder_.path() + "/missing/trace.json";
  ASSERT_TRUE(profiler.schedule(config));
  run(1);
  pass(profiler, 500);
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_THAT(listener_.results[0].problem, HasSubstr("missing"));
  EXPECT_FALSE(listener_.results[0].is_written);
}

TEST_F(ProfilerTest, ItsThreadDoesItAllWhileTheProgramGoesOn) {
  Profiler::Options options;
  options.folder = folder_.path();
  options.observer = &listener_;
  Profiler profiler(options);
  std::atomic<bool> stop{false};
  std::thread program([&] {
    while (!stop) publisher_.run();
  });
  Config config;
  config.warmup_duration = std::chrono::seconds(0);
  config.duration = std::chrono::milliseconds(30);
  config.max_buffer_mib = 4;
  ASSERT_TRUE(profiler.schedule(config));
  const ProfileResult result = profiler.wait();
  stop = true;
  program.join();
  EXPECT_TRUE(result.is_written) << result.problem;
  EXPECT_GT(result.trace.kernels, 0u);
  EXPECT_EQ(kernels_in(result.path), result.trace.kernels);
  EXPECT_THAT(listener_.stages, ElementsAre("Collection", "Post Processing"));
}

TEST_F(ProfilerTest, AForkedChildEndsWithoutTheThreadAndIsRefused) {
  Profiler::Options options;
  options.folder = folder_.path();
  auto profiler = std::make_unique<Profiler>(options);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    const Result<> refused = profiler->schedule({});
    const bool is_right = !refused && refused.error().code == ErrorCode::unavailable;
    profiler.reset();
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ProfilerTest, TheEndOfTheProfilerIsTheEndOfAProfileThatIsUnderWay) {
  {
    Profiler::Options options;
    options.folder = folder_.path();
    options.observer = &listener_;
    Profiler profiler(options);
    Config config;
    config.warmup_duration = std::chrono::seconds(0);
    config.duration = std::chrono::milliseconds(3'600'000);
    ASSERT_TRUE(profiler.schedule(config));
    run(3);
  }
  ASSERT_EQ(listener_.results.size(), 1u);
  EXPECT_EQ(listener_.results[0].problem, "the profiler ended");
  EXPECT_EQ(folder_.files(), 0u);
}

}  // namespace
}  // namespace xpu::profiler
