// What a framework transfers to a session over this process: when it is taken, and what becomes of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/busy_program.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/profiler/trace_checker.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::TestPublisher;
using testing::HasSubstr;
using Json = nlohmann::json;

/// What a framework does: it numbers its operations, and keeps what it did until it hands it over.
class FrameworkOfTest {
 public:
  explicit FrameworkOfTest(const Session& session) : clock_(session.clock_domain()) {}

  std::uint64_t begin(std::string name, ActivityKind kind = ActivityKind::cpu_op) {
    CpuOperation& operation = trace.operations.emplace_back();
    operation.name = std::move(name);
    operation.kind = kind;
    operation.start_ns = now();
    operation.thread = static_cast<std::uint32_t>(gettid());
    const CorrelationFamily family = kind == ActivityKind::user_annotation ? kUserAnnotationFamily : kOperationFamily;
    operation.external_id = ExternalId{trace.operations.size(), static_cast<std::uint32_t>(family)};
    ActivityApi::push_correlation_id(family, operation.external_id->id);
    return operation.external_id->id;
  }
  void end(std::uint64_t id) {
    CpuOperation& operation = trace.operations[id - 1];
    operation.end_ns = now();
    ActivityApi::pop_correlation_id(static_cast<CorrelationFamily>(operation.external_id->family));
  }
  /// An operation that launches so many kernels.
  std::uint64_t run(std::string name, int launches) {
    const std::uint64_t id = begin(std::move(name));
    for (int launch = 0; launch < launches; ++launch) TestPublisher::instance().run();
    end(id);
    return id;
  }
  CpuOperation& operation(std::uint64_t id) { return trace.operations[id - 1]; }

  CpuTrace trace;

 private:
  /// Never twice the same, and never that of a call: equal times of neighbours say nothing about their order.
  std::int64_t now() {
    const std::uint64_t before = now_ns(clock_);
    while (now_ns(clock_) == before) {
    }
    return static_cast<std::int64_t>(now_ns(clock_));
  }
  ClockDomain clock_;
};

class CpuTraceTest : public testing::Test {
 protected:
  CpuTraceTest() : publisher_(TestPublisher::instance()) { EXPECT_EQ(probe::subscriber(), nullptr); }
  ~CpuTraceTest() override { EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still"; }

  static CpuTrace some_trace() {
    CpuTrace trace;
    trace.operations.resize(3);
    for (CpuOperation& operation : trace.operations) operation.name = "op";
    return trace;
  }
  static CollectingSink collect(Session& session) {
    CollectingSink sink;
    EXPECT_TRUE(session.run({&sink}));
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

  TestPublisher& publisher_;
};

TEST_F(CpuTraceTest, IsTakenFromTheStartUntilTheFirstRunAndElseCounted) {
  Session session(Config{});
  const Result<> early = session.transfer_cpu_trace(some_trace());
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(early.error().message, "a CPU trace of 3 operations is discarded: the session is created, and must have been started");
  ASSERT_TRUE(session.prepare());
  EXPECT_THAT(session.transfer_cpu_trace(some_trace()).error().message, HasSubstr("the session is warming up"));
  ASSERT_TRUE(session.start());
  EXPECT_TRUE(session.transfer_cpu_trace(some_trace()));
  session.toggle(false);
  EXPECT_TRUE(session.transfer_cpu_trace(some_trace())) << "paused, and begun";
  ASSERT_TRUE(session.stop());
  EXPECT_TRUE(session.transfer_cpu_trace(some_trace()));
  ASSERT_TRUE(session.collect());
  EXPECT_TRUE(session.transfer_cpu_trace(some_trace()));
  EXPECT_EQ(collect(session).cpu_operations.size(), 12u);
  EXPECT_THAT(session.transfer_cpu_trace(some_trace()).error().message, HasSubstr("what was collected has been linked already"));

  const CpuTraceCounts counts = session.cpu_trace_counts();
  EXPECT_EQ(counts.traces, 4u);
  EXPECT_EQ(counts.operations, 12u);
  EXPECT_EQ(counts.discarded_traces, 3u);
  EXPECT_EQ(counts.discarded_operations, 9u);
  const CollectingSink sink = collect(session);
  EXPECT_EQ(sink.cpu_operations.size(), 12u) << "the same again";
  EXPECT_EQ(sink.summary->discarded_cpu_traces, 3u);
  EXPECT_EQ(sink.summary->discarded_cpu_operations, 9u);
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->conservation.cpu_traces_discarded, 3u);
  EXPECT_EQ(report->conservation.cpu_operations_discarded, 9u);
  EXPECT_THAT(report_text(*report, {}),
              HasSubstr("3 CPU traces discarded, which came out of time; 9 operations of the framework discarded"));
  EXPECT_THAT(report_json(*report), HasSubstr("\"cpu_traces_discarded\": 3"));
}

TEST_F(CpuTraceTest, OfACancelledSessionIsDiscarded) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  EXPECT_TRUE(session.transfer_cpu_trace(some_trace()));
  session.cancel();
  EXPECT_THAT(session.transfer_cpu_trace(some_trace()).error().message, HasSubstr("the session is cancelled"));
  EXPECT_EQ(session.cpu_trace_counts().discarded_traces, 1u);
}

TEST_F(CpuTraceTest, EachSessionHasItsOwn) {
  Session session(Config{}), other(Config{});
  ASSERT_TRUE(session.start());
  ASSERT_TRUE(other.start());
  EXPECT_TRUE(session.transfer_cpu_trace(some_trace()));
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(other.stop());
  EXPECT_EQ(collect(session).cpu_operations.size(), 3u);
  EXPECT_TRUE(collect(other).cpu_operations.empty());
}

TEST_F(CpuTraceTest, OperationsOfAKindOfNoHostAreDiscardedAndCounted) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  CpuTrace trace = some_trace();
  trace.operations[1].kind = ActivityKind::gpu_memcpy;
  EXPECT_TRUE(session.transfer_cpu_trace(std::move(trace)));
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(collect(session).cpu_operations.size(), 2u);
  EXPECT_EQ(session.cpu_trace_counts().operations, 2u);
  EXPECT_EQ(session.cpu_trace_counts().discarded_operations, 1u);
  EXPECT_EQ(session.cpu_trace_counts().discarded_traces, 0u);
}

TEST_F(CpuTraceTest, ComesFromAnyThread) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) EXPECT_TRUE(session.transfer_cpu_trace(some_trace()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(collect(session).cpu_operations.size(), 600u);
}

TEST_F(CpuTraceTest, EveryKernelIsLinkedToItsOperationAndToItsAnnotation) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  FrameworkOfTest framework(session);
  const std::uint64_t step = framework.begin("step", ActivityKind::user_annotation);
  framework.run("aten::mm", 3);
  framework.run("aten::relu", 2);
  framework.end(step);
  publisher_.run();  // nobody's
  EXPECT_TRUE(session.transfer_cpu_trace(std::move(framework.trace)));
  ASSERT_TRUE(session.stop());
  const CollectingSink sink = collect(session);
  ASSERT_EQ(sink.kernels.size(), 6u);
  for (std::size_t index = 0; index < 5; ++index) {
    const auto& kernel = sink.kernels[index];
    ASSERT_NE(kernel.operation, nullptr);
    EXPECT_EQ(kernel.operation->name->text, index < 3 ? "aten::mm" : "aten::relu");
    EXPECT_LE(kernel.operation->start_ns, kernel.call_start_ns);
    EXPECT_EQ(kernel.operation->thread, kernel.call_thread);
    ASSERT_NE(kernel.annotation, nullptr);
    EXPECT_EQ(kernel.annotation->name->text, "step");
  }
  EXPECT_EQ(sink.kernels[5].operation, nullptr);
  EXPECT_EQ(sink.kernels[5].annotation, nullptr);
  ASSERT_EQ(sink.device_annotations.size(), 1u);
  const auto& span = sink.device_annotations[0];
  EXPECT_EQ(span.own_name, "step");
  EXPECT_EQ(span.commands, 5u);
  EXPECT_EQ(span.start_ns, sink.kernels[0].start_ns);
  EXPECT_EQ(span.start_ns + static_cast<std::int64_t>(span.duration_ns),
            sink.kernels[4].start_ns + sink.kernels[4].nudge_ns + static_cast<std::int64_t>(sink.kernels[4].duration_ns));
}

TEST_F(CpuTraceTest, TheTraceOfASessionWithItPassesTheChecker) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  FrameworkOfTest framework(session);
  test_support::annotate_now(probe::AnnotationType::begin, "epoch");
  const std::uint64_t step = framework.begin("step", ActivityKind::user_annotation);
  std::vector<std::uint64_t> forward, backward;
  for (int layer = 0; layer < 4; ++layer) forward.push_back(framework.run("forward", 2));
  for (int layer = 0; layer < 4; ++layer) backward.push_back(framework.run("backward", 3));
  for (std::size_t layer = 0; layer < 4; ++layer) {
    framework.operation(forward[layer]).flow = CpuFlow{layer + 1, CpuFlowKind::forward_backward, true};
    framework.operation(backward[3 - layer]).flow = CpuFlow{layer + 1, CpuFlowKind::forward_backward, false};
  }
  framework.end(step);
  test_support::annotate_now(probe::AnnotationType::end, {});
  framework.begin("never ends");
  ActivityApi::pop_correlation_id(kOperationFamily);
  const std::uint64_t before_stop_ns = now_ns(session.clock_domain());
  ASSERT_TRUE(session.stop());
  const std::uint64_t after_stop_ns = now_ns(session.clock_domain());
  EXPECT_TRUE(session.transfer_cpu_trace(std::move(framework.trace)));
  const std::string text = chrome_json(session);
  std::istringstream input(text);
  const Result<TraceCheck> check = TraceChecker().check(input);
  ASSERT_TRUE(check);
  for (const TraceFinding& finding : check->findings) ADD_FAILURE() << finding.rule->name << ": " << finding.places.at(0).detail;
  EXPECT_EQ(check->kernels, 20u);
  EXPECT_EQ(check->flows, 24u) << "20 launches and 4 layers";

  const Json document = Json::parse(text);
  std::map<std::string, std::vector<Json>> events;
  for (const Json& event : document["traceEvents"]) events[event.value("cat", "")].push_back(event);
  ASSERT_EQ(events["cpu_op"].size(), 9u);
  ASSERT_EQ(events["user_annotation"].size(), 2u);
  EXPECT_EQ(events["fwdbwd"].size(), 8u);
  for (std::size_t index = 0; index < 20; ++index) {
    EXPECT_EQ(events["kernel"][index]["args"]["External id"], index < 8 ? forward[index / 2] : backward[(index - 8) / 3]);
    EXPECT_DOUBLE_EQ(events["kernel"][index]["dur"], 1.0);
  }
  const auto thousandths = [](const Json& microseconds) { return std::llround(microseconds.get<double>() * 1'000); };
  ASSERT_EQ(events["gpu_user_annotation"].size(), 2u);
  for (const Json& span : events["gpu_user_annotation"]) {
    EXPECT_EQ(span["args"]["commands"], 20);
    EXPECT_EQ(span["ts"], events["kernel"].front()["ts"]);
    EXPECT_EQ(thousandths(span["ts"]) + thousandths(span["dur"]), thousandths(events["kernel"].back()["ts"]) + 1'000);
  }
  EXPECT_EQ(events["gpu_user_annotation"][0]["name"], "epoch");
  EXPECT_EQ(events["gpu_user_annotation"][1]["name"], "step");
  EXPECT_EQ(events["cpu_op"].back()["args"]["finished"], false);
  const CollectingSink sink = collect(session);
  const CpuOperationActivity& unfinished = sink.cpu_operations.back();
  EXPECT_GE(static_cast<std::uint64_t>(unfinished.start_ns) + unfinished.duration_ns, before_stop_ns);
  EXPECT_LE(static_cast<std::uint64_t>(unfinished.start_ns) + unfinished.duration_ns, after_stop_ns);
}

TEST_F(CpuTraceTest, TheKindOfDeviceAnnotationsSwitchesThemOnAndOff) {
  for (const bool is_wanted : {true, false}) {
    Config config;
    config.kinds = {ActivityKind::kernel};
    if (is_wanted) config.kinds.insert(ActivityKind::gpu_user_annotation);
    Session session(config);
    ASSERT_TRUE(session.start());
    test_support::annotate_now(probe::AnnotationType::begin, "range");
    ActivityApi::push_correlation_id(kUserAnnotationFamily, 42);
    publisher_.run();
    publisher_.complete(publisher_.copy(64), 5'000);  // longer, and not wanted
    ActivityApi::pop_correlation_id(kUserAnnotationFamily);
    test_support::annotate_now(probe::AnnotationType::end, {});
    ASSERT_TRUE(session.stop());
    const CollectingSink sink = collect(session);
    EXPECT_TRUE(sink.annotations.empty()) << "of the host";
    ASSERT_EQ(sink.device_annotations.size(), is_wanted ? 2u : 0u);
    for (const auto& span : sink.device_annotations) EXPECT_EQ(span.duration_ns, 1'000u) << "of what is shown";
  }
}

TEST_F(CpuTraceTest, OnlyWantedKindsAreShown) {
  Config config;
  config.kinds = {ActivityKind::kernel, ActivityKind::cpu_op};
  Session session(config);
  ASSERT_TRUE(session.start());
  CpuTrace trace = some_trace();
  trace.operations[0].kind = ActivityKind::python_function;
  EXPECT_TRUE(session.transfer_cpu_trace(std::move(trace)));
  ASSERT_TRUE(session.stop());
  EXPECT_EQ(collect(session).cpu_operations.size(), 2u);
}

}  // namespace
}  // namespace xpu::profiler
