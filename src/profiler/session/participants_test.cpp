// Who takes part in a session beside the tracer: the framework, and other profilers.

#include "profiler/session/participants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/test_support/logging_participants.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::LoggingChild;
using test_support::LoggingClient;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

class ParticipantsTest : public test_support::ParticipantsFixture {
 protected:
  static std::string chrome_json(Session& session) {
    std::string text;
    ChromeSink sink(
        [&](std::string_view piece) {
          text += piece;
          return Result<>();
        },
        {.name = "test"});
    EXPECT_TRUE(session.run({&sink}));
    return text;
  }
};

TEST_F(ParticipantsTest, EachIsToldOfEachStepInOrder) {
  add_child("child");
  LoggingClient client(log_);
  {
    Config config;
    config.max_buffer_mib = 9;
    Session session(config);
    ASSERT_TRUE(session.set_client(&client));
    EXPECT_THAT(log_.take(), IsEmpty());
    ASSERT_TRUE(session.prepare());
    EXPECT_THAT(log_.take(), ElementsAre("child configure 9", "client init", "client prepare"));
    ASSERT_TRUE(session.start());
    EXPECT_THAT(log_.take(), ElementsAre("child start", "client start"));
    session.toggle(true);
    EXPECT_THAT(log_.take(), IsEmpty()) << "nothing new";
    session.toggle(false);
    session.toggle(false);
    session.toggle(true);
    EXPECT_THAT(log_.take(), ElementsAre("child toggle off", "child toggle on"));
    ActivityApi::push_correlation_id(CorrelationFamily::custom_1, 77);
    EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_1), 77u);
    EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_1), std::nullopt);
    EXPECT_THAT(log_.take(), ElementsAre("child push 77 of family 3", "child pop of family 3")) << "no pop without a push";
    ASSERT_TRUE(session.stop());
    EXPECT_THAT(log_.take(), ElementsAre("client stop", "child stop"));
    ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 5);
    ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
    ASSERT_TRUE(session.collect());
    EXPECT_THAT(log_.take(), IsEmpty());
    collect(session);
    EXPECT_THAT(log_.take(), ElementsAre("child process", "child resource_infos", "child trace_buffer", "child metadata",
                                         "child device_properties", "child errors"));
    collect(session);
    EXPECT_THAT(log_.take(), IsEmpty()) << "once is enough";
  }
  EXPECT_THAT(log_.take(), ElementsAre("child ends"));
}

TEST_F(ParticipantsTest, TheClientIsToldWhatToRecordAndHandsItsTraceOver) {
  LoggingClient client(log_);
  Config config;
  config.with_shapes = true;
  config.with_stack = true;
  config.with_modules = true;
  Session session(config);
  ASSERT_TRUE(session.set_client(&client));
  const CollectingSink sink = profile_once(session);
  EXPECT_EQ(client.prepared, (ProfilerClient::Options{true, false, true, false, true}));
  EXPECT_TRUE(client.trace_taken);
  ASSERT_EQ(sink.cpu_operations.size(), 1u);
  EXPECT_EQ(sink.cpu_operations[0].name->text, "framework op");
  Session second(config);
  ASSERT_TRUE(second.set_client(&client));
  profile_once(second);
  EXPECT_THAT(log_.take(),
              ElementsAre("client init", "client prepare", "client start", "client stop", "client prepare", "client start", "client stop"))
      << "init comes once";
}

TEST_F(ParticipantsTest, AClientComesBeforeThePreparation) {
  LoggingClient client(log_);
  Session session(Config{});
  ASSERT_TRUE(session.prepare());
  EXPECT_EQ(session.set_client(&client).error().code, ErrorCode::failed_precondition);
  session.cancel();
  EXPECT_THAT(log_.take(), IsEmpty());
}

TEST_F(ParticipantsTest, AClientThatWritesNoProfileOfMemorySaysSo) {
  LoggingClient client(log_);
  client.start_memory_profile();
  client.stop_memory_profile();
  const Result<> exported = client.export_memory_profile("memory.pickle");
  EXPECT_EQ(exported.error().code, ErrorCode::unsupported);
  EXPECT_THAT(exported.error().message, HasSubstr("memory.pickle"));
}

TEST_F(ParticipantsTest, AnExceptionOfTheClientIsShownAndEndsNothing) {
  LoggingClient client(log_);
  client.throws_at_start = true;
  Session session(Config{});
  ASSERT_TRUE(session.set_client(&client));
  const CollectingSink sink = profile_once(session);
  EXPECT_EQ(sink.kernels.size(), 1u);
  EXPECT_EQ(sink.cpu_operations.size(), 1u) << "it was stopped all the same";
  EXPECT_THAT(errors_of(session), ElementsAre("client: it failed to start: the framework is busy"));
}

TEST_F(ParticipantsTest, TwoChildrenEachHaveRowsAndFactsOfTheirOwn) {
  add_child("first");
  add_child("second", "", true);
  Session session(Config{});
  const CollectingSink sink = profile_once(session);
  std::vector<std::string> seen;
  for (const CpuOperationActivity& operation : sink.cpu_operations)
    seen.push_back(operation.process->name + "/" + operation.thread->name + ": " + operation.name->text);
  const std::string program = sink.calls.at(0).process->name;
  EXPECT_THAT(seen, testing::UnorderedElementsAre(program + "/: first of the program", program + "/: second of the program",
                                                  "first/unit three: first work", "second/unit three: second work"));
  for (const CpuOperationActivity& operation : sink.cpu_operations) {
    if (operation.process->name != "first") continue;
    EXPECT_LT(operation.start_ns, sink.kernels[0].start_ns) << "the window begins with the session";
    EXPECT_GT(operation.duration_ns, 0u);
  }
  EXPECT_EQ(sink.info->participants.size(), 2u);
  const Json children = Json::parse(chrome_json(session))["childProfilers"];
  ASSERT_EQ(children.size(), 2u);
  EXPECT_EQ(children[0], Json::parse(R"({"name": "first", "errors": [], "metadata": {"version": "7"},
                                         "deviceProperties": [{"id": 0, "name": "first device"}]})"));
  EXPECT_EQ(children[1]["errors"], Json::parse(R"(["a unit was hot"])"));
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report);
  EXPECT_THAT(report->participant_errors, ElementsAre("second: a unit was hot"));
  EXPECT_THAT(report_text(*report, {}), HasSubstr("second: a unit was hot"));
  EXPECT_THAT(report_json(*report), HasSubstr("\"participant_errors\": [\"second: a unit was hot\"]"));
}

TEST_F(ParticipantsTest, NoWorkIsLinkedToWhatAChildShows) {
  add_child("child");
  Session session(Config{});
  ASSERT_TRUE(session.start());
  ActivityApi::push_correlation_id(kOperationFamily, 1);  // which the child's work has, too
  publisher_.run();
  ActivityApi::pop_correlation_id(kOperationFamily);
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(collect(session).kernels.at(0).operation, nullptr);
}

TEST_F(ParticipantsTest, WhateverAChildDoesNeitherTheSessionNorTheOtherChildIsConcerned) {
  for (const std::string name : {"polite", "rude"}) {
    for (const std::string step : {"configure", "start", "toggle", "push", "pop", "stop", "process", "resource_infos", "trace_buffer",
                                   "metadata", "device_properties", "errors"}) {
      const bool may_return_an_error = step == "configure" || step == "start" || step == "stop";
      if (name == "polite" && !may_return_an_error) continue;
      ASSERT_TRUE(register_child_profiler(name, [&] { return std::make_unique<LoggingChild>(log_, name, step); }));
      ASSERT_TRUE(register_child_profiler("other", [&] { return std::make_unique<LoggingChild>(log_, "other", ""); }));
      {
        Session session(Config{});
        ASSERT_TRUE(session.start());
        publisher_.run();
        session.toggle(false);
        session.toggle(true);
        ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 1);
        ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
        ASSERT_TRUE(session.stop());
        const CollectingSink sink = collect(session);
        EXPECT_EQ(sink.kernels.size(), 1u);
        const std::vector<std::string> errors = errors_of(session);
        ASSERT_EQ(errors.size(), step == "toggle" ? 2u : 1u) << name << ' ' << step;
        EXPECT_THAT(errors[0], testing::MatchesRegex(name + ": it failed to .*: no more units"));
        std::vector<std::string> of_other;
        for (const std::string& call : log_.take()) {
          if (call.starts_with("other ")) of_other.push_back(call.substr(6));
          if (step == "configure") {
            EXPECT_NE(call, name + " start") << "it takes no part";
          }
        }
        EXPECT_THAT(of_other, ElementsAre("configure 128", "start", "toggle off", "toggle on", "push 1 of family 2", "pop of family 2",
                                          "stop", "process", "resource_infos", "trace_buffer", "metadata", "device_properties", "errors"));
      }
      EXPECT_TRUE(unregister_child_profiler(name));
      EXPECT_TRUE(unregister_child_profiler("other"));
      log_.take();
    }
  }
}

TEST_F(ParticipantsTest, AFactoryThatMakesNoneOrThrowsIsShown) {
  ASSERT_TRUE(register_child_profiler("none", [] { return std::unique_ptr<ChildProfiler>(); }));
  ASSERT_TRUE(register_child_profiler("throws", []() -> std::unique_ptr<ChildProfiler> { throw 7; }));
  registered_ = {"none", "throws"};
  Session session(Config{});
  EXPECT_EQ(profile_once(session).kernels.size(), 1u);
  EXPECT_THAT(errors_of(session), ElementsAre("none: it failed to be made: its factory made none",
                                              "throws: it failed to be made: an exception of a type that nobody knows"));
}

TEST_F(ParticipantsTest, EachSessionHasChildrenOfItsOwnOfAllThatAreRegisteredWhenItPrepares) {
  add_child("early");
  Session first(Config{}), second(Config{});
  ASSERT_TRUE(first.prepare());
  add_child("late");
  EXPECT_THAT(log_.take(), ElementsAre("early configure 128"));
  ASSERT_TRUE(second.prepare());
  EXPECT_THAT(log_.take(), ElementsAre("early configure 128", "late configure 128"));
  ASSERT_TRUE(first.start());
  EXPECT_THAT(log_.take(), ElementsAre("early start"));
  ASSERT_TRUE(second.start());
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 1);
  ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
  log_.take();
  first.toggle(false);
  EXPECT_THAT(log_.take(), ElementsAre("early toggle off")) << "of the first session only";
  ASSERT_TRUE(first.stop());
  ASSERT_TRUE(second.stop());
  EXPECT_THAT(log_.take(), ElementsAre("early stop", "early stop", "late stop"));
}

TEST_F(ParticipantsTest, ACancelledOrAbandonedSessionStopsThem) {
  add_child("child");
  LoggingClient client(log_);
  {
    Session session(Config{});
    ASSERT_TRUE(session.set_client(&client));
    ASSERT_TRUE(session.start());
    log_.take();
    session.cancel();
    EXPECT_THAT(log_.take(), ElementsAre("client stop", "child stop"));
    EXPECT_FALSE(client.trace_taken);
    session.cancel();
    EXPECT_THAT(log_.take(), IsEmpty());
  }
  {
    Session session(Config{});
    ASSERT_TRUE(session.prepare());
    log_.take();
  }
  EXPECT_THAT(log_.take(), ElementsAre("child stop", "child ends"));
}

TEST_F(ParticipantsTest, NamesAreGivenOnce) {
  add_child("child");
  const auto make = [] { return std::unique_ptr<ChildProfiler>(); };
  EXPECT_EQ(register_child_profiler("child", make).error().message, "there is a child profiler called 'child' already");
  EXPECT_EQ(register_child_profiler("", make).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(register_child_profiler("other", {}).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(unregister_child_profiler("other"));
}

TEST_F(ParticipantsTest, ErrorsAreKeptUpToABound) {
  ParticipantLog log("child");
  for (int error = 0; error < 150; ++error) log.add_errors({"error " + std::to_string(error)});
  const ParticipantReport report = log.report();
  ASSERT_EQ(report.errors.size(), 101u);
  EXPECT_EQ(report.errors[99], "error 99");
  EXPECT_EQ(report.errors[100], "and 50 more");
}

}  // namespace
}  // namespace xpu::profiler
