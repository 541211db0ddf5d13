// Traces that go to a scheme: who gets them, and what is said where nobody does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/outputs.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::ScriptedSource;
using testing::HasSubstr;

/// Hands everything to a sink of the test, which outlives the export.
class ForwardingSink final : public Sink {
 public:
  explicit ForwardingSink(CollectingSink& to, Result<> end) : to_(to), end_(std::move(end)) {}
  void begin(const SessionInfo& info) override { to_.begin(info); }
  void handle_runtime_activity(const RuntimeActivity& activity) override { to_.handle_runtime_activity(activity); }
  void handle_kernel_activity(const KernelActivity& activity) override { to_.handle_kernel_activity(activity); }
  Result<> end(const LinkSummary& summary) override {
    static_cast<void>(to_.end(summary));
    return end_;
  }

 private:
  CollectingSink& to_;
  Result<> end_;
};

class OutputRegistryTest : public testing::Test {
 protected:
  OutputRegistryTest() {
    source_.add_simple_process();
    source_.add_command({.start = 1'000, .end = 2'000, .enter_ns = 900, .exit_ns = 950});
    source_.add_command({.start = 3'000, .end = 3'500, .enter_ns = 910, .exit_ns = 960});
  }
  ~OutputRegistryTest() override { unregister_output("proto"); }

  OutputFactory into(CollectingSink& sink, Result<> end = {}) {
    return [this, &sink, end](const ExportOptions& options) -> Result<std::unique_ptr<Sink>> {
      asked_.push_back(options);
      return std::unique_ptr<Sink>(new ForwardingSink(sink, end));
    };
  }
  Result<ExportSummary> export_to(const std::string& path) {
    Session session(source_);
    return export_as_named(session, {.path = path});
  }

  ScriptedSource source_;
  std::vector<ExportOptions> asked_;
};

std::mutex g_lines_mutex;
std::vector<std::string> g_lines;

class CapturedLog {
 public:
  CapturedLog() {
    g_lines.clear();
    base::set_log_sink([](base::LogLevel, const char*, const char* line) {
      const std::lock_guard lock(g_lines_mutex);
      g_lines.emplace_back(line);
    });
  }
  ~CapturedLog() { base::set_log_sink(nullptr); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
};

TEST_F(OutputRegistryTest, EveryWayToExportGoesToWhoRegisteredTheScheme) {
  CollectingSink sink;
  ASSERT_TRUE(register_output("proto", into(sink)));
  Session session(source_);
  ExportOptions options;
  options.path = "PROTO://somewhere/trace.pftrace";
  options.device_only = true;
  for (const auto way : {+[](Session& s, const ExportOptions& o) { return export_chrome(s, o); },
                         +[](Session& s, const ExportOptions& o) { return export_perfetto(s, o); },
                         +[](Session& s, const ExportOptions& o) { return export_as_named(s, o); }}) {
    sink = CollectingSink();
    const Result<ExportSummary> summary = way(session, options);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->path, options.path);
    EXPECT_EQ(summary->kernels, 2u);
    EXPECT_EQ(summary->bytes, 0u);
    EXPECT_EQ(sink.kernels.size(), 2u);
    EXPECT_EQ(sink.calls.size(), 2u);
    EXPECT_TRUE(sink.summary.has_value());
    EXPECT_EQ(asked_.back().path, options.path);
    EXPECT_TRUE(asked_.back().device_only);
  }
  EXPECT_EQ(asked_.size(), 3u);
}

TEST_F(OutputRegistryTest, AnUnknownSchemeIsAnErrorThatListsWhatThereIs) {
  CollectingSink sink;
  ASSERT_TRUE(register_output("proto", into(sink)));
  for (const char* path : {"nobody://x.json", "no.body+2://", "1x://y", "my scheme://y"}) {
    const Result<ExportSummary> refused = export_to(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(refused.error().message, HasSubstr("there are file, proto"));
    EXPECT_FALSE(check_output(path));
  }
  EXPECT_EQ(export_to("nobody://x\x01.json").error().message, "nobody takes traces for 'nobody://'; there are file, proto");
  EXPECT_TRUE(check_output("proto://x"));
  EXPECT_TRUE(unregister_output("Proto"));
  EXPECT_FALSE(unregister_output("proto"));
  EXPECT_EQ(check_output("proto://x").error().message, "nobody takes traces for 'proto://'; there are file");
  EXPECT_TRUE(asked_.empty());
}

TEST_F(OutputRegistryTest, FileIsThePlainFile) {
  const std::string path = (std::filesystem::temp_directory_path() / ("xpu_outputs_test_" + std::to_string(getpid()) + ".json")).string();
  const Result<ExportSummary> written = export_to("File://" + path);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->path, path);
  EXPECT_EQ(std::filesystem::file_size(path), written->bytes);
  std::filesystem::remove(path);
  EXPECT_EQ(output_scheme("file:///x"), "");
  EXPECT_EQ(output_scheme("/folder/a://b"), "") << "a folder with a strange name";
  EXPECT_EQ(output_scheme("A2+://b"), "a2+");
  EXPECT_EQ(without_file_scheme("file://a/file://b"), "a/file://b");
  EXPECT_EQ(without_file_scheme("file:/a"), "file:/a");
}

TEST_F(OutputRegistryTest, ASecondRegistrationWarnsAndReplaces) {
  CollectingSink first, second;
  const CapturedLog log;
  ASSERT_TRUE(register_output("proto", into(first)));
  EXPECT_TRUE(g_lines.empty());
  ASSERT_TRUE(register_output("PROTO", into(second)));
  ASSERT_EQ(g_lines.size(), 1u);
  EXPECT_THAT(g_lines[0], HasSubstr("warning"));
  EXPECT_THAT(g_lines[0], HasSubstr("proto://"));
  ASSERT_TRUE(export_to("proto://x"));
  EXPECT_EQ(first.kernels.size(), 0u);
  EXPECT_EQ(second.kernels.size(), 2u);
}

TEST_F(OutputRegistryTest, WhatIsNoSchemeIsRefused) {
  CollectingSink sink;
  for (const char* scheme : {"", "1a", "a b", "a/b", "pr\xc3\xb6to", "file", "FILE", ":"}) {
    const Result<> refused = register_output(scheme, into(sink));
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << scheme;
  }
  EXPECT_EQ(register_output("proto", nullptr).error().message, "the factory for 'proto' is empty");
  EXPECT_FALSE(check_output("proto://x"));
}

TEST_F(OutputRegistryTest, WhatTheFactoryOrItsSinkReturnIsTheErrorOfTheExport) {
  CollectingSink sink;
  ASSERT_TRUE(register_output("proto", [](const ExportOptions&) -> Result<std::unique_ptr<Sink>> {
    return Error{ErrorCode::unavailable, "the other side sleeps"};
  }));
  EXPECT_EQ(export_to("proto://x").error().message, "the other side sleeps");
  ASSERT_TRUE(register_output("proto", [](const ExportOptions&) -> Result<std::unique_ptr<Sink>> { return std::unique_ptr<Sink>(); }));
  EXPECT_EQ(export_to("proto://x").error().code, ErrorCode::internal);
  ASSERT_TRUE(register_output("proto", into(sink, Error{ErrorCode::unavailable, "the line broke"})));
  EXPECT_EQ(export_to("proto://x").error().message, "the line broke");
  EXPECT_EQ(sink.kernels.size(), 2u);
}

TEST_F(OutputRegistryTest, ASessionIsReplayedIntoAnySinkWithoutACopyOfItsActivities) {
  class AddressSink final : public Sink {
   public:
    void handle_kernel_activity(const KernelActivity& activity) override { addresses.push_back(&activity); }
    std::vector<const KernelActivity*> addresses;
  };
  Session session(source_);
  AddressSink first, second;
  ASSERT_TRUE(session.run({&first, &second}));
  EXPECT_EQ(first.addresses.size(), 2u);
  EXPECT_EQ(first.addresses, second.addresses) << "both were handed the same object";
  CollectingSink late;
  ASSERT_TRUE(session.run({&late}));
  EXPECT_EQ(late.kernels.size(), 2u) << "as often as wanted, also by a sink that came later";
}

TEST_F(OutputRegistryTest, RegistrationsAndExportsMayGoOnAtTheSameTime) {
  std::atomic<bool> stop{false};
  std::atomic<int> made{0};
  base::set_log_levels("off");
  const auto factory = [&](const ExportOptions&) -> Result<std::unique_ptr<Sink>> {
    ++made;
    return std::make_unique<Sink>();
  };
  ASSERT_TRUE(register_output("proto", factory));
  std::thread registering([&] {
    while (!stop) static_cast<void>(register_output("proto", factory).has_value());
  });
  for (int round = 0; round < 200; ++round) EXPECT_TRUE(export_to("proto://x"));
  stop = true;
  registering.join();
  base::set_log_levels("warn");
  EXPECT_EQ(made, 200);
}

}  // namespace
}  // namespace xpu::profiler
