#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "profiler/test_support/random_source.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "profiler/test_support/written_trace.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/session.hpp"

/// What we export passes what we ask of others.
namespace xpu::profiler {
namespace {

using test_support::check_text;
using test_support::findings_in;
using test_support::random_source;
using test_support::ScriptedSource;
using testing::ElementsAre;
using testing::IsEmpty;

std::string exported(const ScriptedSource& source, bool device_only = false) {
  std::string text;
  ChromeSink sink(
      [&](std::string_view piece) {
        text += piece;
        return Result<>();
      },
      {"trace.json", device_only, nullptr});
  Session session(source);
  session.add_sink(sink);
  EXPECT_TRUE(session.run());
  return text;
}

/// Everything that a recording can hold, once or twice, and nothing lost.
ScriptedSource rich_source() {
  ScriptedSource source;
  for (const std::uint64_t pid : {100, 200}) {
    source.add_simple_process(pid);
    source.add_thread(1, static_cast<std::uint32_t>(pid));
    source.add_thread(2, static_cast<std::uint32_t>(pid) + 1, "worker");
    source.add_queue(1);
    source.add_geometry(1'024, 64);
    source.add_annotation(probe::AnnotationType::begin, 1'500, "step");
    source.add_command(
        {.start = 5'000, .end = 5'300, .enter_ns = 2'000, .exit_ns = 2'250, .geometry = 1, .queued = 2'100, .submit = 4'600});
    source.add_command({.start = 5'250, .end = 5'400, .enter_ns = 2'300, .exit_ns = 2'350, .command = probe::Command::marker});
    source.add_command(
        {.queue = 2, .start = 5'100, .end = 5'600, .enter_ns = 2'000, .exit_ns = 2'100, .command = probe::Command::marker, .writer = 2});
    source.add_command({.start = 6'000,
                        .end = 6'100,
                        .enter_ns = 2'400,
                        .exit_ns = 2'500,
                        .command = probe::Command::write,
                        .bytes = 2'500,
                        .direction = probe::CopyDirection::host_to_device});
    source.add_command({.start = 6'200, .end = 6'200, .enter_ns = 2'600, .exit_ns = 2'700, .command = probe::Command::fill, .bytes = 64});
    source.add_call("clSetKernelArg", 2'800, 2'900);
    source.add_wait("clFinish", probe::WaitType::queue, 3'000, 6'300);
    source.add_annotation(probe::AnnotationType::counter, 6'400, "level", 0.25);
    source.add_annotation(probe::AnnotationType::mark, 6'500, "here");
    source.add_annotation(probe::AnnotationType::end, 6'600, "");
    source.add_memory(probe::MemoryAction::allocate, 1'600, 64, 4'096);
    source.add_overhead(2'000, 2'040, 64, 1);
    source.add_overhead(2'000, 2'040, 64, 2);
  }
  return source;
}

TEST(OwnExportTest, HasNoFinding) {
  EXPECT_THAT(findings_in(exported(rich_source())), IsEmpty());
  const auto check = check_text(exported(rich_source()));
  ASSERT_TRUE(check);
  EXPECT_EQ(check->device_slices, 6u);
  EXPECT_EQ(check->device_slices_with_call, 6u);
  EXPECT_EQ(check->flows, 10u);
}

TEST(OwnExportTest, OfDevicesOnlyHasNoCallsToCompareWith) {
  EXPECT_THAT(findings_in(exported(rich_source(), true)), ElementsAre("no-calls: 1"));
}

TEST(OwnExportTest, OfAnEmptyRecordingSaysSo) { EXPECT_THAT(findings_in(exported(ScriptedSource())), ElementsAre("no-events: 1")); }

TEST(OwnExportTest, NamesARowOnceThoughThreadsShareItsNumber) {
  ScriptedSource source;
  source.add_simple_process();
  for (std::uint32_t writer = 2; writer <= 3; ++writer) {
    source.add_thread(writer, 5'000, "thread of writer " + std::to_string(writer));
    source.add_call("clFlush", 2'000 * writer, 2'000 * writer + 100, 0, writer);
    source.add_overhead(2'000 * writer, 2'000 * writer + 10, 64, writer);
  }
  EXPECT_THAT(findings_in(exported(source)), IsEmpty());
}

TEST(OwnExportTest, NamesAProcessOnceThoughItExecutedAnotherProgram) {
  ScriptedSource source;
  for (const char* name : {"before", "after"}) {
    source.add_process(100, name);
    source.add_thread(1, 100);
    source.add_call("clFlush", name[0] == 'b' ? 2'000 : 4'000, name[0] == 'b' ? 2'100 : 4'100);
  }
  EXPECT_THAT(findings_in(exported(source)), IsEmpty());
}

TEST(OwnExportTest, AClockThatIsOffByItsStatedErrorIsFine) {
  ScriptedSource source;
  source.add_process(100);
  source.add_device("device");
  source.add_queue(1);
  source.add_kernel("kernel");
  source.add_reading(1, 1'000, 1'000, 1'000);  // within 500 ns
  source.add_command({.start = 1'600, .end = 1'700, .enter_ns = 2'000, .exit_ns = 2'100});
  source.add_queue(1);
  source.add_command({.queue = 2, .start = 1'750, .end = 1'760, .enter_ns = 2'150, .exit_ns = 2'200, .command = probe::Command::marker});
  EXPECT_THAT(findings_in(exported(source)), IsEmpty());
}

TEST(OwnExportTest, AnEventThatIsTakenOutIsMissed) {
  const auto whole = nlohmann::json::parse(exported(rich_source()));
  std::size_t taken = 0;
  for (std::size_t i = 0; i < whole["traceEvents"].size(); ++i) {
    auto document = whole;
    const auto event = document["traceEvents"][i];
    const std::string phase = event["ph"];
    if (phase != "X" && phase != "s" && phase != "f") continue;
    document["traceEvents"].erase(i);
    EXPECT_THAT(findings_in(document.dump()), testing::Not(IsEmpty())) << event;
    ++taken;
  }
  EXPECT_EQ(taken, check_text(whole.dump())->slices + 2 * 10u);
}

TEST(OwnExportTest, ADeviceSliceThatIsMovedIsSeen) {
  const auto whole = nlohmann::json::parse(exported(rich_source()));
  std::size_t moved = 0;
  for (std::size_t i = 0; i < whole["traceEvents"].size(); ++i) {
    if (!whole["traceEvents"][i].value("args", nlohmann::json::object()).contains("stream")) continue;
    auto document = whole;
    document["traceEvents"][i]["ts"] = 0.25;  // before every call
    EXPECT_THAT(findings_in(document.dump()), testing::Contains("device-before-call: 1")) << whole["traceEvents"][i];
    ++moved;
  }
  EXPECT_EQ(moved, 6u);
}

TEST(OwnExportTest, WhateverTheRecordingOnlyLossesAreFound) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    for (const std::string& finding : findings_in(exported(random_source(seed))))
      EXPECT_THAT(finding, testing::AnyOf(testing::StartsWith("stated-losses: "), "no-events: 1")) << "seed " << seed;
  }
}

}  // namespace
}  // namespace xpu::profiler
