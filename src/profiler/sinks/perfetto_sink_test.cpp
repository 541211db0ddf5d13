#include "xpu/profiler/perfetto_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "profiler/sinks/export_source.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/perfetto_reader.hpp"
#include "profiler/test_support/random_source.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::PerfettoEvent;
using test_support::PerfettoTrace;
using test_support::random_source;
using test_support::read_perfetto;
using test_support::ScriptedSource;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Arguments = std::map<std::string, std::string>;

struct PerfettoExport {
  std::string bytes;
  PerfettoTrace trace;
  ExportSummary summary;
  std::unique_ptr<Session> session;  // what the activities point to
  CollectingSink activities;

  PerfettoEvent only(std::string_view category) const {
    const std::vector<PerfettoEvent> found = trace.of_category(category);
    EXPECT_EQ(found.size(), 1u) << category;
    return found.empty() ? PerfettoEvent() : found[0];
  }
};

PerfettoExport perfetto_export(const ScriptedSource& source, bool device_only = false) {
  PerfettoExport result;
  PerfettoSink sink(
      [&](std::string_view piece) {
        result.bytes += piece;
        return Result<>();
      },
      {device_only, nullptr});
  result.session = std::make_unique<Session>(source);
  result.session->add_sink(sink);
  result.session->add_sink(result.activities);
  EXPECT_TRUE(result.session->run());
  result.summary = sink.summary();
  result.trace = read_perfetto(result.bytes);
  EXPECT_THAT(result.trace.problems, IsEmpty());
  return result;
}

TEST(PerfettoSinkTest, WritesALaunchAsACallAndAStageOfItsQueue) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_geometry(1'024, 64);
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250, .geometry = 1, .queued = 4'100, .submit = 4'600});
  const PerfettoExport result = perfetto_export(source);

  const PerfettoEvent call = result.only("xpu_runtime");
  EXPECT_EQ(call.name, "clEnqueueNDRangeKernel");
  EXPECT_EQ(call.pid, 100u);
  EXPECT_EQ(call.start_ns, 4'000) << "times are those of the recording's clock";
  EXPECT_EQ(call.duration_ns, 250u);
  EXPECT_THAT(call.arguments, ElementsAre(Pair("correlation", "1")));

  const PerfettoEvent kernel = result.only("kernel");
  EXPECT_EQ(kernel.name, "kernel");
  EXPECT_EQ(kernel.kernel_name, "kernel");
  EXPECT_EQ(kernel.track, "queue 1");
  EXPECT_EQ(kernel.pid, 100u);
  EXPECT_EQ(kernel.start_ns, 5'000);
  EXPECT_EQ(kernel.duration_ns, 300u);
  EXPECT_THAT(kernel.grid, ElementsAre(16));
  EXPECT_THAT(kernel.workgroup, ElementsAre(64));
  EXPECT_EQ(kernel.arguments.at("queued before ns"), "900");
  EXPECT_EQ(kernel.arguments.at("submitted before ns"), "400");
  EXPECT_EQ(kernel.event_id, call.submitted_event_id) << "the arrow";

  EXPECT_EQ(result.summary.slices, 2u);
  EXPECT_EQ(result.summary.kernels, 1u);
  EXPECT_EQ(result.summary.flows, 1u);
}

TEST(PerfettoSinkTest, NamesProcessesThreadsAndDevices) {
  ScriptedSource source;
  source.add_process(100, "program", 3);
  source.add_thread(1, 101, "worker");
  source.add_thread(2, 102);
  source.add_queue(source.add_device("the device", "driver 7"));
  source.add_call("first", 4'000, 4'010, 0, 1);
  source.add_call("second", 4'000, 4'010, -5, 2);
  const PerfettoExport result = perfetto_export(source);
  EXPECT_THAT(result.trace.devices, ElementsAre("the device"));
  std::map<std::string, std::string> tracks;
  for (const PerfettoEvent& call : result.trace.of_category("xpu_runtime")) tracks[call.name] = call.track;
  EXPECT_THAT(tracks, UnorderedElementsAre(Pair("first", "worker"), Pair("second", "thread 102")));
  std::vector<std::string> names;
  for (const auto& [uuid, track] : result.trace.tracks) names.push_back(track.name);
  EXPECT_THAT(names, Contains("program"));
  EXPECT_NE(result.bytes.find("rank 3"), std::string::npos);
}

TEST(PerfettoSinkTest, SaysTheGlobalSizeWhereTheGroupsDoNotTellIt) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_geometry(1'000, 0);
  source.add_geometry(1'000, 64);
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250, .geometry = 1});
  source.add_command({.start = 6'000, .end = 6'300, .enter_ns = 4'300, .exit_ns = 4'350, .geometry = 2});
  const std::vector<PerfettoEvent> kernels = perfetto_export(source).trace.commands;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_THAT(kernels[0].grid, IsEmpty()) << "the driver chose the groups";
  EXPECT_EQ(kernels[0].arguments.at("global"), "[1000,1,1]");
  EXPECT_THAT(kernels[1].grid, ElementsAre(16)) << "the last group is not full";
  EXPECT_EQ(kernels[1].arguments.at("global"), "[1000,1,1]");
}

TEST(PerfettoSinkTest, NamesCopiesAsTheJsonDoes) {
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
  source.add_command({.start = 5'600, .end = 5'600, .enter_ns = 1'700, .exit_ns = 1'800, .command = probe::Command::marker});
  const PerfettoExport result = perfetto_export(source);
  const PerfettoEvent copy = result.only("gpu_memcpy");
  EXPECT_EQ(copy.name, "Memcpy HtoD (Host -> Device)");
  EXPECT_EQ(copy.arguments.at("bytes"), "2500");
  EXPECT_EQ(copy.arguments.at("memory bandwidth (GB/s)"), std::to_string(25.0));
  const PerfettoEvent fill = result.only("gpu_memset");
  EXPECT_EQ(fill.name, "Memset (Device)");
  EXPECT_EQ(fill.arguments.at("bytes"), "64");
  const PerfettoEvent marker = result.only("xpu_sync");
  EXPECT_EQ(marker.name, "marker");
  EXPECT_EQ(marker.kernel_name, "") << "it computes nothing";
}

TEST(PerfettoSinkTest, SaysWhatBecameOfACommandAndHowSureItsTimeIs) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_reading(1, 9'000, 9'000, 80);
  source.add_command(
      {.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 4'001, .completion_flags = trace::kFlagFailed, .status = -14});
  const PerfettoExport result = perfetto_export(source);
  const Arguments arguments = result.only("kernel").arguments;
  EXPECT_EQ(arguments.at("state"), "failed");
  EXPECT_EQ(arguments.at("status"), "-14");
  ASSERT_GT(result.activities.kernels[0].error_ns, 0u);
  EXPECT_EQ(arguments.at("clock error ns"), std::to_string(result.activities.kernels[0].error_ns));
}

TEST(PerfettoSinkTest, PutsOverlappingCommandsOnHardwareQueuesOfTheirOwn) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.start = 5'500, .end = 6'500, .enter_ns = 4'002, .exit_ns = 4'003});
  const PerfettoExport result = perfetto_export(source);
  std::vector<std::string> rows;
  for (const PerfettoEvent& command : result.trace.commands) rows.push_back(command.track);
  EXPECT_THAT(rows, ElementsAre("queue 1", "queue 1 (overlap 1)"));
  EXPECT_EQ(result.summary.overlapping, 1u);
}

TEST(PerfettoSinkTest, ShowsABlockingCallOnce) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 6'100, .command = probe::Command::read});
  source.add_wait("clEnqueueCommand", probe::WaitType::blocking_call, 4'000, 6'150);
  EXPECT_EQ(perfetto_export(source).trace.slices.size(), 1u) << "the wait would begin with the call and end behind it";
}

TEST(PerfettoSinkTest, WritesNamesMadeOfAnyBytesAsUtf8) {
  ScriptedSource source;
  source.add_simple_process();
  const std::uint32_t kernel = source.add_kernel("quote\" newline\n latin\xe9 µ");
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 4'001, .kernel = kernel});
  source.add_call("api\xff", 4'100, 4'200);
  const PerfettoExport result = perfetto_export(source);
  EXPECT_EQ(result.only("kernel").name, "quote\" newline\n latin\xef\xbf\xbd µ");
  EXPECT_EQ(result.trace.of_category("xpu_runtime").back().name, "api\xef\xbf\xbd");
}

TEST(PerfettoSinkTest, WritesAnEmptyRecordingAsATrace) {
  const PerfettoExport result = perfetto_export(ScriptedSource());
  EXPECT_THAT(result.trace.slices, IsEmpty());
  EXPECT_EQ(result.only("xpu_recording").name, "recording");
}

TEST(PerfettoSinkTest, LeavesNoArrowWithoutAnEnd) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.enter_ns = 4'010, .exit_ns = 4'011, .result = -54});
  source.add_command({.enter_ns = 4'020, .exit_ns = 4'021, .completion_flags = trace::kFlagUntimed});
  const PerfettoExport result = perfetto_export(source);
  const std::vector<PerfettoEvent> calls = result.trace.of_category("xpu_runtime");
  ASSERT_EQ(calls.size(), 3u);
  for (const PerfettoEvent& call : calls) EXPECT_EQ(call.submitted_event_id, 0u);
  EXPECT_EQ(calls[1].arguments.at("result"), "-54");
  EXPECT_THAT(result.trace.commands, IsEmpty());
  EXPECT_EQ(result.summary.flows, 0u);
  EXPECT_EQ(result.summary.untimed, 2u);
  EXPECT_EQ(result.only("xpu_recording").arguments.at("pending"), "1");
}

TEST(PerfettoSinkTest, KeepsProcessesApart) {
  ScriptedSource source;
  for (const std::uint64_t pid : {100, 200}) {
    source.add_simple_process(pid);
    source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
    source.add_memory(probe::MemoryAction::allocate, 3'000, 64, pid);
  }
  const PerfettoExport result = perfetto_export(source);
  std::set<std::pair<std::string, std::uint64_t>> rows;
  std::set<std::uint64_t> ids;
  for (const PerfettoEvent& command : result.trace.commands) {
    rows.emplace(command.track, command.pid);
    ids.insert(command.event_id);
  }
  EXPECT_THAT(rows, ElementsAre(Pair("queue 1 of process 100", 100), Pair("queue 1 of process 200", 200)));
  EXPECT_EQ(ids.size(), 2u);
  std::map<std::uint64_t, double> memory;
  for (const PerfettoEvent& counter : result.trace.counters) memory[counter.pid] = counter.value;
  EXPECT_THAT(memory, ElementsAre(Pair(100, 100), Pair(200, 200)));
}

TEST(PerfettoSinkTest, KeepsDevicesApart) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_device("second");
  const std::uint32_t queue = source.add_queue(2);
  source.add_reading(2, 1'000, 1'000);
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.queue = queue, .start = 7'000, .end = 8'000, .enter_ns = 4'010, .exit_ns = 4'011});
  const PerfettoExport result = perfetto_export(source);
  std::vector<std::pair<std::string, std::string>> places;
  for (const PerfettoEvent& command : result.trace.commands) places.emplace_back(command.track, command.device);
  ASSERT_EQ(result.trace.devices.size(), 2u);
  EXPECT_THAT(places, ElementsAre(Pair("queue 1", result.trace.devices[0]), Pair("queue 2", "second")));
}

TEST(PerfettoSinkTest, AFileAppearsWhenItIsCompleteOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("perfetto_sink_test_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  ExportOptions options;
  options.path = folder / "trace.pftrace";
  const auto summary = export_perfetto(random_source(1), options);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->path, options.path);
  EXPECT_EQ(summary->bytes, perfetto_export(random_source(1)).bytes.size());
  EXPECT_EQ(std::filesystem::file_size(options.path), summary->bytes);
  EXPECT_FALSE(std::filesystem::exists(options.path + ".tmp"));

  options.path = folder / "nowhere" / "trace.pftrace";
  const auto refused = export_perfetto(random_source(1), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  std::filesystem::remove_all(folder);
}

TEST(PerfettoSinkTest, WritesDevicesOnlyWhenAsked) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_wait("clFinish", probe::WaitType::queue, 4'010, 6'010);
  source.add_memory(probe::MemoryAction::allocate, 3'000, 64, 64);
  const PerfettoExport result = perfetto_export(source, true);
  EXPECT_EQ(result.trace.commands.size(), 1u);
  EXPECT_THAT(result.trace.slices, IsEmpty());
  EXPECT_THAT(result.trace.counters, IsEmpty());
  EXPECT_EQ(result.summary.flows, 0u);
}

TEST(PerfettoSinkTest, ShowsWaitsMemoryAnnotationsOverheadAndLosses) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_wait("clFinish", probe::WaitType::queue, 4'010, 6'010);
  source.add_memory(probe::MemoryAction::allocate, 3'000, 64, 4'096);
  source.add_annotation(probe::AnnotationType::begin, 2'000, "step");
  source.add_annotation(probe::AnnotationType::end, 2'500, "");
  source.add_annotation(probe::AnnotationType::counter, 2'600, "level", 0.25);
  source.add_annotation(probe::AnnotationType::mark, 2'700, "here");
  source.add_annotation(probe::AnnotationType::begin, 2'800, "left open");
  source.add_overhead(3'000, 3'040, 64);
  trace::LossRecord loss{};
  loss.count = 7;
  loss.queue = 1;
  loss.time_ns = 3'500;
  loss.cause = 1;
  source.add_loss(loss);
  const PerfettoExport result = perfetto_export(source);

  const PerfettoEvent wait = result.only("xpu_sync");
  EXPECT_EQ(wait.name, "clFinish");
  EXPECT_EQ(wait.duration_ns, 2'000u);
  EXPECT_THAT(wait.arguments, ElementsAre(Pair("queue", "1"), Pair("waits for", "queue")));
  const std::vector<PerfettoEvent> said = result.trace.of_category("user_annotation");
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].name, "step");
  EXPECT_EQ(said[0].duration_ns, 500u);
  EXPECT_EQ(said[1].name, "left open");
  EXPECT_EQ(said[1].arguments.at("end"), "unknown");
  EXPECT_EQ(said[2].name, "here");
  std::map<std::string, double> counters;
  for (const PerfettoEvent& counter : result.trace.counters) counters[counter.name] = counter.value;
  EXPECT_THAT(counters, ElementsAre(Pair("level", 0.25), Pair("memory of context 1", 4'096)));
  const PerfettoEvent overhead = result.only("overhead");
  EXPECT_EQ(overhead.duration_ns, 40u);
  EXPECT_EQ(overhead.arguments.at("stands for calls"), "64");
  const PerfettoEvent lost = result.only("xpu_lost");
  EXPECT_EQ(lost.name, "7 commands lost (no_chunk)");
  EXPECT_EQ(lost.track, "lost records");
  EXPECT_EQ(lost.start_ns, 3'500);
}

TEST(PerfettoSinkTest, ShowsCommunicationOnItsThreadAndNamesEveryOverhead) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_communication(2'000, 2'500, "allreduce");
  source.add_overhead(3'000, 3'040, 1, 1, static_cast<std::uint32_t>(probe::OverheadType::buffer_flush));
  const PerfettoExport result = perfetto_export(source);
  const PerfettoEvent communication = result.only("collective_comm");
  EXPECT_EQ(communication.name, "allreduce");
  EXPECT_EQ(communication.duration_ns, 500u);
  EXPECT_THAT(communication.arguments,
              UnorderedElementsAre(Pair("communicator", "9"), Pair("bytes sent", "1024"), Pair("bytes received", "2048")));
  EXPECT_EQ(result.only("overhead").name, "handing records over");
}

TEST(PerfettoSinkTest, PlacesWhatCameBeforeTheBeginning) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  ScriptedSource source;
  source.mutable_manifest().start_monotonic_ns = 10 * kSecond;
  source.add_simple_process();
  source.add_call("long before", 5 * kSecond, 5 * kSecond + 7);
  source.add_call("just before", 10 * kSecond - 20, 10 * kSecond - 10);
  source.add_call("behind", 11 * kSecond, 11 * kSecond + 9);
  std::vector<std::tuple<std::string, std::int64_t, std::uint64_t>> seen;
  for (const PerfettoEvent& call : perfetto_export(source).trace.slices) seen.emplace_back(call.name, call.start_ns, call.duration_ns);
  EXPECT_THAT(seen, ElementsAre(std::tuple("long before", 5 * kSecond, 7), std::tuple("just before", 10 * kSecond - 20, 10),
                                std::tuple("behind", 11 * kSecond, 9)));
}

TEST(PerfettoSinkTest, ReturnsTheFirstErrorOfItsOutputAndThenWritesNoMore) {
  ScriptedSource source;
  source.add_simple_process();
  for (std::uint64_t i = 0; i < 5'000; ++i) source.add_command({.start = 5'000 + i, .end = 5'001 + i, .enter_ns = 4'000, .exit_ns = 4'001});
  int calls = 0;
  PerfettoSink sink(
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

TEST(PerfettoSinkTest, TellsHowFarItIsAndKeepsOnlyItsBuffer) {
  ScriptedSource source;
  source.add_simple_process();
  for (std::uint64_t i = 0; i < 40'000; ++i)
    source.add_command({.start = 5'000 + i, .end = 5'001 + i, .enter_ns = 4'000, .exit_ns = 4'001});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps;
  std::size_t pieces = 0, longest = 0;
  PerfettoSink sink(
      [&](std::string_view piece) {
        ++pieces;
        longest = std::max(longest, piece.size());
        return Result<>();
      },
      {false, [&](std::uint64_t done, std::uint64_t total) { steps.emplace_back(done, total); }});
  Session session(source);
  session.add_sink(sink);
  ASSERT_TRUE(session.run());
  EXPECT_THAT(steps, ElementsAre(Pair(16'384, 40'000), Pair(32'768, 40'000)));
  EXPECT_GT(pieces, 10u);
  EXPECT_LE(longest, std::size_t{1} << 18);
}

/// What a minute of an OpenCL program leaves: every call with its command, all of the driver's four times, a wait now and then.
ScriptedSource long_source(std::uint64_t commands) {
  constexpr std::uint64_t kStart = 1'000'000'000'000, kPeriod = 6'000'000;
  ScriptedSource source;
  source.mutable_manifest().start_monotonic_ns = kStart;
  source.add_process(1'234'567);
  source.add_thread(1, 1'234'567);
  source.add_queue(source.add_device("device"));
  for (int i = 0; i < 200; ++i) source.add_kernel("a_kernel_with_a_longish_name_" + std::to_string(i));
  for (std::uint32_t i = 1; i <= 20; ++i) source.add_geometry(i * 4'096, 64);
  for (std::uint64_t i = 0; i <= 60; ++i)
    source.add_reading(1, kStart + i * commands * kPeriod / 60, kStart + i * commands * kPeriod / 60, 2'000);
  for (std::uint64_t i = 0; i < commands; ++i) {
    const std::uint64_t enter = kStart + 20'000'000 + i * kPeriod, start = enter + 140'000;
    source.add_command({.start = start,
                        .end = start + 390'000 + i % 1'000,
                        .enter_ns = enter,
                        .exit_ns = enter + 20'000,
                        .kernel = static_cast<std::uint32_t>(1 + i % 200),
                        .geometry = static_cast<std::uint32_t>(1 + i % 20),
                        .queued = enter + 10'000,
                        .submit = enter + 130'000});
    if (i % 10 == 0) source.add_wait("clFinish", probe::WaitType::queue, enter + 30'000, enter + 580'000);
    if (i % 50 == 0) source.add_memory(probe::MemoryAction::allocate, enter + 25'000, 1u << 20, i << 20);
  }
  return source;
}

TEST(PerfettoSinkTest, TakesAtMost70BytesAnEvent) {
  const PerfettoExport result = perfetto_export(long_source(10'000));
  const std::size_t events =
      result.trace.slices.size() + result.trace.commands.size() + result.trace.instants.size() + result.trace.counters.size();
  EXPECT_EQ(events, 21'201u);
  const double bytes_per_event = static_cast<double>(result.bytes.size()) / static_cast<double>(events);
  EXPECT_LE(bytes_per_event, 70.0);
  EXPECT_EQ(result.summary.flows, 10'000u);
}

/// Where, what, when and how long, of everything with a duration.
using Seen = std::multiset<std::tuple<std::uint64_t, std::string, std::int64_t, std::uint64_t>>;

TEST(PerfettoSinkTest, DropsNoSliceAndOverlapsNoneOnADeviceRowWhateverTheRecording) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PerfettoExport result = perfetto_export(random_source(seed));
    Seen calls, written_calls, kernels, written_kernels;
    for (const auto& call : result.activities.calls) calls.emplace(call.process->pid, call.api->text, call.start_ns, call.duration_ns);
    for (const auto& call : result.trace.slices) written_calls.emplace(call.pid, call.name, call.start_ns, call.duration_ns);
    ASSERT_EQ(written_calls, calls);
    for (const auto& kernel : result.activities.kernels) {
      if (kernel.timed && kernel.placed)
        kernels.emplace(kernel.process->pid, kernel.kernel->name, kernel.start_ns + kernel.nudge_ns, kernel.duration_ns);
    }
    std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> rows;
    for (const auto& kernel : result.trace.commands) {
      written_kernels.emplace(kernel.pid, kernel.name, kernel.start_ns, kernel.duration_ns);
      rows[kernel.track].emplace_back(kernel.start_ns, kernel.start_ns + static_cast<std::int64_t>(kernel.duration_ns));
    }
    ASSERT_EQ(written_kernels, kernels);
    for (auto& [row, spans] : rows) {
      std::sort(spans.begin(), spans.end());
      for (std::size_t i = 1; i < spans.size(); ++i) ASSERT_LE(spans[i - 1].second, spans[i].first) << row;
    }

    std::multiset<std::uint64_t> begun, ended;
    for (const auto& call : result.trace.slices) {
      if (call.submitted_event_id != 0) begun.insert(call.submitted_event_id);
    }
    for (const auto& kernel : result.trace.commands) ended.insert(kernel.event_id);
    ASSERT_EQ(begun, ended) << "each arrow has one beginning and one end";
    ASSERT_EQ(std::set<std::uint64_t>(begun.begin(), begun.end()).size(), begun.size());
    ASSERT_EQ(result.summary.flows, begun.size());
    ASSERT_EQ(result.summary.slices, calls.size() + kernels.size());
  }
}

}  // namespace
}  // namespace xpu::profiler
