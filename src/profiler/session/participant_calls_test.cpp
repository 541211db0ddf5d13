// Calls of the participants of a session that come at any time, and that they make themselves; a profiler that has some.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profiler/test_support/logging_participants.hpp"
#include "xpu/profiler/profiler.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::LoggingClient;
using testing::ElementsAre;
using testing::IsEmpty;

class ParticipantCallsTest : public test_support::ParticipantsFixture {};

TEST_F(ParticipantCallsTest, TheLastToggleIsTheLastOneThatAChildHears) {
  class LastToggle final : public ChildProfiler {
   public:
    explicit LastToggle(std::atomic<int>& last) : last_(last) {}
    Result<> configure(const Config&) override { return {}; }
    std::vector<CpuOperation> process(const ProfileWindow&) override { return {}; }
    void toggle(bool collect) override { last_ = collect ? 1 : 0; }

   private:
    std::atomic<int>& last_;
  };
  std::atomic<int> last{1};
  ASSERT_TRUE(register_child_profiler("child", [&] { return std::make_unique<LastToggle>(last); }));
  registered_ = {"child"};
  Session session(Config{});
  ASSERT_TRUE(session.start());
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      for (int round = 0; round < 200; ++round) {
        session.toggle((round + index) % 2 == 0);
        ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 1);
        ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  session.toggle(false);
  EXPECT_EQ(last, 0);
  session.toggle(true);
  EXPECT_EQ(last, 1);
  ASSERT_TRUE(session.stop());
}

TEST_F(ParticipantCallsTest, AChildMayCallTheSessionAndTheApi) {
  class CallingChild final : public ChildProfiler {
   public:
    CallingChild(Session*& session, test_support::CallLog& log) : session_(session), log_(log) {}
    Result<> configure(const Config&) override { return {}; }
    std::vector<CpuOperation> process(const ProfileWindow&) override {
      static_cast<void>(session_->cpu_trace_counts());
      return {};
    }
    void toggle(bool collect) override {
      log_.add(collect ? "on" : "off");
      if (!collect) session_->toggle(true);
      static_cast<void>(session_->state());
    }
    Result<> stop() override {
      static_cast<void>(session_->participants());
      return register_child_profiler("made inside", [] { return nullptr; });
    }

   private:
    Session*& session_;
    test_support::CallLog& log_;
  };
  Session* address = nullptr;
  ASSERT_TRUE(register_child_profiler("child", [&] { return std::make_unique<CallingChild>(address, log_); }));
  registered_ = {"child", "made inside"};
  Session session(Config{});
  address = &session;
  ASSERT_TRUE(session.start());
  session.toggle(false);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(collect(session).kernels.size(), 1u) << "the child resumed";
  EXPECT_THAT(log_.take(), ElementsAre("off", "on")) << "it hears of its own toggle, too";
  EXPECT_THAT(errors_of(session), IsEmpty());
}

TEST_F(ParticipantCallsTest, AProfilerTellsThemWhenItsProfilesAreDueAndShowsTheirErrors) {
  add_child("child", "", true);
  LoggingClient client(log_);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("xpu_participants_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    Schedule::Now present{1'000, 1'000'000, {}};
    Profiler::Options options;
    options.folder = folder.string();
    options.client = &client;
    options.has_thread = false;
    options.now = [&] { return present; };
    Profiler profiler(options);
    Config config;
    config.warmup_duration = std::chrono::seconds(1);
    config.duration = std::chrono::milliseconds(500);
    config.with_memory = true;
    ASSERT_TRUE(profiler.schedule(config));
    std::vector<std::string> calls;
    for (int round = 0; round < 100 && profiler.is_busy(); ++round) {
      present.ms += 100;
      profiler.advance();
      publisher_.run();
      for (const std::string& call : log_.take()) calls.push_back(call);
    }
    const ProfileResult result = profiler.wait();
    EXPECT_TRUE(result.is_written) << result.problem;
    EXPECT_THAT(result.remarks, testing::Contains("child: a unit was hot"));
    EXPECT_THAT(calls, ElementsAre("child configure 128", "client init", "client prepare", "child start", "client start", "client stop",
                                   "child stop", "child process", "child resource_infos", "child trace_buffer", "child metadata",
                                   "child device_properties", "child errors", "child ends"));
    EXPECT_TRUE(client.prepared.with_memory);
    EXPECT_TRUE(client.trace_taken);

    // Cancelled while it warms up.
    ASSERT_TRUE(profiler.schedule(config));
    for (int round = 0; round < 100 && log_.take().empty(); ++round) {
      present.ms += 100;
      profiler.advance();
    }
    profiler.cancel("enough");
    EXPECT_THAT(log_.take(), ElementsAre("client stop", "child stop", "child ends"));
    EXPECT_EQ(profiler.wait().problem, "enough");
  }
  std::filesystem::remove_all(folder);
}

TEST_F(ParticipantCallsTest, AClientMayCallTheProfilerThatCallsIt) {
  class CallingClient final : public ProfilerClient {
   public:
    void prepare(const Options&) override { profiler->step(); }
    void start() override { is_busy = profiler->is_busy(); }
    void stop(Session&) override { refused = !profiler->schedule(Config{}); }
    Profiler* profiler = nullptr;
    bool is_busy = false, refused = false;
  };
  CallingClient client;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("xpu_calling_client_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    Profiler::Options options;
    options.folder = folder.string();
    options.client = &client;
    Profiler profiler(options);
    client.profiler = &profiler;
    Config config;
    config.warmup_duration = std::chrono::seconds(0);
    config.duration = std::chrono::milliseconds(20);
    ASSERT_TRUE(profiler.schedule(config));
    EXPECT_TRUE(profiler.wait().is_written);
    EXPECT_TRUE(client.is_busy);
    EXPECT_TRUE(client.refused) << "one profile at a time";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace xpu::profiler
