#include "xpu/profiler/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "profiler/report/build_report.hpp"
#include "profiler/test_support/scripted_source.hpp"

namespace xpu::profiler {
namespace {

using test_support::ScriptedCommand;
using test_support::ScriptedSource;
using testing::ElementsAre;
using Json = nlohmann::json;

Report built(const ScriptedSource& source, const ReportOptions& options = {}, const trace::Conservation& books = {}) {
  Result<Report> report = build_report(source, books, options);
  EXPECT_TRUE(report) << report.error().message;
  return *std::move(report);
}

/// 100 launches of one kernel, 10 ns to 1,000 ns long, each 50 ns after the exit of its call but the last one.
ScriptedSource hundred_launches() {
  ScriptedSource source;
  source.add_simple_process();
  source.add_geometry(1'024, 64);
  source.add_geometry(512, 0);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const std::uint64_t start = 10'000 + i * 2'000;
    const std::uint64_t delay = i == 100 ? 70 : 50;
    source.add_command(
        {.start = start, .end = start + i * 10, .enter_ns = start - delay - 20, .exit_ns = start - delay, .geometry = i <= 90 ? 1u : 2u});
  }
  return source;
}

TEST(ReportTest, SumsUpAKernel) {
  const Report report = built(hundred_launches());
  ASSERT_EQ(report.kernels.size(), 1u);
  const Report::Kernel& kernel = report.kernels[0];
  EXPECT_EQ(kernel.name, "kernel");
  EXPECT_EQ(kernel.device, 0u);
  EXPECT_EQ(kernel.calls, 100u);
  EXPECT_EQ(kernel.timed, 100u);
  EXPECT_EQ(kernel.failed, 0u);
  EXPECT_EQ(kernel.total_ns, 50'500u);
  EXPECT_EQ(kernel.avg_ns, 505u);
  EXPECT_EQ(kernel.min_ns, 10u);
  EXPECT_EQ(kernel.median_ns, 500u) << "the 50th of 100";
  EXPECT_EQ(kernel.p99_ns, 990u) << "the 99th of 100";
  EXPECT_EQ(kernel.max_ns, 1'000u);
  EXPECT_EQ(kernel.share, 1.0);
  ASSERT_TRUE(kernel.launch_delay_ns);
  EXPECT_EQ(kernel.launch_delay_ns->median, 50);
  EXPECT_EQ(kernel.launch_delay_ns->p99, 50) << "the 99th of 100; one was 70";
  ASSERT_EQ(kernel.geometries.size(), 2u);
  EXPECT_EQ(kernel.geometries[0].calls, 90u);
  EXPECT_EQ(kernel.geometries[0].global[0], 1'024u);
  EXPECT_EQ(kernel.geometries[1].local[0], 0u);
}

TEST(ReportTest, RoundsTheAverageToTheNearestNanosecond) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'001, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.start = 6'000, .end = 6'002, .enter_ns = 4'000, .exit_ns = 4'001});
  EXPECT_EQ(built(source).kernels[0].avg_ns, 2u) << "1.5 goes up";
  source.add_command({.start = 7'000, .end = 7'001, .enter_ns = 4'000, .exit_ns = 4'001});
  EXPECT_EQ(built(source).kernels[0].avg_ns, 1u) << "1.33 goes down";
}

TEST(ReportTest, CountsBusyTimeOnceHoweverManyQueuesAreBusy) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_queue(1);
  source.add_command({.queue = 1, .start = 10'000, .end = 20'000, .enter_ns = 1, .exit_ns = 2});
  source.add_command({.queue = 2, .start = 15'000, .end = 25'000, .enter_ns = 3, .exit_ns = 4});
  source.add_command(
      {.queue = 1, .start = 30'000, .end = 31'000, .enter_ns = 5, .exit_ns = 6, .command = probe::Command::read, .bytes = 1});
  source.add_command({.queue = 2, .start = 32'000, .end = 90'000, .enter_ns = 7, .exit_ns = 8, .command = probe::Command::barrier});
  const Report report = built(source);
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].busy_ns, 16'000u) << "15,000 of two kernels and 1,000 of the copy; a barrier is no work";
  EXPECT_EQ(report.devices[0].span_ns, 21'000u);
  EXPECT_EQ(report.devices[0].idle_ns, 5'000u);
  EXPECT_EQ(report.devices[0].commands, 4u);
}

TEST(ReportTest, SharesAreOfTheDeviceThatRanTheKernel) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_queue(source.add_device("other"));
  source.add_reading(2, 1'000, 1'000);
  source.add_kernel("small");
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 1, .exit_ns = 2});
  source.add_command({.start = 6'000, .end = 6'100, .enter_ns = 1, .exit_ns = 2, .kernel = 2});
  source.add_command({.queue = 2, .start = 5'000, .end = 5'050, .enter_ns = 1, .exit_ns = 2, .kernel = 2});
  const Report report = built(source);
  ASSERT_EQ(report.kernels.size(), 3u) << "a row per kernel and device";
  EXPECT_EQ(report.kernels[0].share, 0.75);
  EXPECT_EQ(report.kernels[1].share, 0.25);
  EXPECT_EQ(report.kernels[2].device, 1u);
  EXPECT_EQ(report.kernels[2].share, 1.0);

  ReportOptions options;
  options.by = ReportOptions::By::kernel;
  const Report merged = built(source, options);
  ASSERT_EQ(merged.kernels.size(), 2u);
  EXPECT_EQ(merged.kernels[1].name, "small");
  EXPECT_EQ(merged.kernels[1].calls, 2u);
  EXPECT_EQ(merged.kernels[1].total_ns, 150u);
  EXPECT_EQ(merged.kernels[1].device, std::nullopt);
  EXPECT_DOUBLE_EQ(*merged.kernels[1].share, 150.0 / 450.0) << "of all devices together";
}

TEST(ReportTest, CountsWhatHasNoTimesAndKeepsItsTimesUnknown) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.enter_ns = 4'002, .exit_ns = 4'003, .completion_flags = trace::kFlagUntimed});
  source.add_command({.enter_ns = 4'004, .exit_ns = 4'005, .result = -54});
  const Report report = built(source);
  ASSERT_EQ(report.kernels.size(), 1u);
  const Report::Kernel& kernel = report.kernels[0];
  EXPECT_EQ(kernel.calls, 2u);
  EXPECT_EQ(kernel.failed, 1u);
  EXPECT_EQ(kernel.timed, 0u);
  EXPECT_EQ(kernel.total_ns, std::nullopt);
  EXPECT_EQ(kernel.p99_ns, std::nullopt);
  EXPECT_EQ(kernel.share, std::nullopt);
  EXPECT_FALSE(kernel.launch_delay_ns);
  EXPECT_EQ(report.devices[0].busy_ns, std::nullopt);
  ASSERT_EQ(report.conservation.pending_commands.size(), 1u);
  EXPECT_EQ(report.conservation.pending_commands[0].name, "kernel");
  EXPECT_EQ(report.conservation.pending_commands[0].enter_ns, 3'000) << "after the program's start";
  ASSERT_EQ(report.failed_calls.size(), 1u);
  EXPECT_EQ(report.failed_calls[0].name, "clEnqueueNDRangeKernel");
  EXPECT_EQ(report.failed_calls[0].result, -54);
}

TEST(ReportTest, HasNoLaunchDelayWhereTheExitOfTheCallIsNotRecorded) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 0});
  const Report report = built(source);
  EXPECT_FALSE(report.kernels[0].launch_delay_ns);
  EXPECT_EQ(report.kernels[0].total_ns, 100u);
  EXPECT_EQ(report.api[0].total_ns, std::nullopt);
}

TEST(ReportTest, ShowsAStartBeforeTheReturnOfTheCallAsANegativeDelay) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 5'030});
  EXPECT_EQ(built(source).kernels[0].launch_delay_ns->median, -30);
}

TEST(ReportTest, RatesCopiesByRoute) {
  ScriptedSource source;
  source.add_simple_process();
  using probe::Command;
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 1, .exit_ns = 2, .command = Command::write, .bytes = 4'000});
  source.add_command({.start = 7'000, .end = 9'000, .enter_ns = 1, .exit_ns = 2, .command = Command::write, .bytes = 2'000});
  source.add_command({.enter_ns = 1, .exit_ns = 2, .command = Command::write, .bytes = 500});
  source.add_command({.start = 10'000, .end = 10'100, .enter_ns = 1, .exit_ns = 2, .command = Command::read});
  source.add_command({.start = 11'000, .end = 11'200, .enter_ns = 1, .exit_ns = 2, .command = Command::fill, .bytes = 400});
  const Report report = built(source);
  ASSERT_EQ(report.copies.size(), 2u);
  EXPECT_EQ(report.copies[0].route, "host_to_device");
  EXPECT_EQ(report.copies[0].calls, 3u);
  EXPECT_EQ(report.copies[0].bytes, 6'500u);
  EXPECT_EQ(report.copies[0].total_ns, 3'000u);
  EXPECT_EQ(report.copies[0].bytes_per_s, 2'000'000'000u) << "6,000 timed bytes in 3,000 ns";
  EXPECT_EQ(report.copies[1].route, "device_to_host");
  EXPECT_EQ(report.copies[1].bytes, std::nullopt);
  EXPECT_EQ(report.copies[1].bytes_per_s, std::nullopt);
  ASSERT_EQ(report.fills.size(), 1u);
  EXPECT_EQ(report.fills[0].bytes_per_s, 2'000'000'000u);
}

TEST(ReportTest, TellsPinnedMemoryFromOtherMemoryOfTheHost) {
  using probe::Command, probe::CopyDirection, probe::MemoryType;
  ScriptedSource source;
  source.add_simple_process();
  ScriptedCommand copy{.start = 5'000, .end = 6'000, .enter_ns = 1, .exit_ns = 2, .command = Command::write, .bytes = 4'000};
  copy.direction = CopyDirection::host_to_host;
  copy.source = MemoryType::host;
  copy.destination = MemoryType::pinned;
  source.add_command(copy);
  std::swap(copy.source, copy.destination);
  copy.command = Command::read;
  copy.end = 5'500;
  source.add_command(copy);
  const Report report = built(source);
  ASSERT_EQ(report.copies.size(), 2u);
  EXPECT_EQ(report.copies[0].route, "host_to_pinned");
  EXPECT_EQ(report.copies[1].route, "pinned_to_host");
}

TEST(ReportTest, DoesNotRateMaps) {
  using probe::Command;
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'001, .enter_ns = 1, .exit_ns = 2, .command = Command::map, .bytes = 1u << 30});
  source.add_command({.start = 6'000, .end = 6'000, .enter_ns = 1, .exit_ns = 2, .command = Command::unmap});
  const Report report = built(source);
  ASSERT_EQ(report.copies.size(), 2u);
  EXPECT_EQ(report.copies[0].route, "map");
  EXPECT_EQ(report.copies[0].bytes, 1u << 30);
  EXPECT_EQ(report.copies[0].bytes_per_s, std::nullopt) << "an address was handed out, and nothing moved";
  EXPECT_EQ(report.copies[1].route, "unmap");
  EXPECT_EQ(report.copies[1].bytes, std::nullopt);
}

TEST(ReportTest, TabulatesCallsOnTheHost) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 2'000, .exit_ns = 2'100, .command = probe::Command::read});
  source.add_wait("clEnqueueCommand", probe::WaitType::blocking_call, 2'000, 2'100);
  source.add_wait("clFinish", probe::WaitType::queue, 3'000, 7'000);
  source.add_wait("clFinish", probe::WaitType::queue, 8'000, 8'010);
  source.add_call("clCreateBuffer", 1'500, 1'520);
  source.add_call("clCreateBuffer", 1'600, 1'610, -61);
  source.add_call("clCreateBuffer", 1'700, 1'710, -61);
  source.shuffle(2);
  const Report report = built(source);
  ASSERT_EQ(report.api.size(), 3u);
  EXPECT_EQ(report.api[0].name, "clFinish");
  EXPECT_EQ(report.api[0].calls, 2u);
  EXPECT_EQ(report.api[0].total_ns, 4'010u);
  EXPECT_EQ(report.api[0].max_ns, 4'000u);
  EXPECT_TRUE(report.api[0].waits);
  EXPECT_EQ(report.api[1].name, "clEnqueueCommand");
  EXPECT_EQ(report.api[1].calls, 1u) << "a blocking call is one call, though it is on record as a wait as well";
  EXPECT_TRUE(report.api[1].waits);
  EXPECT_EQ(report.api[2].name, "clCreateBuffer");
  EXPECT_EQ(report.api[2].failed, 2u);
  EXPECT_FALSE(report.api[2].waits);
  EXPECT_EQ(report.slowest_calls[0].name, "clFinish");
  EXPECT_EQ(report.slowest_calls[0].start_ns, 2'000);
  ASSERT_EQ(report.failed_calls.size(), 1u);
  EXPECT_EQ(report.failed_calls[0].calls, 2u);
  EXPECT_EQ(report.failed_calls[0].start_ns, 600) << "the first of them";
}

TEST(ReportTest, FollowsTheMemoryOfEachContext) {
  ScriptedSource source;
  source.add_simple_process();
  using probe::MemoryAction;
  source.add_memory(MemoryAction::allocate, 2'000, 100, 100);
  source.add_memory(MemoryAction::allocate, 3'000, 300, 400);
  source.add_memory(MemoryAction::release, 4'000, 100, 300);
  source.add_memory(MemoryAction::allocate, 2'500, 7, 7, 2);
  source.shuffle(4);
  const Report report = built(source);
  ASSERT_EQ(report.memory.size(), 2u);
  EXPECT_EQ(report.memory[0].peak_bytes, 400u);
  EXPECT_EQ(report.memory[0].alive_bytes, 300u);
  EXPECT_EQ(report.memory[0].allocations, 2u);
  EXPECT_EQ(report.memory[0].releases, 1u);
  EXPECT_EQ(report.memory[1].context, 2u);
  EXPECT_EQ(report.memory[1].peak_bytes, 7u);
}

TEST(ReportTest, TheOwnersOfThePeakAreTheRangesThatAllocatedIt) {
  ScriptedSource source;
  source.add_simple_process();
  using probe::AnnotationType, probe::MemoryAction;
  source.add_thread(2, 101);
  source.add_annotation(AnnotationType::begin, 2'000, "step");
  source.add_annotation(AnnotationType::begin, 2'100, "forward");
  source.add_annotation(AnnotationType::end, 2'200, "");
  source.add_annotation(AnnotationType::begin, 2'300, "backward");
  source.add_annotation(AnnotationType::end, 2'400, "");
  source.add_annotation(AnnotationType::end, 2'500, "");
  const auto memory = [&](MemoryAction action, std::uint64_t time_ns, std::uint64_t address, std::uint64_t bytes, std::uint64_t total,
                          std::uint32_t thread = 1) {
    trace::MemoryRecord record{};
    record.action = static_cast<std::uint8_t>(action);
    record.time_ns = time_ns;
    record.address = address;
    record.bytes = bytes;
    record.total = total;
    record.context = 1;
    record.thread = thread;
    source.add(trace::RecordKind::memory, record);
  };
  memory(MemoryAction::allocate, 2'050, 0x1, 10, 1'010);   // a thousand bytes were there before
  memory(MemoryAction::allocate, 2'110, 0x2, 200, 1'210);  // forward
  memory(MemoryAction::allocate, 2'120, 0x3, 50, 1'260);   // forward, gone at the peak
  memory(MemoryAction::release, 2'250, 0x3, 50, 1'210);
  memory(MemoryAction::allocate, 2'310, 0x3, 30, 1'240);      // the same address again, by backward
  memory(MemoryAction::allocate, 2'320, 0x4, 300, 1'540, 2);  // the other thread is in no range
  memory(MemoryAction::release, 2'600, 0x2, 200, 1'340);
  memory(MemoryAction::allocate, 3'310, 0x5, 7, 1'347);
  source.shuffle(4);
  const Report report = built(source);
  ASSERT_EQ(report.memory.size(), 1u);
  const Report::Memory& row = report.memory[0];
  EXPECT_EQ(row.peak_bytes, 1'540u);
  std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>> owners;
  for (const Report::MemoryOwner& owner : row.owners) owners.emplace_back(owner.name, owner.bytes, owner.blocks);
  using Owner = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  EXPECT_THAT(owners, testing::ElementsAre(Owner("(before the recording)", 1'000, 0), Owner("(no range)", 300, 1), Owner("forward", 200, 1),
                                           Owner("backward", 30, 1), Owner("step", 10, 1)));
  EXPECT_EQ(row.timeline_step_ns, 20u);
  ASSERT_EQ(row.timeline_bytes.size(), 64u) << "1,260 ns";
  EXPECT_EQ(row.timeline_bytes[0], 1'010u);
  EXPECT_EQ(row.timeline_bytes[13], 1'540u) << "2,320 is 270 behind the first";
  EXPECT_EQ(row.timeline_bytes[27], 1'540u) << "until 2,600";
  EXPECT_EQ(row.timeline_bytes[28], 1'340u);
  EXPECT_EQ(row.timeline_bytes[63], 1'347u);
}

TEST(ReportTest, EstimatesTheCostOfRecordingFromItsSamples) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_overhead(2'000, 2'030, 64);
  source.add_overhead(3'000, 3'050, 64);
  const Report report = built(source);
  EXPECT_EQ(report.overhead.program_ns, 80u * 64u);
  source.add_overhead(10'000, 9'010'000, 64);
  EXPECT_EQ(built(source).overhead.program_ns, 80u * 64u + 50'000u * 64u + 8'950'000u) << "an interruption of 9 ms does not stand for 64";
  EXPECT_EQ(report.overhead.recorder_ns, 30'000u);
  EXPECT_EQ(built(ScriptedSource()).overhead.program_ns, std::nullopt) << "no sample is not no cost";
}

TEST(ReportTest, GroupsByProcessQueueAndThread) {
  ScriptedSource source;
  for (const std::uint64_t pid : {100, 200}) {
    source.add_simple_process(pid);
    source.add_queue(1);
    source.add_thread(2, static_cast<std::uint32_t>(pid) + 1);
    source.add_command({.queue = 1, .start = 5'000, .end = 5'010, .enter_ns = 1, .exit_ns = 2, .writer = 1});
    source.add_command({.queue = 2, .start = 6'000, .end = 6'020, .enter_ns = 1, .exit_ns = 2, .writer = 1});
    source.add_command({.queue = 2, .start = 7'000, .end = 7'040, .enter_ns = 1, .exit_ns = 2, .writer = 2});
  }
  source.shuffle(9);
  const auto rows = [&](ReportOptions::By by) {
    ReportOptions options;
    options.by = by;
    std::vector<std::tuple<std::optional<std::uint64_t>, std::optional<std::uint32_t>, std::optional<std::uint32_t>, std::uint64_t>> seen;
    for (const Report::Kernel& kernel : built(source, options).kernels)
      seen.emplace_back(kernel.process, kernel.queue, kernel.thread, *kernel.total_ns);
    return seen;
  };
  const auto none = std::nullopt;
  EXPECT_THAT(rows(ReportOptions::By::none), ElementsAre(std::tuple(none, none, none, 140u)));
  EXPECT_THAT(rows(ReportOptions::By::process), ElementsAre(std::tuple(100u, none, none, 70u), std::tuple(200u, none, none, 70u)));
  EXPECT_THAT(rows(ReportOptions::By::queue), ElementsAre(std::tuple(100u, 2u, none, 60u), std::tuple(200u, 2u, none, 60u),
                                                          std::tuple(100u, 1u, none, 10u), std::tuple(200u, 1u, none, 10u)));
  EXPECT_THAT(rows(ReportOptions::By::thread), ElementsAre(std::tuple(100u, none, 101u, 40u), std::tuple(200u, none, 201u, 40u),
                                                           std::tuple(100u, none, 100u, 30u), std::tuple(200u, none, 200u, 30u)));
}

TEST(ReportTest, SortsAndSelectsKernels) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_kernel("_ZTSN3app4copyE");
  source.add_kernel("axpy");
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 1, .exit_ns = 2, .kernel = 1});
  source.add_command({.start = 6'000, .end = 6'030, .enter_ns = 1, .exit_ns = 2, .kernel = 2});
  source.add_command({.start = 7'000, .end = 7'030, .enter_ns = 1, .exit_ns = 2, .kernel = 2});
  source.add_command({.start = 8'000, .end = 8'070, .enter_ns = 1, .exit_ns = 2, .kernel = 3});
  const auto names = [&](const std::string& sort, const std::string& expression = "") {
    ReportOptions options;
    options.sort = sort;
    options.kernels_regex = expression;
    std::vector<std::string> seen;
    for (const Report::Kernel& kernel : built(source, options).kernels) seen.push_back(kernel.name);
    return seen;
  };
  EXPECT_THAT(names("total"), ElementsAre("kernel", "axpy", "app::copy"));
  EXPECT_THAT(names("calls"), ElementsAre("app::copy", "axpy", "kernel"));
  EXPECT_THAT(names("max"), ElementsAre("kernel", "axpy", "app::copy"));
  EXPECT_THAT(names("name"), ElementsAre("app::copy", "axpy", "kernel"));
  EXPECT_THAT(names("total", "^a"), ElementsAre("axpy", "app::copy"));
  EXPECT_THAT(names("total", "_ZTS"), ElementsAre("app::copy")) << "the raw name counts as well";
  EXPECT_THAT(names("total", "nothing"), ElementsAre());
}

TEST(ReportTest, SaysWhatIsWrongWithAnOption) {
  ReportOptions options;
  options.sort = "size";
  const auto bad_sort = build_report(ScriptedSource(), {}, options);
  ASSERT_FALSE(bad_sort);
  EXPECT_EQ(bad_sort.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(bad_sort.error().message, "cannot sort by 'size', it must be one of total, calls, avg, min, median, p99, max, name");
  options.sort = "total";
  options.kernels_regex = "a(";
  const auto bad_expression = build_report(ScriptedSource(), {}, options);
  ASSERT_FALSE(bad_expression);
  EXPECT_NE(bad_expression.error().message.find("'a(' is not a regular expression"), std::string::npos);
}

TEST(ReportTest, IsTheSameInWhateverOrderTheRecordsLie) {
  ScriptedSource source = hundred_launches();
  source.add_memory(probe::MemoryAction::allocate, 2'000, 100, 100);
  source.add_wait("clFinish", probe::WaitType::queue, 3'000, 7'000);
  source.add_call("clCreateBuffer", 1'500, 1'520, -61);
  source.add_command({.enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.start = 300'000, .end = 310'000, .enter_ns = 1, .exit_ns = 2, .command = probe::Command::write, .bytes = 4'000});
  const std::string expected = report_json(built(source));
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    source.shuffle(seed);
    EXPECT_EQ(report_json(built(source)), expected) << "seed " << seed;
  }
}

trace::Conservation some_books() {
  trace::Conservation books;
  books.total = {0, 0, 104, 100, 3, 1, 2, 1, 0};
  books.queues = {{0, 1, 104, 100, 3, 1, 2, 1, 0}};
  books.losses = {{0, 1, static_cast<std::uint32_t>(probe::LossCause::ring_full), 3}};
  books.filtered = 5;
  books.refused_calls = 6;
  books.other_records_lost = 7;
  return books;
}

TEST(ReportJsonTest, HoldsTheBooks) {
  const Json json = Json::parse(report_json(built(hundred_launches(), {}, some_books())));
  const Json& conservation = json["conservation"];
  EXPECT_EQ(conservation["submitted"], 104);
  EXPECT_EQ(conservation["recorded"], 100);
  EXPECT_EQ(conservation["lost"], 3);
  EXPECT_EQ(conservation["pending"], 1);
  EXPECT_EQ(conservation["untimed"], 2);
  EXPECT_EQ(conservation["filtered"], 5);
  EXPECT_EQ(conservation["refused"], 6);
  EXPECT_EQ(conservation["unexplained"], 0);
  EXPECT_EQ(conservation["other_records_lost"], 7);
  EXPECT_EQ(conservation["queues"][0]["process"], 100);
  EXPECT_EQ(conservation["queues"][0]["recorded"], 100);
  EXPECT_EQ(json["losses"], Json::parse(R"([{"cause": "ring_full", "process": 100, "queue": 1, "count": 3}])"));
}

TEST(ReportJsonTest, HasEveryFieldOfTheSchema) {
  const Json json = Json::parse(report_json(built(hundred_launches(), {}, some_books())));
  EXPECT_EQ(json["schema"], "xpu.report/1");
  const auto has = [](const Json& object, std::initializer_list<const char*> keys) {
    for (const char* key : keys) EXPECT_TRUE(object.contains(key)) << key;
  };
  has(json, {"program", "processes", "devices", "kernels", "copies", "fills", "api", "memory", "conservation", "errors", "losses", "clocks",
             "overhead"});
  has(json["program"], {"argv", "exit_code", "signal", "wall_ns"});
  has(json["processes"][0], {"pid", "name", "rank", "command"});
  has(json["devices"][0], {"id", "name", "driver", "busy_ns", "idle_ns", "span_ns"});
  has(json["kernels"][0], {"name", "raw_name", "device", "calls", "failed", "total_ns", "avg_ns", "min_ns", "median_ns", "p99_ns", "max_ns",
                           "share", "launch_delay_ns", "geometries"});
  has(json["api"][0], {"name", "calls", "failed", "total_ns", "max_ns"});
  has(json["clocks"][0], {"device", "domain", "tick_ns", "error_ns", "readings"});
  has(json["overhead"], {"program_ns", "recorder_ns"});
}

TEST(ReportJsonTest, WritesUnknownAsNullAndIntegersAsIntegers) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.enter_ns = 4'000, .exit_ns = 4'001});
  source.mutable_manifest().end = {};
  const Json json = Json::parse(report_json(built(source)));
  EXPECT_TRUE(json["program"]["exit_code"].is_null());
  EXPECT_TRUE(json["program"]["wall_ns"].is_null());
  EXPECT_TRUE(json["kernels"][0]["total_ns"].is_null());
  EXPECT_TRUE(json["kernels"][0]["launch_delay_ns"].is_null());
  EXPECT_TRUE(json["devices"][0]["busy_ns"].is_null());
  EXPECT_TRUE(json["processes"][0]["rank"].is_null());
  EXPECT_TRUE(json["clocks"][0]["error_ns"].is_null());
  EXPECT_TRUE(json["overhead"]["program_ns"].is_null());
  EXPECT_TRUE(json["kernels"][0]["calls"].is_number_integer());
}

TEST(ReportJsonTest, TellsASignalFromAnExitCode) {
  ScriptedSource source;
  source.mutable_manifest().end = {true, -1, 9, 500, 0};
  const Json json = Json::parse(report_json(built(source)));
  EXPECT_TRUE(json["program"]["exit_code"].is_null());
  EXPECT_EQ(json["program"]["signal"], 9);
}

TEST(ReportCsvTest, WritesARowPerKernelAndLeavesUnknownEmpty) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_kernel("a, \"quoted\" one");
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 4'900});
  source.add_command({.enter_ns = 4'001, .exit_ns = 4'002, .kernel = 2});
  EXPECT_EQ(report_csv(built(source)),
            "name,device,process,queue,thread,calls,failed,total_ns,avg_ns,min_ns,median_ns,p99_ns,max_ns,share,launch_delay_median_ns,"
            "launch_delay_p99_ns,"
            "raw_name\n"
            "kernel,0,,,,1,0,100,100,100,100,100,100,1,100,100,kernel\n"
            "\"a, \"\"quoted\"\" one\",0,,,,1,0,,,,,,,,,,\"a, \"\"quoted\"\" one\"\n");
}

}  // namespace
}  // namespace xpu::profiler
