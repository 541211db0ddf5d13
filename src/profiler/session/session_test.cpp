// A session over this process: its life, and what is part of the profile. The test publishes as a driver's publisher would.

#include "xpu/profiler/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "base/probe.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/trace_checker.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::TestPublisher;
using testing::HasSubstr;

class SessionTest : public testing::Test {
 protected:
  SessionTest() : publisher_(TestPublisher::instance()) { EXPECT_EQ(probe::subscriber(), nullptr); }
  ~SessionTest() override { EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still"; }

  static CollectingSink collect(Session& session) {
    CollectingSink sink;
    const Result<LinkSummary> summary = session.run({&sink});
    EXPECT_TRUE(summary) << summary.error().message;
    return sink;
  }
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
  static void expect_nothing_found(const std::string& trace) {
    std::istringstream input(trace);
    const Result<TraceCheck> check = TraceChecker().check(input);
    ASSERT_TRUE(check);
    for (const TraceFinding& finding : check->findings) {
      if (finding.rule->severity != Severity::error) continue;  // that calls are left out is worth a remark
      ADD_FAILURE() << finding.rule->name << ": " << finding.count << ' ' << finding.places.at(0).detail;
    }
  }

  TestPublisher& publisher_;
};

TEST_F(SessionTest, GoesThroughItsLifeInOrder) {
  Session session(Config{});
  EXPECT_EQ(session.state(), SessionState::created);
  EXPECT_EQ(probe::subscriber(), nullptr) << "nothing is recorded before somebody says so";
  ASSERT_TRUE(session.prepare());
  EXPECT_EQ(session.state(), SessionState::warmup);
  ASSERT_TRUE(session.start());
  EXPECT_EQ(session.state(), SessionState::collecting);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(session.state(), SessionState::stopped);
  ASSERT_TRUE(session.collect());
  EXPECT_EQ(session.state(), SessionState::collected);
  EXPECT_EQ(probe::subscriber(), nullptr);
  EXPECT_EQ(collect(session).kernels.size(), 1u);
  EXPECT_EQ(collect(session).kernels.size(), 1u) << "as often as wanted";
}

TEST_F(SessionTest, StepsOutOfOrderAreRefusedInASentence) {
  Session session(Config{});
  EXPECT_THAT(session.stop().error().message, HasSubstr("cannot stop: it is created, and must be collecting"));
  EXPECT_EQ(session.stop().error().code, ErrorCode::failed_precondition);
  EXPECT_FALSE(session.collect());
  EXPECT_FALSE(session.run());
  session.toggle(false);
  ASSERT_TRUE(session.start());
  EXPECT_THAT(session.prepare().error().message, HasSubstr("cannot prepare: it is collecting"));
  EXPECT_THAT(session.start().error().message, HasSubstr("cannot start: it is collecting, and must be warming up"));
  ASSERT_TRUE(session.stop());
  EXPECT_FALSE(session.stop());
  session.cancel();
  EXPECT_EQ(session.state(), SessionState::cancelled);
  EXPECT_FALSE(session.run());
  EXPECT_FALSE(session.start());
}

TEST_F(SessionTest, WarmUpLeavesNothingInTheTrace) {
  Session session(Config{});
  ASSERT_TRUE(session.prepare());
  for (int launch = 0; launch < 5'000; ++launch) publisher_.run();
  const TestPublisher::Launched across = publisher_.launch();
  ASSERT_TRUE(session.start());
  publisher_.complete(across);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  EXPECT_EQ(sink.kernels.size(), 1u);
  EXPECT_EQ(sink.summary->commands, 1u);
  EXPECT_EQ(sink.summary->orphans, 1u) << "begun before it counted: counted, and no part of the profile";
}

TEST_F(SessionTest, WhatEndsAfterTheStopIsCountedAndKeptUnlessItIsNotWanted) {
  for (const bool keeps : {true, false}) {
    Config config;
    config.keeps_late_commands = keeps;
    Session session(config);
    ASSERT_TRUE(session.start());
    publisher_.run();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it says that it ran for a microsecond
    const TestPublisher::Launched late = publisher_.launch();
    ASSERT_TRUE(session.stop());
    publisher_.complete(late, 3'600'000'000'000);  // surely longer than this test
    const CollectingSink sink = collect(session);
    ASSERT_EQ(sink.kernels.size(), keeps ? 2u : 1u);
    EXPECT_FALSE(sink.kernels[0].ends_late);
    EXPECT_EQ(sink.kernels.back().ends_late, keeps);
    EXPECT_EQ(sink.summary->errors, (ErrorStatistics{.out_of_range = 1}));
    EXPECT_EQ(sink.summary->linked, 2u) << "the books are not changed by what is shown";
    expect_nothing_found(chrome_json(session));
    EXPECT_EQ(chrome_json(session).find("after the stop") != std::string::npos, keeps);
  }
}

TEST_F(SessionTest, WhatItIsAboutIsKnownInEverySession) {
  for (int round = 0; round < 3; ++round) {
    Session session(Config{});
    ASSERT_TRUE(session.start());
    publisher_.run();
    ASSERT_TRUE(session.stop());
    CollectingSink sink;
    ASSERT_TRUE(session.run({&sink}));
    ASSERT_EQ(sink.kernels.size(), 1u);
    const auto& kernel = sink.kernels[0];
    EXPECT_EQ(kernel.kernel->name, "test_kernel");
    EXPECT_EQ(kernel.queue->device->name, "test device");
    ASSERT_NE(kernel.geometry, nullptr);
    EXPECT_EQ(kernel.geometry->global[0], 256u);
    EXPECT_TRUE(kernel.placed);
    EXPECT_EQ(kernel.duration_ns, 1'000u);
    EXPECT_EQ(kernel.start_ns, kernel.call_start_ns + 100);
    EXPECT_EQ(sink.calls[0].api->text, "testLaunch");
    EXPECT_EQ(sink.calls[0].thread->os_thread, static_cast<std::uint32_t>(gettid()));
    EXPECT_EQ(sink.calls[0].process->pid, static_cast<std::uint64_t>(getpid()));
  }
}

TEST_F(SessionTest, OnlyTheKindsThatWereAskedForReachASink) {
  Config config;
  config.kinds = {ActivityKind::kernel};
  Session session(config);
  ASSERT_TRUE(session.start());
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 7);
  publisher_.run();
  ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
  publisher_.complete(publisher_.copy(64));
  publisher_.call("testQuery");
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  ASSERT_EQ(sink.kernels.size(), 1u);
  EXPECT_FALSE(sink.kernels[0].has_call) << "no arrow may begin at a call that is not shown";
  EXPECT_TRUE(sink.calls.empty());
  EXPECT_TRUE(sink.copies.empty());
  EXPECT_TRUE(sink.external.empty());
  ASSERT_EQ(sink.kernels[0].external_ids.size(), 1u) << "without a call to carry it";
  EXPECT_EQ(sink.kernels[0].external_ids[0], (ExternalId{7, 2}));
  expect_nothing_found(chrome_json(session));
}

TEST_F(SessionTest, EachReplayOfAGraphHasACommandForEachNode) {
  constexpr std::uint64_t kGraph = 7, kReplays = 5, kNodes = 4;
  Session session(Config{});
  ASSERT_TRUE(session.start());
  for (std::uint64_t replay = 0; replay < kReplays; ++replay) {
    for (std::uint64_t node = 1; node <= kNodes; ++node) publisher_.complete(publisher_.replay(kGraph, node), 10);
  }
  publisher_.run();
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  ASSERT_EQ(sink.kernels.size(), kReplays * kNodes + 1);
  std::map<std::uint64_t, std::uint64_t> replays;  // by node
  for (const auto& kernel : sink.kernels) {
    if (!kernel.graph_node) continue;
    EXPECT_EQ(kernel.graph_node->graph, kGraph);
    ++replays[kernel.graph_node->node];
  }
  EXPECT_EQ(replays, (std::map<std::uint64_t, std::uint64_t>{{1, kReplays}, {2, kReplays}, {3, kReplays}, {4, kReplays}}));
  const std::string trace = chrome_json(session);
  EXPECT_THAT(trace, HasSubstr("\"graph id\":7,\"graph node id\":4"));
  expect_nothing_found(trace);
}

TEST_F(SessionTest, CommunicationIsAskedForByItsKind) {
  for (const bool is_asked_for : {true, false}) {
    Config config;
    config.kinds = {ActivityKind::kernel};
    if (is_asked_for) config.kinds.insert(ActivityKind::collective_comm);
    Session session(config);
    ASSERT_TRUE(session.start());
    ASSERT_NE(probe::subscriber(), nullptr);
    EXPECT_EQ((probe::subscriber()->wanted & probe::kAnnotations) != 0, is_asked_for);
    const std::uint64_t now = now_ns(probe::clock_domain());
    probe::subscriber()->communicate({.begin_ns = now, .end_ns = now + 5, .send_bytes = 1, .communicator = 2, .name = "broadcast"});
    ASSERT_TRUE(session.stop());
    const CollectingSink sink = collect(session);
    ASSERT_EQ(sink.communications.size(), is_asked_for ? 1u : 0u);
    if (is_asked_for) {
      EXPECT_EQ(sink.communications[0].name->text, "broadcast");
      EXPECT_EQ(sink.communications[0].communicator, 2u);
    }
  }
}

TEST_F(SessionTest, ACommandPointsToTheCallOfADriverWhereThatIsShown) {
  for (const ActivityKind shown : {ActivityKind::xpu_runtime, ActivityKind::xpu_driver}) {
    Config config;
    config.kinds = {ActivityKind::kernel, shown};
    Session session(config);
    ASSERT_TRUE(session.start());
    publisher_.complete(publisher_.launch("zeCommandListAppendLaunchKernel"), 10);
    publisher_.complete(publisher_.launch("testLaunch"), 10);
    ASSERT_TRUE(session.stop());
    const CollectingSink sink = collect(session);
    ASSERT_EQ(sink.kernels.size(), 2u);
    EXPECT_EQ(sink.kernels[0].has_call, shown == ActivityKind::xpu_driver);
    EXPECT_EQ(sink.kernels[1].has_call, shown == ActivityKind::xpu_runtime);
  }
}

TEST_F(SessionTest, EveryKindHasItsHandler) {
  Config config;
  config.kinds = default_activity_kinds();
  config.kinds.insert(ActivityKind::xpu_driver);
  Session session(config);
  ASSERT_TRUE(session.start());
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 5);
  ActivityApi::push_correlation_id(CorrelationFamily::custom_1, 6);
  publisher_.run();
  ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
  ActivityApi::pop_correlation_id(CorrelationFamily::custom_1);
  publisher_.complete(publisher_.copy(64));
  publisher_.complete(publisher_.copy(128, true));
  publisher_.complete(publisher_.launch("zeCommandListAppendLaunchKernel"));
  publisher_.call("testQuery");
  publisher_.call("zeta");  // no function of Level Zero
  publisher_.call("zetMetricGroupGet");
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  EXPECT_EQ(sink.kernels.size(), 2u);
  EXPECT_EQ(sink.copies.size(), 2u);
  EXPECT_EQ(sink.peer_copies, 1u);
  EXPECT_EQ(sink.driver_calls.size(), 2u);
  EXPECT_EQ(sink.calls.size(), 5u);
  ASSERT_EQ(sink.external.size(), 2u);
  EXPECT_EQ(sink.external[0].external, (ExternalId{5, 2}));
  EXPECT_EQ(sink.external[1].external, (ExternalId{6, 3}));
  EXPECT_EQ(sink.external[0].correlation, sink.kernels[0].correlation);
}

TEST_F(SessionTest, TogglingBetweenPushAndPopLeavesNoStaleNumber) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 1);
  session.toggle(false);
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), 1u);
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), std::nullopt) << "no exception in user code";
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 2);
  publisher_.run();
  session.toggle(true);
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), 2u);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  ASSERT_EQ(sink.kernels.size(), 1u);
  EXPECT_TRUE(sink.kernels[0].external_ids.empty());
  ASSERT_EQ(sink.annotations.size(), 2u);
  EXPECT_EQ(sink.annotations[0].text->text, "xpu: collection paused");
  EXPECT_EQ(sink.annotations[1].text->text, "xpu: collection resumed");
  EXPECT_LE(sink.annotations[0].start_ns, sink.annotations[1].start_ns);
}

TEST_F(SessionTest, AnyThreadMayToggleAtAnyTime) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&] {
      while (!done) {
        ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 9);
        publisher_.run();
        EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), 9u);
      }
    });
  }
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&, index] {
      for (int round = 0; round < 50; ++round) session.toggle((round + index) % 2 == 0);
    });
  }
  for (std::size_t index = 2; index < threads.size(); ++index) threads[index].join();
  session.toggle(true);
  done = true;
  threads[0].join();
  threads[1].join();
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  EXPECT_EQ(sink.summary->pending, 0u);
  EXPECT_EQ(sink.summary->orphans, 0u) << "what was being submitted at a pause is part of the profile";
  for (const auto& kernel : sink.kernels) {
    ASSERT_EQ(kernel.external_ids.size(), 1u);
    EXPECT_EQ(kernel.external_ids[0].id, 9u);
  }
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->conservation.unexplained, 0);
  EXPECT_EQ(report->conservation.submitted, sink.kernels.size());
}

TEST_F(SessionTest, TheBooksBalanceWhereThreadsGoOnBeforeAndAfter) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([&] {
      while (!done) publisher_.run();
    });
  }
  for (int round = 0; round < 20; ++round) {
    Config config;
    config.max_buffer_mib = 512;
    Session session(config);
    ASSERT_TRUE(session.prepare());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(session.start());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(session.stop());
    const Result<Report> report = make_report(session, {});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->conservation.unexplained, 0) << round;
    EXPECT_EQ(report->conservation.pending, 0u) << round;
    EXPECT_EQ(report->conservation.lost, 0u) << round;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SessionTest, WhatStillRunsAtTheStopIsWaitedForAndElseKept) {
  Session patient(Config{});
  ASSERT_TRUE(patient.start());
  const TestPublisher::Launched late = publisher_.launch();
  ASSERT_TRUE(patient.stop());
  EXPECT_EQ(publisher_.launch().id, 0u) << "nothing new begins";
  std::thread device([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    publisher_.complete(late);
  });
  CollectingSink sink = collect(patient);
  device.join();
  EXPECT_EQ(sink.summary->linked, 1u);

  Session impatient(Config{});
  ASSERT_TRUE(impatient.start());
  publisher_.launch();
  ASSERT_TRUE(impatient.stop());
  ASSERT_TRUE(impatient.collect(std::chrono::milliseconds(1)));
  sink = collect(impatient);
  ASSERT_EQ(sink.kernels.size(), 1u);
  EXPECT_EQ(sink.kernels[0].state, CommandState::pending);
  EXPECT_EQ(sink.summary->pending, 1u);
}

TEST_F(SessionTest, TheBooksBalanceAndALimitIsCountedToTheRecord) {
  constexpr std::uint64_t kLaunches = 40'000;
  Config config;
  config.max_buffer_mib = 1;
  Session session(config);
  ASSERT_TRUE(session.start());
  for (std::uint64_t launch = 0; launch < kLaunches; ++launch) publisher_.run();
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(session.collect(std::chrono::milliseconds(1)));
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->conservation.submitted, kLaunches);
  EXPECT_EQ(report->conservation.unexplained, 0);
  EXPECT_GT(report->conservation.lost, 0u);
  EXPECT_EQ(report->conservation.recorded + report->conservation.lost + report->conservation.pending, kLaunches);
}

TEST_F(SessionTest, WhatFillsTheMemoryHasAPlaceInTime) {
  Config config;
  config.max_buffer_mib = 1;
  Session session(config);
  ASSERT_TRUE(session.start());
  for (int launch = 0; launch < 40'000; ++launch) publisher_.run();
  ASSERT_TRUE(session.stop());
  // By a thread that finds no room for a reading of the clock.
  std::thread([&] { EXPECT_TRUE(session.collect(std::chrono::milliseconds(1))); }).join();
  const CollectingSink sink = collect(session);
  EXPECT_GT(sink.summary->linked, 1'000u);
  EXPECT_EQ(sink.summary->unplaced, 0u);
}

TEST_F(SessionTest, TheBooksBalanceWithPausesAndASecondSession) {
  Session session(Config{}), other(Config{});
  ASSERT_TRUE(session.start());
  publisher_.run();
  ASSERT_TRUE(other.start());
  publisher_.run();
  session.toggle(false);
  publisher_.run();
  publisher_.run();
  session.toggle(true);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  publisher_.run();
  ASSERT_TRUE(other.stop());
  const Result<Report> of_session = make_report(session, {}), of_other = make_report(other, {});
  ASSERT_TRUE(of_session && of_other);
  EXPECT_EQ(of_session->conservation.submitted, 3u);
  EXPECT_EQ(of_session->conservation.recorded, 3u);
  EXPECT_EQ(of_session->conservation.unexplained, 0);
  EXPECT_EQ(of_other->conservation.submitted, 5u);
  EXPECT_EQ(of_other->conservation.unexplained, 0);
}

TEST_F(SessionTest, WhatBeganBeforeTheSessionIsInNoFigure) {
  Session session(Config{});
  ASSERT_TRUE(session.prepare());
  const TestPublisher::Launched before = publisher_.launch();
  ASSERT_TRUE(session.start());
  publisher_.complete(before);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->conservation.submitted, 1u);
  EXPECT_EQ(report->conservation.recorded, 1u);
  EXPECT_EQ(report->conservation.unexplained, 0);
}

TEST_F(SessionTest, ACancelledSessionKeepsNothing) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  publisher_.run();
  session.cancel();
  EXPECT_EQ(probe::subscriber(), nullptr);
}

TEST_F(SessionTest, SessionsOneAfterTheOtherTakeNoMemory) {
  const auto resident_kib = [] {
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    unsigned long size = 0, resident = 0;
    if (file == nullptr || std::fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
    if (file != nullptr) std::fclose(file);
    return resident * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) / 1'024;
  };
  const auto one_session = [&] {
    Session session(Config{});
    ASSERT_TRUE(session.prepare());
    publisher_.run();
    ASSERT_TRUE(session.start());
    for (int launch = 0; launch < 50; ++launch) publisher_.run();
    ASSERT_TRUE(session.stop());
    ASSERT_EQ(collect(session).kernels.size(), 50u);
  };
  for (int round = 0; round < 50; ++round) one_session();
  const unsigned long before_kib = resident_kib();
  for (int round = 0; round < 1'000; ++round) one_session();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident_kib(), before_kib + 2'048);
#else
  static_cast<void>(before_kib);
#endif
}

TEST_F(SessionTest, ATraceOfASessionPassesTheChecker) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  for (int launch = 0; launch < 100; ++launch) publisher_.run();
  session.toggle(false);
  session.toggle(true);
  publisher_.complete(publisher_.copy(64));
  ASSERT_TRUE(session.stop());
  expect_nothing_found(chrome_json(session));
}

}  // namespace
}  // namespace xpu::profiler
