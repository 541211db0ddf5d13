// What a framework brings to a profile, as both formats of timelines show it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "profiler/test_support/framework_trace.hpp"
#include "profiler/test_support/perfetto_reader.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "profiler/test_support/written_trace.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/perfetto_sink.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::add_command_with_ids;
using test_support::annotation_id;
using test_support::cpu_operation;
using test_support::findings_in;
using test_support::operation_id;
using test_support::PerfettoEvent;
using test_support::PerfettoTrace;
using test_support::ScriptedSource;
using test_support::user_annotation;
using test_support::with_flow;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Json = nlohmann::json;

/// A framework that runs two operations forward and one backward in a step; two kernels are theirs.
struct Framework {
  Framework() {
    source.add_simple_process();
    add_command_with_ids(source, {.start = 5'000, .end = 5'300, .enter_ns = 2'100, .exit_ns = 2'200}, {operation_id(11), annotation_id(1)});
    add_command_with_ids(source, {.start = 5'300, .end = 5'500, .enter_ns = 3'100, .exit_ns = 3'200}, {operation_id(12), annotation_id(1)});
    trace.operations.push_back(user_annotation("step", 1'500, 4'500, annotation_id(1)));
    trace.operations.push_back(with_flow(cpu_operation("aten::mm", 2'000, 2'500, operation_id(11)), 5, true));
    trace.operations.back().arguments = {{"Sequence number", std::int64_t{3}},
                                         {"Input Dims", std::vector<std::vector<std::int64_t>>{{2, 3}, {3, 4}}},
                                         {"Input type", std::vector<std::string>{"float", "float"}},
                                         {"Module Hierarchy", "net \"a\""},
                                         {"ratio", 0.5},
                                         {"fused", true}};
    trace.operations.push_back(with_flow(cpu_operation("MmBackward0", 3'000, 3'500, operation_id(12)), 5, false));
    trace.operations.push_back(cpu_operation("[memory]", 3'600, 0, {}, ActivityKind::cpu_instant_event));
    trace.operations.push_back(cpu_operation("train.py(7): step", 1'400, 0, {}, ActivityKind::python_function));
  }

  Session& session() {
    if (!session_) {
      session_ = std::make_unique<Session>(source);
      EXPECT_TRUE(session_->transfer_cpu_trace(trace));
    }
    return *session_;
  }
  std::string chrome_text(bool device_only = false) {
    std::string text;
    ChromeSink sink(
        [&](std::string_view piece) {
          text += piece;
          return Result<>();
        },
        {.name = "trace.json", .device_only = device_only});
    EXPECT_TRUE(session().run({&sink}));
    summary = sink.summary();
    return text;
  }
  PerfettoTrace perfetto() {
    std::string bytes;
    PerfettoSink sink(
        [&](std::string_view piece) {
          bytes += piece;
          return Result<>();
        },
        {});
    EXPECT_TRUE(session().run({&sink}));
    summary = sink.summary();
    PerfettoTrace read = test_support::read_perfetto(bytes);
    EXPECT_THAT(read.problems, IsEmpty());
    return read;
  }

  ScriptedSource source;
  CpuTrace trace;
  ExportSummary summary;

 private:
  std::unique_ptr<Session> session_;
};

std::vector<Json> events_of(const Json& document, std::string_view category) {
  std::vector<Json> found;
  for (const Json& event : document["traceEvents"]) {
    if (event.value("cat", "") == category) found.push_back(event);
  }
  return found;
}

/// In nanoseconds of the source's clock.
std::int64_t start_of(const Json& event, std::int64_t origin_ns) { return std::llround(event["ts"].get<double>() * 1'000) + origin_ns; }

constexpr std::int64_t kOriginNs = 1'000;

TEST(FrameworkTest, OperationsAreSlicesOfTheirThreadWithTheirArguments) {
  Framework framework;
  const Json document = Json::parse(framework.chrome_text());
  const std::vector<Json> operations = events_of(document, "cpu_op");
  ASSERT_EQ(operations.size(), 2u);
  const Json& forward = operations[0];
  EXPECT_EQ(forward["ph"], "X");
  EXPECT_EQ(forward["name"], "aten::mm");
  EXPECT_EQ(forward["pid"], 100);
  EXPECT_EQ(forward["tid"], 100);
  EXPECT_EQ(start_of(forward, kOriginNs), 2'000);
  EXPECT_DOUBLE_EQ(forward["dur"], 0.5);
  EXPECT_EQ(forward["args"], Json::parse(R"({"External id": 11, "Sequence number": 3, "Input Dims": [[2,3],[3,4]],
                                             "Input type": ["float","float"], "Module Hierarchy": "net \"a\"", "ratio": 0.5, "fused": true})"));
  for (const Json& call : events_of(document, "xpu_runtime")) EXPECT_EQ(call["tid"], 100) << "of the same thread";
  const std::vector<Json> annotations = events_of(document, "user_annotation");
  ASSERT_EQ(annotations.size(), 1u);
  EXPECT_EQ(annotations[0]["args"]["External id"], 1);
  EXPECT_EQ(document["writtenEvents"]["CPU operations"], 5);
}

TEST(FrameworkTest, WhatHadNotEndedSaysSoAndAMomentHasNoLength) {
  Framework framework;
  framework.source.mutable_manifest().end.known = true;
  framework.source.mutable_manifest().end.wall_ns = 8'000;
  const Json document = Json::parse(framework.chrome_text());
  const std::vector<Json> functions = events_of(document, "python_function");
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0]["args"], Json::parse(R"({"finished": false})"));
  EXPECT_DOUBLE_EQ(functions[0]["dur"], 7.6) << "until the program ended";
  const std::vector<Json> moments = events_of(document, "cpu_instant_event");
  ASSERT_EQ(moments.size(), 1u);
  EXPECT_EQ(moments[0]["ph"], "i");
  EXPECT_FALSE(moments[0].contains("dur"));
  EXPECT_FALSE(moments[0].contains("args"));
}

TEST(FrameworkTest, KernelsCarryTheNumberOfTheirOperation) {
  Framework framework;
  // Written first, and of no operation.
  add_command_with_ids(framework.source, {.start = 6'000, .end = 6'100, .enter_ns = 3'700, .exit_ns = 3'800},
                       {{5, static_cast<std::uint32_t>(CorrelationFamily::custom_3)}, operation_id(11)});
  const std::vector<Json> kernels = events_of(Json::parse(framework.chrome_text()), "kernel");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0]["args"]["External id"], 11);
  EXPECT_EQ(kernels[1]["args"]["External id"], 12);
  EXPECT_EQ(kernels[2]["args"]["External id"], 11);
}

TEST(FrameworkTest, AnArrowLeadsFromForwardToBackward) {
  Framework framework;
  const Json document = Json::parse(framework.chrome_text());
  const std::vector<Json> ends = events_of(document, "fwdbwd");
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0]["ph"], "s");
  EXPECT_EQ(ends[1]["ph"], "f");
  EXPECT_EQ(ends[1]["bp"], "e");
  for (const Json& end : ends) {
    EXPECT_EQ(end["id"], 5);
    EXPECT_EQ(end["name"], "fwdbwd");
    EXPECT_EQ(end["tid"], 100);
  }
  EXPECT_EQ(start_of(ends[0], kOriginNs), 2'000);
  EXPECT_EQ(start_of(ends[1], kOriginNs), 3'000);
  EXPECT_EQ(framework.summary.flows, 3u) << "and two from calls to kernels";
}

TEST(FrameworkTest, AnnotationsHaveARowBesideTheirQueue) {
  Framework framework;
  const Json document = Json::parse(framework.chrome_text());
  const std::vector<Json> spans = events_of(document, "gpu_user_annotation");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["name"], "step");
  EXPECT_EQ(start_of(spans[0], kOriginNs), 5'000);
  EXPECT_DOUBLE_EQ(spans[0]["dur"], 0.5);
  EXPECT_EQ(spans[0]["args"], Json::parse(R"({"device": 0, "queue": 1, "commands": 2, "External id": 1})"));
  EXPECT_EQ(spans[0]["pid"], 0) << "of the device";
  bool is_named = false;
  for (const Json& event : document["traceEvents"]) {
    if (event["name"] != "thread_name" || event["tid"] != spans[0]["tid"]) continue;
    EXPECT_EQ(event["args"]["name"], "queue 1 annotations");
    is_named = true;
  }
  EXPECT_TRUE(is_named);
}

TEST(FrameworkTest, TheTracePassesTheChecker) {
  Framework framework;
  const std::string text = framework.chrome_text();
  EXPECT_THAT(findings_in(text), IsEmpty());
  EXPECT_THAT(findings_in(framework.chrome_text(true)), ElementsAre("no-calls: 1"));
}

TEST(FrameworkTest, OfDevicesOnlyThereIsNothingOfTheHost) {
  Framework framework;
  const Json document = Json::parse(framework.chrome_text(true));
  for (const char* category : {"cpu_op", "user_annotation", "cpu_instant_event", "python_function", "fwdbwd"})
    EXPECT_THAT(events_of(document, category), IsEmpty()) << category;
  EXPECT_EQ(events_of(document, "gpu_user_annotation").size(), 1u);
  EXPECT_FALSE(document["writtenEvents"].contains("CPU operations"));
}

TEST(FrameworkTest, WhatIsLeftOutIsCountedInTheFile) {
  Framework framework;
  framework.trace.operations.push_back(with_flow(cpu_operation("lonely", 4'000, 4'100), 9, true));
  framework.trace.operations.push_back(cpu_operation("of a device", 4'200, 4'300, {}, ActivityKind::kernel));
  framework.chrome_text();
  EXPECT_FALSE(framework.session().transfer_cpu_trace({{cpu_operation("late", 1, 2), cpu_operation("late too", 1, 2)}, {}}));
  const std::string text = framework.chrome_text();
  const Json dropped = Json::parse(text)["droppedRecords"];
  EXPECT_EQ(dropped["CPU traces out of time"], 1);
  EXPECT_EQ(dropped["CPU operations discarded"], 3);
  EXPECT_EQ(dropped["dangling flow ends"], 1);
  EXPECT_THAT(findings_in(text), ElementsAre("stated-losses: 5"));
  const std::vector<PerfettoEvent> recording = framework.perfetto().of_category("xpu_recording");
  ASSERT_EQ(recording.size(), 1u);
  EXPECT_EQ(recording[0].arguments.at("CPU traces out of time"), "1");
  EXPECT_EQ(recording[0].arguments.at("CPU operations discarded"), "3");
  EXPECT_EQ(recording[0].arguments.at("dangling flow ends"), "1");
}

TEST(FrameworkTest, NothingIsSaidOfItWhereThereIsNone) {
  Framework framework;
  framework.trace.operations.clear();
  const Json dropped = Json::parse(framework.chrome_text())["droppedRecords"];
  for (const char* key : {"CPU traces out of time", "CPU operations discarded", "dangling flow ends"}) EXPECT_FALSE(dropped.contains(key));
}

TEST(FrameworkTest, PerfettoShowsTheSame) {
  Framework framework;
  const PerfettoTrace trace = framework.perfetto();
  const std::vector<PerfettoEvent> operations = trace.of_category("cpu_op");
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].name, "aten::mm");
  EXPECT_EQ(operations[0].start_ns, 2'000);
  EXPECT_EQ(operations[0].duration_ns, 500u);
  EXPECT_THAT(operations[0].arguments, ElementsAre(Pair("External id", "11"), Pair("Input Dims", "[[2,3],[3,4]]"),
                                                   Pair("Input type", "[float,float]"), Pair("Module Hierarchy", "net \"a\""),
                                                   Pair("Sequence number", "3"), Pair("fused", "true"), Pair("ratio", "0.500000")));
  EXPECT_THAT(operations[0].flow_ids, ElementsAre(5));
  EXPECT_THAT(operations[1].flow_ids, ElementsAre(5));
  EXPECT_EQ(trace.of_category("user_annotation").at(0).name, "step");
  EXPECT_EQ(trace.of_category("cpu_instant_event").at(0).name, "[memory]");
  EXPECT_EQ(trace.of_category("python_function").at(0).arguments.at("finished"), "false");
  const std::vector<PerfettoEvent> spans = trace.of_category("gpu_user_annotation");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].track, "queue 1 annotations");
  EXPECT_EQ(spans[0].name, "step");
  EXPECT_EQ(spans[0].start_ns, 5'000);
  EXPECT_EQ(spans[0].duration_ns, 500u);
  EXPECT_THAT(spans[0].arguments, ElementsAre(Pair("External id", "1"), Pair("commands", "2")));
  for (const PerfettoEvent& kernel : trace.of_category("kernel")) EXPECT_THAT(kernel.arguments, Contains(Pair("External id", testing::_)));
  EXPECT_EQ(framework.summary.flows, 3u);
}

TEST(FrameworkTest, TheDistributedProgramStandsInTheHeadAsItWasGiven) {
  Framework framework;
  DistributedInfo info;
  info.backend = "xccl";
  info.rank = 3;
  info.world_size = 8;
  info.groups = {{"0", "default_pg", "xpu:xccl,cpu:gloo", 8, {0, 1, 2, 3, 4, 5, 6, 7}}, {"1", "", "", 0, {}}};
  info.group_count = 5;
  info.facts = {{"nccl_version", "none"}};
  framework.session().set_distributed_info(info);
  const std::string text = framework.chrome_text();
  EXPECT_EQ(Json::parse(text)["distributedInfo"],
            Json::parse(R"({"backend": "xccl", "rank": 3, "world_size": 8, "pg_count": 5, "pg_config": [
      {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "xpu:xccl,cpu:gloo", "pg_size": 8, "ranks": [0,1,2,3,4,5,6,7]},
      {"pg_name": "1", "pg_desc": "", "backend_config": "", "pg_size": 0, "ranks": []}], "nccl_version": "none"})"));
  EXPECT_NE(text.find("\"rank\": 3"), std::string::npos) << "readers search for it with the blank";
  EXPECT_THAT(findings_in(text), IsEmpty());
}

TEST(FrameworkTest, GroupsAreCountedWhereNobodySaysHowManyThereAre) {
  Framework framework;
  DistributedInfo info;
  info.groups.resize(2);
  framework.session().set_distributed_info(info);
  EXPECT_EQ(Json::parse(framework.chrome_text())["distributedInfo"]["pg_count"], 2);
}

TEST(FrameworkTest, WithoutItTheRankOfTheRecordingStands) {
  Framework framework;
  EXPECT_EQ(Json::parse(framework.chrome_text())["distributedInfo"], Json::parse(R"({"backend": "", "rank": 0})"));
}

/// A collective whose kernel no NCCL made, beside an operation that is none.
struct CollectiveFramework : Framework {
  CollectiveFramework() {
    add_command_with_ids(source, {.start = 6'000, .end = 6'100, .enter_ns = 3'700, .exit_ns = 3'800}, {operation_id(13)});
    trace.operations.push_back(cpu_operation("record_param_comms", 3'650, 3'900, operation_id(13)));
    trace.operations.back().arguments = {{"Collective name", "allreduce"},
                                         {"Backend", "xccl"},
                                         {"In msg nelems", std::int64_t{1'024}},
                                         {"Group size", std::int64_t{8}},
                                         {"dtype", "BFloat16"},
                                         {"In split size", std::vector<std::int64_t>{}},
                                         {"Process Group Ranks", std::vector<std::int64_t>{0, 1}},
                                         {"Ev Idx", std::int64_t{9}}};
  }
};

TEST(FrameworkTest, AKernelOfACollectiveSaysWhatTheCollectiveSaid) {
  CollectiveFramework framework;
  const std::string text = framework.chrome_text();
  const std::vector<Json> kernels = events_of(Json::parse(text), "kernel");
  ASSERT_EQ(kernels.size(), 3u);
  const Json& arguments = kernels[2]["args"];
  EXPECT_EQ(arguments["Collective name"], "allreduce");
  EXPECT_EQ(arguments["Backend"], "xccl") << "as it was given";
  EXPECT_EQ(arguments["In msg nelems"], 1'024);
  EXPECT_EQ(arguments["Group size"], 8);
  EXPECT_EQ(arguments["dtype"], "BFloat16");
  EXPECT_EQ(arguments["In split size"], Json::array());
  EXPECT_EQ(arguments["Process Group Ranks"], Json::parse("[0,1]"));
  EXPECT_FALSE(arguments.contains("Ev Idx")) << "of the operation only";
  for (std::size_t index = 0; index < 2; ++index) EXPECT_FALSE(kernels[index]["args"].contains("dtype")) << index;
  EXPECT_EQ(text.find("nccl"), std::string::npos) << "nothing is guessed";
  EXPECT_THAT(findings_in(text), IsEmpty());
}

TEST(FrameworkTest, PerfettoSaysTheSameOfIt) {
  CollectiveFramework framework;
  const std::vector<PerfettoEvent> kernels = framework.perfetto().of_category("kernel");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_THAT(kernels[2].arguments,
              testing::IsSupersetOf({Pair("Collective name", "allreduce"), Pair("Backend", "xccl"), Pair("In msg nelems", "1024"),
                                     Pair("Group size", "8"), Pair("dtype", "BFloat16"), Pair("In split size", "[]"),
                                     Pair("Process Group Ranks", "[0,1]"), Pair("External id", "13")}));
  EXPECT_FALSE(kernels[2].arguments.contains("Ev Idx"));
  EXPECT_FALSE(kernels[0].arguments.contains("dtype"));
}

TEST(FrameworkTest, RowsOfAGroupAreRowsOfAProcessOfTheirOwn) {
  Framework framework;
  CpuTrace other;
  other.rows = "unit profiler";
  other.threads = {{1, "unit one"}};
  other.operations.push_back(cpu_operation("unit work", 2'000, 3'000, operation_id(11)));
  other.operations.back().thread = 1;
  ASSERT_TRUE(framework.session().transfer_cpu_trace(other));
  const std::string text = framework.chrome_text();
  EXPECT_THAT(findings_in(text), IsEmpty());
  const Json document = Json::parse(text);
  const std::vector<Json> operations = events_of(document, "cpu_op");
  ASSERT_EQ(operations.size(), 3u);
  const Json& work = operations[2];
  EXPECT_EQ(work["name"], "unit work");
  EXPECT_NE(work["pid"], 100);
  std::vector<std::string> names;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] == "M" && event["pid"] == work["pid"] && event["args"].contains("name")) names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("unit profiler", "unit one"));
  std::map<std::string, std::string> tracks;
  for (const PerfettoEvent& operation : framework.perfetto().of_category("cpu_op")) tracks[operation.name] = operation.track;
  EXPECT_EQ(tracks["unit work"], "unit one");
  EXPECT_EQ(tracks["aten::mm"], "thread 100");
}

}  // namespace
}  // namespace xpu::profiler
