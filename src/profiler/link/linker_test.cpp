#include "xpu/profiler/linker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/scripted_source.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::ScriptedSource;

/// The sink's activities point into the linker, so both are kept.
struct Linked {
  explicit Linked(const ScriptedSource& source) : linker(source) {
    const Result<LinkSummary> result = linker.run(sink);
    EXPECT_TRUE(result);
  }
  Linker linker;
  CollectingSink sink;
  const LinkSummary& summary() const { return *sink.summary; }
};

TEST(LinkerTest, JoinsACallWithItsCommand) {
  ScriptedSource source;
  source.add_simple_process();
  const std::uint32_t geometry = source.add_geometry(1024, 64);
  source.add_command(
      {.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'200, .geometry = geometry, .queued = 4'100, .submit = 4'600});

  const Linked linked(source);
  ASSERT_EQ(linked.sink.calls.size(), 1u);
  const RuntimeActivity& call = linked.sink.calls[0];
  EXPECT_EQ(call.api->text, "clEnqueueNDRangeKernel");
  EXPECT_EQ(call.start_ns, 4'000);
  EXPECT_EQ(call.duration_ns, 200u);
  EXPECT_EQ(call.thread->os_thread, 100u);
  EXPECT_TRUE(call.submits);

  ASSERT_EQ(linked.sink.kernels.size(), 1u);
  const KernelActivity& kernel = linked.sink.kernels[0];
  EXPECT_EQ(kernel.kernel->name, "kernel");
  EXPECT_EQ(kernel.correlation, call.correlation);
  EXPECT_EQ(kernel.start_ns, 5'000);
  EXPECT_EQ(kernel.duration_ns, 300u);
  EXPECT_EQ(kernel.queued_ns, 4'100);
  EXPECT_EQ(kernel.submitted_ns, 4'600);
  EXPECT_EQ(kernel.geometry->global[0], 1024u);
  EXPECT_EQ(kernel.queue->device->name, "device");
  EXPECT_EQ(linked.summary().linked, 1u);
}

TEST(LinkerTest, LinksByIdInWhateverOrderTheRecordsLie) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_thread(2, 101);
  for (std::uint64_t i = 0; i < 200; ++i) {
    source.add_command({.start = 10'000 + i * 100,
                        .end = 10'050 + i * 100 + i,
                        .enter_ns = 5'000 + i * 10,
                        .exit_ns = 5'003 + i * 10,
                        .writer = i % 2 == 0 ? 1u : 2u});
  }
  using Row = std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::uint32_t, std::uint32_t>;
  const auto rows_of = [](const ScriptedSource& from) {
    std::vector<Row> rows;
    const Linked linked(from);
    for (const auto& kernel : linked.sink.kernels) {
      rows.emplace_back(kernel.start_ns, kernel.call_start_ns, kernel.duration_ns, kernel.lane, kernel.call_thread->os_thread);
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  const std::vector<Row> in_order = rows_of(source);
  ASSERT_EQ(in_order.size(), 200u);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    source.shuffle(seed);
    EXPECT_EQ(rows_of(source), in_order) << "seed " << seed;
  }
}

TEST(LinkerTest, TellsPendingLostRefusedFailedAndUntimedApart) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.enter_ns = 4'010, .exit_ns = 4'011});
  const std::uint64_t lost = source.add_command({.enter_ns = 4'020, .exit_ns = 4'021});
  source.add_command({.enter_ns = 4'030, .exit_ns = 4'031, .result = -54});
  source.add_command(
      {.start = 5'200, .end = 5'300, .enter_ns = 4'040, .exit_ns = 4'041, .completion_flags = trace::kFlagFailed, .status = -5});
  source.add_command({.enter_ns = 4'050, .exit_ns = 4'051, .completion_flags = trace::kFlagUntimed});
  source.add_command({.start = 5'400, .enter_ns = 4'060, .exit_ns = 4'061, .completion_flags = trace::kFlagUnfinishedAtExit});
  trace::LossRecord loss{};
  loss.header.flags = trace::kFlagCompletionLost;
  loss.first_operation = loss.last_operation = lost;
  loss.count = 1;
  loss.queue = 1;
  loss.cause = 2;
  source.add_loss(loss);

  const Linked linked(source);
  std::vector<std::pair<CommandState, bool>> states;
  for (const auto& kernel : linked.sink.kernels) states.emplace_back(kernel.state, kernel.timed);
  EXPECT_EQ(states, (std::vector<std::pair<CommandState, bool>>{{CommandState::completed, true},
                                                                {CommandState::pending, false},
                                                                {CommandState::lost, false},
                                                                {CommandState::refused, false},
                                                                {CommandState::failed, true},
                                                                {CommandState::completed, false},
                                                                {CommandState::unfinished, false}}));
  EXPECT_EQ(linked.sink.kernels[4].native_status, -5);
  EXPECT_EQ(linked.summary().commands, 6u);
  EXPECT_EQ(linked.summary().refused, 1u);
  EXPECT_EQ(linked.summary().linked, 4u);
  EXPECT_EQ(linked.summary().untimed, 2u);
  EXPECT_EQ(linked.summary().pending, 1u);
  EXPECT_EQ(linked.summary().lost, 1u);
  ASSERT_EQ(linked.sink.losses.size(), 1u);
  EXPECT_EQ(linked.sink.losses[0].count, 1u);
}

TEST(LinkerTest, CountsCompletionsWithoutACallAndRecordsThatComeTwice) {
  ScriptedSource source;
  source.add_simple_process();
  trace::OperationCompletedRecord orphan{};
  orphan.operation = trace::make_operation(9, 77);
  orphan.queue = 1;
  orphan.start = 5'000;
  orphan.end = 5'100;
  source.add(trace::RecordKind::operation_completed, orphan);
  source.add(trace::RecordKind::operation_completed, orphan);
  const Linked linked(source);
  EXPECT_EQ(linked.summary().orphans, 1u);
  EXPECT_EQ(linked.summary().duplicates, 1u);
  EXPECT_TRUE(linked.sink.kernels.empty());
}

TEST(LinkerTest, KeepsProcessesWithTheSameIdsApart) {
  ScriptedSource source;
  source.add_simple_process(100);
  source.add_command({.start = 5'000, .end = 5'010, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_simple_process(200);
  source.add_command({.start = 6'000, .end = 6'020, .enter_ns = 4'500, .exit_ns = 4'501});

  const Linked linked(source);
  ASSERT_EQ(linked.sink.kernels.size(), 2u);
  const auto &first = linked.sink.kernels[0], &second = linked.sink.kernels[1];
  EXPECT_EQ(first.process->pid, 100u);
  EXPECT_EQ(first.duration_ns, 10u);
  EXPECT_EQ(second.process->pid, 200u);
  EXPECT_EQ(second.duration_ns, 20u);
  EXPECT_NE(first.correlation, second.correlation);
  EXPECT_NE(first.queue->index, second.queue->index);
  EXPECT_EQ(first.queue->device, second.queue->device) << "it is one device, though each process describes it for itself";
}

TEST(LinkerTest, KeepsEqualDevicesOfOneProcessApart) {
  ScriptedSource source;
  for (const std::uint64_t pid : {100, 200}) {
    source.add_process(pid);
    source.add_device("pthread");
    source.add_device("pthread");
  }
  const Linked linked(source);
  EXPECT_EQ(linked.linker.definitions().devices.size(), 2u);
  EXPECT_EQ(linked.linker.definitions().clocks.size(), 4u);
}

TEST(LinkerTest, TakesDurationsFromTicksAndStartsFromTheClockMap) {
  ScriptedSource source;
  source.add_process(100);
  // 52 ns per tick, and a device clock that runs 50 ppm fast against the host: 1,000,000 ticks are 52 ms of its own, 51.9974 ms of the
  // host's.
  source.add_queue(source.add_device("gpu", "driver", 52, 1));
  source.add_kernel("kernel");
  source.add_reading(1, 1'000'000'000, 5'000'000);
  source.add_reading(1, 1'051'997'400, 6'000'000);
  source.add_command({.start = 5'500'000, .end = 5'500'100, .enter_ns = 1'025'000'000, .exit_ns = 1'025'000'100});
  const Linked linked(source);
  ASSERT_EQ(linked.sink.kernels.size(), 1u);
  const KernelActivity& kernel = linked.sink.kernels[0];
  EXPECT_EQ(kernel.duration_ns, 5'200u);
  EXPECT_NEAR(static_cast<double>(kernel.start_ns), 1'025'998'700.0, 60);
  EXPECT_GT(kernel.error_ns, 0u);
  const ClockDefinition& clock = linked.linker.definitions().clocks[0];
  EXPECT_EQ(clock.error_max_ns, kernel.error_ns);
  EXPECT_EQ(clock.error_median_ns, kernel.error_ns);
  EXPECT_EQ(clock.readings, 2u);
}

TEST(LinkerTest, ADeviceClockThatIsTheHostsIsExactToATickHoweverFarTheReadingsAre) {
  for (const auto method : {probe::ClockMethod::native, probe::ClockMethod::host_clock}) {
    ScriptedSource source;
    source.add_process(100);
    source.add_queue(source.add_device("host"));
    source.add_kernel("kernel");
    source.add_reading(1, 1'000'000'000, 1'000'000'300, 2'000, method);
    source.add_command({.start = 9'000'000'000, .end = 9'000'000'100, .enter_ns = 8'999'999'000, .exit_ns = 8'999'999'500});
    const Linked linked(source);
    ASSERT_EQ(linked.sink.kernels.size(), 1u);
    if (method == probe::ClockMethod::native) {
      EXPECT_EQ(linked.sink.kernels[0].start_ns, 9'000'000'000u);
      EXPECT_EQ(linked.sink.kernels[0].error_ns, 1u);
    } else {
      EXPECT_GT(linked.sink.kernels[0].error_ns, 100'000u) << "what was only observed is no promise";
    }
  }
}

TEST(LinkerTest, FollowsACounterRoundItsWrap) {
  ScriptedSource source;
  source.add_process(100);
  // 16 bits of 1 us ticks: the counter wraps every 65.536 ms. The command begins before a wrap and ends behind it.
  source.add_queue(source.add_device("gpu", "driver", 1000, 1, 16));
  source.add_kernel("kernel");
  source.add_reading(1, 1'000'000'000, 0);
  source.add_reading(1, 1'040'000'000, 40'000);
  source.add_command({.start = 65'530, .end = 4, .enter_ns = 1'065'000'000, .exit_ns = 1'065'001'000});
  source.add_command({.start = 65'530, .end = 4, .enter_ns = 1'130'500'000, .exit_ns = 1'130'501'000});
  const Linked linked(source);
  ASSERT_EQ(linked.sink.kernels.size(), 2u);
  EXPECT_EQ(linked.sink.kernels[0].duration_ns, 10'000u);
  EXPECT_NEAR(static_cast<double>(linked.sink.kernels[0].start_ns), 1'065'530'000.0, 1'000);
  EXPECT_EQ(linked.sink.kernels[1].duration_ns, 10'000u);
  EXPECT_NEAR(static_cast<double>(linked.sink.kernels[1].start_ns), 1'131'066'000.0, 1'000) << "one turn of the counter later";
}

TEST(LinkerTest, KeepsTheLengthOfACommandWhenNothingSaysWhenItRan) {
  ScriptedSource source;
  source.add_process(100);
  source.add_queue(source.add_device("gpu", "driver", 10, 1));
  source.add_kernel("kernel");
  source.add_command({.start = 500, .end = 530, .enter_ns = 4'000, .exit_ns = 4'001});
  const Linked linked(source);
  ASSERT_EQ(linked.sink.kernels.size(), 1u);
  EXPECT_TRUE(linked.sink.kernels[0].timed);
  EXPECT_FALSE(linked.sink.kernels[0].placed);
  EXPECT_EQ(linked.sink.kernels[0].duration_ns, 300u);
  EXPECT_EQ(linked.summary().unplaced, 1u);
}

TEST(LinkerTest, TakesACommandThatEndsBeforeItBeginsForUntimed) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 4'900, .enter_ns = 4'000, .exit_ns = 4'001});
  const Linked linked(source);
  ASSERT_EQ(linked.sink.kernels.size(), 1u);
  EXPECT_FALSE(linked.sink.kernels[0].timed);
  EXPECT_EQ(linked.summary().untimed, 1u);
}

TEST(LinkerTest, GivesCommandsOfOneQueueThatOverlapDifferentLanes) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_queue(1);
  source.add_command({.start = 5'000, .end = 6'000, .enter_ns = 4'000, .exit_ns = 4'001});
  source.add_command({.start = 5'500, .end = 6'500, .enter_ns = 4'002, .exit_ns = 4'003});
  source.add_command({.start = 6'000, .end = 7'000, .enter_ns = 4'004, .exit_ns = 4'005});
  source.add_command({.queue = 2, .start = 5'500, .end = 6'500, .enter_ns = 4'006, .exit_ns = 4'007});
  const Linked linked(source);
  std::vector<std::uint32_t> lanes;
  for (const auto& kernel : linked.sink.kernels) lanes.push_back(kernel.lane);
  EXPECT_EQ(lanes, (std::vector<std::uint32_t>{0, 1, 0, 0}));
}

TEST(LinkerTest, CarriesBytesAndDirectionOfCopiesAndFills) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 1, .exit_ns = 2, .command = probe::Command::write, .bytes = 4'096});
  source.add_command({.start = 5'200,
                      .end = 5'300,
                      .enter_ns = 3,
                      .exit_ns = 4,
                      .command = probe::Command::copy,
                      .bytes = 100,
                      .direction = probe::CopyDirection::peer});
  source.add_command({.start = 5'400, .end = 5'500, .enter_ns = 5, .exit_ns = 6, .command = probe::Command::read});
  source.add_command({.start = 5'600, .end = 5'700, .enter_ns = 7, .exit_ns = 8, .command = probe::Command::fill, .bytes = 64});
  source.add_command({.start = 5'800, .end = 5'800, .enter_ns = 9, .exit_ns = 10, .command = probe::Command::marker});
  source.shuffle(3);
  Linked linked(source);
  ASSERT_EQ(linked.sink.copies.size(), 3u);
  std::sort(linked.sink.copies.begin(), linked.sink.copies.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  EXPECT_EQ(linked.sink.copies[0].bytes, 4'096u);
  EXPECT_EQ(linked.sink.copies[0].direction, CopyDirection::host_to_device) << "a write says so without a detail";
  EXPECT_EQ(linked.sink.copies[1].bytes, 100u);
  EXPECT_EQ(linked.sink.copies[1].direction, CopyDirection::peer);
  EXPECT_EQ(linked.sink.copies[2].bytes, std::nullopt);
  EXPECT_EQ(linked.sink.copies[2].direction, CopyDirection::device_to_host);
  ASSERT_EQ(linked.sink.fills.size(), 1u);
  EXPECT_EQ(linked.sink.fills[0].bytes, 64u);
  ASSERT_EQ(linked.sink.commands.size(), 1u);
  EXPECT_EQ(linked.sink.commands[0].command, Command::marker);
}

TEST(LinkerTest, NamesTheCallInWhichAThreadHangs) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_thread(2, 102);
  source.add_call_begin("clFinish", 100, 1);
  source.add_call("clFinish", 100, 150, 0, 1);
  source.add_call_begin("clBuildProgram", 200, 1);
  source.add_call_begin("clFlush", 300, 2);
  source.add_call("clFlush", 300, 310, 0, 2);
  source.shuffle(7);
  const Linked linked(source);
  std::vector<std::string> hanging;
  for (const RuntimeActivity& call : linked.sink.calls) {
    if (!call.duration_known) hanging.push_back(call.api->text);
  }
  EXPECT_EQ(hanging, std::vector<std::string>{"clBuildProgram"});
  EXPECT_EQ(linked.sink.calls.size(), 3u);
}

TEST(LinkerTest, PairsAnnotationsOfAThread) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_thread(2, 102);
  using probe::AnnotationType;
  source.add_annotation(AnnotationType::begin, 100, "outer");
  source.add_annotation(AnnotationType::begin, 110, "other thread", 0, 2);
  source.add_annotation(AnnotationType::begin, 120, "inner");
  source.add_annotation(AnnotationType::mark, 125, "here");
  source.add_annotation(AnnotationType::end, 130, "");
  source.add_annotation(AnnotationType::counter, 140, "level", 2.5);
  source.add_annotation(AnnotationType::end, 150, "");
  source.add_annotation(AnnotationType::begin, 160, "never closed");
  source.shuffle(11);
  const Linked linked(source);
  std::vector<std::tuple<std::string, std::int64_t, std::uint64_t, bool>> seen;
  for (const AnnotationActivity& activity : linked.sink.annotations) {
    seen.emplace_back(activity.text->text, activity.start_ns, activity.duration_ns, activity.duration_known);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (decltype(seen){{"here", 125, 0, true},
                                  {"inner", 120, 10, true},
                                  {"level", 140, 0, true},
                                  {"never closed", 160, 0, false},
                                  {"other thread", 110, 0, false},
                                  {"outer", 100, 50, true}}));
}

TEST(LinkerTest, UsesNamesThatTheProgramGave) {
  ScriptedSource source;
  source.add_simple_process();
  trace::AnnotationRecord name{};
  name.header.flags = static_cast<std::uint32_t>(probe::AnnotationType::name_queue);
  name.range = 0x1001;
  name.text = source.add_string("uploads");
  source.add(trace::RecordKind::annotation, name);
  source.add_annotation(probe::AnnotationType::name_thread, 50, "feeder");
  source.shuffle(5);
  const Linked linked(source);
  EXPECT_EQ(linked.linker.definitions().queues[0].name, "uploads");
  EXPECT_EQ(linked.linker.definitions().threads[0].name, "feeder");
  EXPECT_TRUE(linked.sink.annotations.empty());
}

TEST(LinkerTest, LivesWithIdsThatNothingDescribes) {
  ScriptedSource source;
  source.add_process(100);
  source.add_command(
      {.queue = 4'000'000'000, .start = 5, .end = 9, .enter_ns = 1, .exit_ns = 2, .kernel = 77, .geometry = 12, .writer = 3});
  const Linked linked(source);
  ASSERT_EQ(linked.sink.kernels.size(), 1u);
  const auto& kernel = linked.sink.kernels[0];
  EXPECT_EQ(kernel.kernel->name, "kernel 77");
  EXPECT_EQ(kernel.geometry, nullptr);
  EXPECT_EQ(kernel.queue->id, 4'000'000'000u);
  EXPECT_EQ(kernel.queue->device->name, "unknown device");
  EXPECT_FALSE(kernel.timed) << "the length of a tick is not known";
}

TEST(LinkerTest, GivesAnEmptyRecordingAnEmptyResult) {
  ScriptedSource source;
  const Linked linked(source);
  EXPECT_TRUE(linked.sink.info.has_value());
  EXPECT_EQ(linked.summary().commands, 0u);
  EXPECT_TRUE(linked.sink.calls.empty());
}

}  // namespace
}  // namespace xpu::profiler
