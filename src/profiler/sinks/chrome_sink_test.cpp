#include "xpu/profiler/chrome_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "profiler/test_support/random_source.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::random_source;
using test_support::ScriptedSource;
using testing::ElementsAre;
using Json = nlohmann::json;

struct Exported {
  std::string text;
  Json document;
  ExportSummary summary;

  std::vector<Json> events(std::string_view phase, std::string_view category = "") const {
    std::vector<Json> found;
    for (const Json& event : document["traceEvents"]) {
      if (event["ph"] == phase && (category.empty() || event.value("cat", "") == category)) found.push_back(event);
    }
    return found;
  }
  Json only(std::string_view phase, std::string_view category) const {
    const std::vector<Json> found = events(phase, category);
    EXPECT_EQ(found.size(), 1u) << category;
    return found.empty() ? Json() : found[0];
  }
  /// pid, tid -> name of the row.
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> rows() const {
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> names;
    for (const Json& event : events("M")) {
      if (event["name"] == "thread_name") names[{event["pid"], event["tid"]}] = event["args"]["name"];
    }
    return names;
  }
};

Exported exported(const ScriptedSource& source, bool device_only = false, Compatibility compatibility = Compatibility::none) {
  Exported result;
  ChromeSink sink(
      [&](std::string_view piece) {
        result.text += piece;
        return Result<>();
      },
      {"trace.json", device_only, nullptr, compatibility});
  Session session(source);
  session.add_sink(sink);
  EXPECT_TRUE(session.run());
  result.summary = sink.summary();
  result.document = Json::parse(result.text, nullptr, false);
  EXPECT_FALSE(result.document.is_discarded()) << result.text;
  return result;
}

/// Thousandths of a microsecond, exactly.
std::int64_t nanoseconds(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

TEST(ChromeSinkTest, ForHtaCallsHaveTheNamesThatItKnowsAndKeepTheirOwn) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'100});
  source.add_command({.start = 6'000, .end = 6'100, .enter_ns = 4'200, .exit_ns = 4'300, .command = probe::Command::write, .bytes = 64});
  source.add_command({.start = 7'000, .end = 7'100, .enter_ns = 4'400, .exit_ns = 4'500, .command = probe::Command::fill, .bytes = 64});
  source.add_command({.start = 8'000, .end = 8'100, .enter_ns = 4'600, .exit_ns = 4'700, .command = probe::Command::marker});
  source.add_call("clCreateBuffer", 4'800, 4'900);
  source.shuffle(7);
  const Exported plain = exported(source), trace = exported(source, false, Compatibility::hta);
  const std::vector<Json> calls = trace.events("X", "cuda_runtime"), true_calls = plain.events("X", "xpu_runtime");
  ASSERT_EQ(calls.size(), 5u);
  ASSERT_EQ(true_calls.size(), 5u);
  std::map<std::string, int> names;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string name = calls[i]["name"];
    ++names[name];
    // Everything else is as it was, in the same order.
    EXPECT_EQ(calls[i]["args"].value("api", name), true_calls[i]["name"].get<std::string>());
    EXPECT_EQ(calls[i]["ts"], true_calls[i]["ts"]);
    EXPECT_EQ(calls[i]["args"]["correlation"], true_calls[i]["args"]["correlation"]);
  }
  EXPECT_EQ(names["cudaLaunchKernel"], 1);
  EXPECT_EQ(names["cudaMemcpyAsync"], 1);
  EXPECT_EQ(names["cudaMemsetAsync"], 1);
  EXPECT_EQ(names["clCreateBuffer"], 1);
  EXPECT_EQ(trace.summary.flows, plain.summary.flows);
  EXPECT_EQ(trace.events("X").size(), plain.events("X").size());
  EXPECT_TRUE(exported(source, true, Compatibility::hta).events("X", "cuda_runtime").empty()) << "device only";
}

TEST(ChromeSinkTest, WritesTheDocumentAsKinetoDoes) {
  ScriptedSource source;
  source.add_process(100, "program", 3);
  source.add_queue(source.add_device("the device", "driver 7"));
  const Exported trace = exported(source);
  EXPECT_EQ(trace.document["schemaVersion"], 1);
  EXPECT_EQ(trace.document["deviceProperties"][0]["name"], "the device");
  EXPECT_EQ(trace.document["deviceProperties"][0]["id"], 0);
  EXPECT_EQ(trace.document["displayTimeUnit"], "ms");
  EXPECT_EQ(trace.document["baseTimeNanoseconds"], 1'700'000'000'000'000'000);
  EXPECT_EQ(trace.document["traceName"], "trace.json");
  EXPECT_NE(trace.text.find("\"rank\": 3"), std::string::npos) << "readers look for the blank";
  const auto position = [&](const char* key) { return trace.text.find(std::string("\"") + key + "\":"); };
  EXPECT_LT(position("schemaVersion"), position("deviceProperties"));
  EXPECT_LT(position("deviceProperties"), position("distributedInfo"));
  EXPECT_LT(position("distributedInfo"), position("traceEvents"));
}

TEST(ChromeSinkTest, WritesALaunchAsTwoSlicesAndAnArrow) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_geometry(1'024, 64);
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250, .geometry = 1, .queued = 4'100, .submit = 4'600});
  const Exported trace = exported(source);

  const Json call = trace.only("X", "xpu_runtime");
  EXPECT_EQ(call["name"], "clEnqueueNDRangeKernel");
  EXPECT_EQ(call["pid"], 100);
  EXPECT_EQ(call["tid"], 100);
  EXPECT_EQ(nanoseconds(call["ts"]), 3'000) << "the program began at 1000";
  EXPECT_EQ(nanoseconds(call["dur"]), 250);

  const Json kernel = trace.only("X", "kernel");
  EXPECT_EQ(kernel["name"], "kernel");
  EXPECT_EQ(kernel["pid"], 0);
  EXPECT_EQ(kernel["tid"], 1);
  EXPECT_EQ(nanoseconds(kernel["ts"]), 4'000);
  EXPECT_EQ(nanoseconds(kernel["dur"]), 300);
  const Json& args = kernel["args"];
  EXPECT_EQ(args["correlation"], call["args"]["correlation"]);
  EXPECT_EQ(args["device"], 0);
  EXPECT_EQ(args["stream"], 1);
  EXPECT_EQ(args["context"], 1);
  EXPECT_EQ(args["grid"], Json({16, 1, 1}));
  EXPECT_EQ(args["block"], Json({64, 1, 1}));
  EXPECT_EQ(nanoseconds(args["queued"]), 3'100);
  EXPECT_EQ(nanoseconds(args["submitted"]), 3'600);

  const Json start = trace.only("s", "ac2g"), end = trace.only("f", "ac2g");
  EXPECT_EQ(start["id"], args["correlation"]);
  EXPECT_EQ(end["id"], args["correlation"]);
  EXPECT_EQ(end["bp"], "e");
  EXPECT_EQ(start["ts"], call["ts"]);
  EXPECT_EQ(end["ts"], kernel["ts"]);
  EXPECT_EQ(trace.summary.slices, 2u);
  EXPECT_EQ(trace.summary.kernels, 1u);
  EXPECT_EQ(trace.summary.flows, 1u);
  EXPECT_EQ(trace.document["writtenEvents"],
            Json({{"commands", 1}, {"slices of commands", 1}, {"slices", 2}, {"kernels", 1}, {"flows", 1}}));
}

TEST(ChromeSinkTest, BeginsWithARowsNameBecauseHtaTakesIndexZeroForNoLink) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250});
  for (const Compatibility compatibility : {Compatibility::none, Compatibility::hta}) {
    const Exported trace = exported(source, false, compatibility);
    EXPECT_EQ(trace.document["traceEvents"][0]["ph"], "M");
    std::set<std::string> described;
    for (const Json& event : trace.events("M")) {
      const std::string row = event["name"].get<std::string>() + event["pid"].dump() + event["tid"].dump();
      EXPECT_TRUE(described.insert(row).second) << row << " is there twice";
    }
    EXPECT_EQ(trace.rows().size(), 2u);
  }
}

TEST(ChromeSinkTest, SaysTheGlobalSizeWhenTheDriverChoseTheGroups) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_geometry(1'000, 0);
  source.add_geometry(1'000, 64);
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250, .geometry = 1});
  source.add_command({.start = 6'000, .end = 6'300, .enter_ns = 4'300, .exit_ns = 4'350, .geometry = 2});
  const std::vector<Json> kernels = exported(source).events("X", "kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_FALSE(kernels[0]["args"].contains("grid"));
  EXPECT_EQ(kernels[0]["args"]["global"], Json({1'000, 1, 1}));
  EXPECT_EQ(kernels[1]["args"]["grid"], Json({16, 1, 1})) << "the last group is not full";
  EXPECT_EQ(kernels[1]["args"]["global"], Json({1'000, 1, 1}));
}

TEST(ChromeSinkTest, NamesCopiesSoThatReadersKnowTheirKind) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000,
                      .end = 5'100,
                      .enter_ns = 1'100,
                      .exit_ns = 1'200,
                      .command = probe::Command::write,
                      .bytes = 2'500,
                      .direction = probe::CopyDirection::host_to_device});
  source.add_command({.start = 5'200, .end = 5'300, .enter_ns = 1'300, .exit_ns = 1'400, .command = probe::Command::fill, .bytes = 64});
  source.add_command({.start = 5'400,
                      .end = 5'500,
                      .enter_ns = 1'500,
                      .exit_ns = 1'600,
                      .command = probe::Command::map,
                      .bytes = 64,
                      .direction = probe::CopyDirection::device_to_host});
  source.add_command({.start = 5'600, .end = 5'600, .enter_ns = 1'700, .exit_ns = 1'800, .command = probe::Command::marker});
  const Exported trace = exported(source);
  const std::vector<Json> copies = trace.events("X", "gpu_memcpy");
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0]["name"], "Memcpy HtoD (Host -> Device)");
  EXPECT_EQ(copies[0]["args"]["bytes"], 2'500);
  EXPECT_EQ(copies[0]["args"]["memory bandwidth (GB/s)"], 25.0);
  EXPECT_EQ(copies[1]["name"], "Memcpy Map (Device -> Host)");
  EXPECT_EQ(trace.only("X", "gpu_memset")["name"], "Memset (Device)");
  const Json marker = trace.only("X", "xpu_sync");
  EXPECT_EQ(marker["name"], "marker");
  EXPECT_FALSE(marker["args"].contains("stream")) << "with a stream readers would count it as computation";
}

TEST(ChromeSinkTest, PutsOverlappingCommandsOnRowsOfTheirOwn) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.start = 5'500, .end = 6'500, .enter_ns = 4'002, .exit_ns = 4'003});
  const Exported trace = exported(source);
  std::vector<std::string> rows;
  const auto names = trace.rows();
  for (const Json& kernel : trace.events("X", "kernel")) rows.push_back(names.at({kernel["pid"], kernel["tid"]}));
  EXPECT_THAT(rows, ElementsAre("queue 1", "queue 1 (overlap 1)"));
  EXPECT_EQ(trace.summary.overlapping, 1u);
  for (const Json& kernel : trace.events("X", "kernel")) EXPECT_EQ(kernel["args"]["stream"], 1) << "it is still one stream";
}

TEST(ChromeSinkTest, ShowsABlockingCallOnce) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 6'100, .command = probe::Command::read});
  source.add_wait("clEnqueueCommand", probe::WaitType::blocking_call, 4'000, 6'150);
  const Exported trace = exported(source);
  EXPECT_EQ(trace.events("X", "xpu_runtime").size(), 1u);
  EXPECT_TRUE(trace.events("X", "xpu_sync").empty()) << "it would begin with the call and end behind it";
}

TEST(ChromeSinkTest, SurvivesNamesMadeOfAnyBytes) {
  ScriptedSource source;
  source.add_simple_process();
  const std::uint32_t kernel = source.add_kernel("quote\" slash\\ newline\n escape\x1b latin\xe9 µ");
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 4'001, .kernel = kernel});
  source.add_call("api\x01\"", 4'100, 4'200);
  const Exported trace = exported(source);
  EXPECT_EQ(trace.only("X", "kernel")["name"], "quote\" slash\\ newline\n escape\x1b latin\xef\xbf\xbd µ");
  for (const char character : trace.text) EXPECT_TRUE(character == '\n' || static_cast<unsigned char>(character) >= 0x20);
}

TEST(ChromeSinkTest, WritesAnEmptyRecordingAsAWholeDocument) {
  const Exported trace = exported(ScriptedSource());
  EXPECT_TRUE(trace.document["traceEvents"].is_array());
  EXPECT_TRUE(trace.document["traceEvents"].empty());
}

TEST(ChromeSinkTest, LeavesNoArrowWithoutAnEnd) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.enter_ns = 4'010, .exit_ns = 4'011, .result = -54});
  source.add_command({.enter_ns = 4'020, .exit_ns = 4'021, .completion_flags = trace::kFlagUntimed});
  const Exported trace = exported(source);
  EXPECT_EQ(trace.events("X", "xpu_runtime").size(), 3u);
  EXPECT_TRUE(trace.events("X", "kernel").empty());
  EXPECT_TRUE(trace.events("s").empty());
  EXPECT_TRUE(trace.events("f").empty());
  EXPECT_EQ(trace.summary.untimed, 2u);
  EXPECT_EQ(trace.events("X", "xpu_runtime")[1]["args"]["result"], -54);
  EXPECT_EQ(trace.document["droppedRecords"]["pending"], 1);
}

TEST(ChromeSinkTest, KeepsProcessesApart) {
  ScriptedSource source;
  for (const std::uint64_t pid : {100, 200}) {
    source.add_simple_process(pid);
    source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  }
  const Exported trace = exported(source);
  std::set<std::int64_t> correlations, rows, streams;
  for (const Json& kernel : trace.events("X", "kernel")) {
    correlations.insert(kernel["args"]["correlation"].get<std::int64_t>());
    streams.insert(kernel["args"]["stream"].get<std::int64_t>());
    rows.insert(kernel["tid"].get<std::int64_t>());
    EXPECT_EQ(kernel["pid"], 0) << "both use the same device";
  }
  EXPECT_EQ(correlations.size(), 2u);
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_EQ(trace.rows().at({0, 2}), "queue 1 of process 200");
}

TEST(ChromeSinkTest, GivesNoDeviceTheIdOfAProcess) {
  ScriptedSource source;
  source.add_simple_process(1);
  source.add_device("second");
  const std::uint32_t queue = source.add_queue(2);
  source.add_reading(2, 1'000, 1'000);
  source.add_command({.queue = queue, .start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  const Exported trace = exported(source);
  const Json kernel = trace.only("X", "kernel");
  EXPECT_EQ(kernel["args"]["device"], 1);
  EXPECT_GT(kernel["pid"], 4'000'000) << "1 is the program, as in a container";
}

TEST(ChromeSinkTest, WritesDevicesOnlyWhenAsked) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_wait("clFinish", probe::WaitType::queue, 4'010, 6'010);
  source.add_memory(probe::MemoryAction::allocate, 3'000, 64, 64);
  const Exported trace = exported(source, true);
  EXPECT_EQ(trace.events("X").size(), 1u);
  EXPECT_TRUE(trace.events("s").empty());
  EXPECT_TRUE(trace.events("f").empty());
  EXPECT_TRUE(trace.events("C").empty());
}

TEST(ChromeSinkTest, ShowsWaitsMemoryAnnotationsOverheadAndLosses) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_wait("clFinish", probe::WaitType::queue, 4'010, 6'010);
  source.add_memory(probe::MemoryAction::allocate, 3'000, 64, 4'096);
  source.add_annotation(probe::AnnotationType::begin, 2'000, "step");
  source.add_annotation(probe::AnnotationType::end, 2'500, "");
  source.add_annotation(probe::AnnotationType::counter, 2'600, "level", 0.25);
  source.add_annotation(probe::AnnotationType::mark, 2'700, "here");
  source.add_overhead(3'000, 3'040, 64);
  trace::LossRecord loss{};
  loss.count = 7;
  loss.queue = 1;
  loss.time_ns = 3'500;
  loss.cause = 1;
  source.add_loss(loss);
  const Exported trace = exported(source);

  const Json wait = trace.only("X", "xpu_sync");
  EXPECT_EQ(wait["name"], "clFinish");
  EXPECT_EQ(nanoseconds(wait["dur"]), 2'000);
  EXPECT_EQ(wait["args"]["waits for"], "queue");
  const Json range = trace.only("X", "user_annotation");
  EXPECT_EQ(range["name"], "step");
  EXPECT_EQ(nanoseconds(range["dur"]), 500);
  EXPECT_EQ(trace.only("i", "user_annotation")["name"], "here");
  std::map<std::string, Json> counters;
  for (const Json& counter : trace.events("C")) counters[counter["name"]] = counter["args"];
  EXPECT_EQ(counters["memory of context 1"]["bytes"], 4'096);
  EXPECT_EQ(counters["level"]["value"], 0.25);
  const Json overhead = trace.only("X", "overhead");
  EXPECT_EQ(overhead["args"]["stands for calls"], 64);
  EXPECT_GT(overhead["pid"], 1 << 22) << "no process of Linux and no device; a negative number is 0 for Perfetto";
  EXPECT_EQ(trace.only("i", "xpu_lost")["name"], "7 commands lost (no_chunk)");
}

TEST(ChromeSinkTest, ShowsCommunicationOnItsThreadAndNamesEveryOverhead) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_communication(2'000, 2'500, "all\"reduce");
  for (const std::uint32_t type : {0u, 2u, 3u, 4u, 1'000'000'000u}) source.add_overhead(3'000, 3'040, 1, 1, type);
  const Exported trace = exported(source);
  const Json communication = trace.only("X", "collective_comm");
  EXPECT_EQ(communication["name"], "all\"reduce");
  EXPECT_EQ(nanoseconds(communication["dur"]), 500);
  EXPECT_EQ(communication["args"], (Json{{"communicator", 9}, {"bytes sent", 1'024}, {"bytes received", 2'048}}));
  std::multiset<std::string> names;
  for (const Json& overhead : trace.events("X", "overhead")) names.insert(overhead["name"]);
  EXPECT_EQ(names,
            (std::multiset<std::string>{"recording", "memory for records", "handing records over", "times from the driver", "unknown"}));
}

TEST(ChromeSinkTest, ReturnsTheFirstErrorOfItsOutputAndThenWritesNoMore) {
  ScriptedSource source;
  source.add_simple_process();
  for (std::uint64_t i = 0; i < 5'000; ++i) source.add_command({.start = 5'000 + i, .end = 5'001 + i, .enter_ns = 4'000, .exit_ns = 4'001});
  int calls = 0;
  ChromeSink sink(
      [&](std::string_view) -> Result<> {
        ++calls;
        return Error{ErrorCode::unavailable, "disk full"};
      },
      {});
  Session session(source);
  session.add_sink(sink);
  const auto result = session.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "disk full");
  EXPECT_EQ(calls, 1);
}

TEST(ChromeSinkTest, TellsHowFarItIs) {
  ScriptedSource source;
  source.add_simple_process();
  for (std::uint64_t i = 0; i < 40'000; ++i)
    source.add_command({.start = 5'000 + i, .end = 5'001 + i, .enter_ns = 4'000, .exit_ns = 4'001});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps;
  ChromeSink sink([](std::string_view) { return Result<>(); },
                  {"", false, [&](std::uint64_t done, std::uint64_t total) { steps.emplace_back(done, total); }});
  Session session(source);
  session.add_sink(sink);
  ASSERT_TRUE(session.run());
  EXPECT_THAT(steps, ElementsAre(std::pair(16'384, 40'000), std::pair(32'768, 40'000)));
}

TEST(ChromeSinkTest, DropsNoSliceAndOverlapsNoneOnADeviceRowWhateverTheRecording) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    const ScriptedSource source = random_source(seed);
    const Exported trace = exported(source);
    using Row = std::pair<std::int64_t, std::int64_t>;
    std::map<Row, std::vector<std::pair<std::int64_t, std::int64_t>>> device_rows;
    std::map<Row, std::set<std::int64_t>> starts_on_row;
    for (const Json& slice : trace.events("X")) {
      const Row row{slice["pid"], slice["tid"]};
      starts_on_row[row].insert(nanoseconds(slice["ts"]));
      if (slice["cat"] == "kernel")
        device_rows[row].emplace_back(nanoseconds(slice["ts"]), nanoseconds(slice["ts"]) + nanoseconds(slice["dur"]));
    }
    std::size_t kernels = 0;
    for (auto& [row, slices] : device_rows) {
      kernels += slices.size();
      std::sort(slices.begin(), slices.end());
      for (std::size_t i = 1; i < slices.size(); ++i) ASSERT_LE(slices[i - 1].second, slices[i].first) << "seed " << seed;
    }
    ASSERT_EQ(kernels, trace.summary.kernels) << "seed " << seed;

    std::map<std::int64_t, int> begun, ended;
    for (const Json& flow : trace.events("s")) {
      ++begun[flow["id"].get<std::int64_t>()];
      EXPECT_TRUE(starts_on_row[Row(flow["pid"], flow["tid"])].contains(nanoseconds(flow["ts"]))) << "seed " << seed;
    }
    for (const Json& flow : trace.events("f")) {
      ++ended[flow["id"].get<std::int64_t>()];
      EXPECT_TRUE(starts_on_row[Row(flow["pid"], flow["tid"])].contains(nanoseconds(flow["ts"]))) << "seed " << seed;
    }
    EXPECT_EQ(begun, ended) << "seed " << seed;
    EXPECT_EQ(begun.size(), kernels) << "seed " << seed;
    for (const auto& [id, count] : begun) EXPECT_EQ(count, 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace xpu::profiler
