// What a framework transferred, by way of a session over records.

#include "profiler/link/cpu_operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/framework_trace.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/linker.hpp"

namespace xpu::profiler {
namespace {

using test_support::add_command_with_ids;
using test_support::annotation_id;
using test_support::CollectingSink;
using test_support::cpu_operation;
using test_support::operation_id;
using test_support::ScriptedSource;
using test_support::user_annotation;
using test_support::with_flow;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kWindowEndNs = 9'000;

/// The traces and the linker are what the activities point into.
struct LinkedOperations {
  LinkedOperations(const ScriptedSource& source, std::vector<CpuOperation> operations, ActivityKinds kinds = default_activity_kinds())
      : traces{{std::move(operations), {}}}, linker(source) {
    linker.set_cpu_traces(traces, kinds, kWindowEndNs);
    EXPECT_TRUE(linker.run(sink));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const CpuOperationActivity& operation : sink.cpu_operations) found.push_back(operation.name->text);
    return found;
  }
  /// "name: id s" of every end of an arrow that is left.
  std::vector<std::string> flow_ends() const {
    std::vector<std::string> found;
    for (const CpuOperationActivity& operation : sink.cpu_operations) {
      if (!operation.flow) continue;
      found.push_back(operation.name->text + ": " + std::to_string(operation.flow->id) + (operation.flow->is_start ? " s" : " f"));
    }
    return found;
  }
  std::vector<CpuTrace> traces;
  Linker linker;
  CollectingSink sink;
};

ScriptedSource simple_source() {
  ScriptedSource source;
  source.add_simple_process();
  return source;
}

TEST(CpuOperationsTest, AreToldByThreadAndStartTheOuterOneFirst) {
  std::vector<CpuOperation> operations = {cpu_operation("second", 300, 400), cpu_operation("inner", 100, 150),
                                          cpu_operation("outer", 100, 200), cpu_operation("other thread", 50, 60)};
  operations[3].thread = 555;
  const LinkedOperations linked(simple_source(), std::move(operations));
  EXPECT_THAT(linked.names(), ElementsAre("outer", "inner", "second", "other thread"));
  const CpuOperationActivity& outer = linked.sink.cpu_operations[0];
  EXPECT_EQ(outer.start_ns, 100);
  EXPECT_EQ(outer.duration_ns, 100u);
  EXPECT_TRUE(outer.is_finished);
  EXPECT_EQ(outer.process->pid, 100u);
  EXPECT_EQ(outer.thread->os_thread, 100u);
  EXPECT_EQ(outer.correlation, 0u) << "no call of a device API";
  EXPECT_EQ(linked.sink.cpu_operations[3].thread->os_thread, 555u) << "nobody described this thread";
  EXPECT_EQ(linked.sink.summary->cpu_operations, 4u);
}

TEST(CpuOperationsTest, ShareTheRowOfTheCallsOfTheirThread) {
  ScriptedSource source = simple_source();
  source.add_thread(1, 4'711, "main");
  source.add_call("clFlush", 120, 130);
  std::vector<CpuOperation> operations = {cpu_operation("op", 100, 200)};
  operations[0].thread = 4'711;
  const LinkedOperations linked(source, std::move(operations));
  ASSERT_EQ(linked.sink.calls.size(), 1u);
  EXPECT_EQ(linked.sink.cpu_operations[0].thread, linked.sink.calls[0].thread);
}

TEST(CpuOperationsTest, NameThreadsThatHaveNoName) {
  ScriptedSource source = simple_source();
  source.add_thread(1, 1, "from the program");
  const std::vector<CpuTrace> traces = {{{cpu_operation("op", 1, 2)}, {{1, "other"}, {100, "from the framework"}}}};
  Linker linker(source);
  linker.set_cpu_traces(traces, default_activity_kinds(), 0);
  CollectingSink sink;
  ASSERT_TRUE(linker.run(sink));
  EXPECT_EQ(sink.cpu_operations[0].thread->name, "from the framework");
  EXPECT_EQ(linker.definitions().threads[0].name, "from the program");
}

TEST(CpuOperationsTest, EndWithTheWindowWhereTheyHadNotEnded) {
  CpuOperation open = cpu_operation("open", 1'000, 0), negative = cpu_operation("ends before its start", 2'000, 1'999);
  open.end_ns.reset();
  CpuOperation late = open;
  late.name = "after the window";
  late.start_ns = 9'500;
  const LinkedOperations linked(simple_source(), {open, negative, late});
  const auto& operations = linked.sink.cpu_operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].duration_ns, 8'000u);
  EXPECT_EQ(operations[1].duration_ns, 7'000u);
  EXPECT_EQ(operations[2].duration_ns, 0u);
  for (const CpuOperationActivity& operation : operations) EXPECT_FALSE(operation.is_finished) << operation.name->text;
}

TEST(CpuOperationsTest, AMomentHasNoLengthAndIsFinished) {
  CpuOperation moment = cpu_operation("moment", 500, 700, {}, ActivityKind::cpu_instant_event);
  const LinkedOperations linked(simple_source(), {moment});
  EXPECT_EQ(linked.sink.cpu_operations[0].duration_ns, 0u);
  EXPECT_TRUE(linked.sink.cpu_operations[0].is_finished);
}

TEST(CpuOperationsTest, FindTheWorkThatTheySubmittedByTheirFamily) {
  ScriptedSource source = simple_source();
  add_command_with_ids(source, {.start = 5'000, .end = 5'001, .enter_ns = 1'000, .exit_ns = 1'100}, {operation_id(7), annotation_id(8)});
  add_command_with_ids(source, {.start = 5'000, .end = 5'002, .enter_ns = 1'200, .exit_ns = 1'300}, {annotation_id(7)});
  add_command_with_ids(source, {.start = 5'000, .end = 5'003, .enter_ns = 1'400, .exit_ns = 1'500}, {operation_id(99)});
  source.add_command({.start = 5'000, .end = 5'004, .enter_ns = 1'600, .exit_ns = 1'700});
  source.shuffle(3);
  const LinkedOperations linked(
      source, {cpu_operation("aten::mm", 900, 2'000, operation_id(7)), user_annotation("step", 800, 3'000, annotation_id(8))});
  ASSERT_EQ(linked.sink.kernels.size(), 4u);
  for (const KernelActivity& kernel : linked.sink.kernels) {
    const bool is_linked = kernel.duration_ns == 1;
    ASSERT_EQ(kernel.operation != nullptr, is_linked) << kernel.duration_ns;
    ASSERT_EQ(kernel.annotation != nullptr, is_linked) << kernel.duration_ns << ": a number of another family";
    if (!is_linked) continue;
    EXPECT_EQ(kernel.operation->name->text, "aten::mm");
    EXPECT_EQ(kernel.annotation->name->text, "step");
  }
}

TEST(CpuOperationsTest, OfTwoWithTheSameNumberTheFirstInTimeIsMeant) {
  ScriptedSource source = simple_source();
  add_command_with_ids(source, {.start = 5'000, .end = 5'001, .enter_ns = 1'000, .exit_ns = 1'100}, {operation_id(7)});
  std::vector<CpuOperation> operations = {cpu_operation("later", 900, 2'000, operation_id(7)),
                                          cpu_operation("earlier", 800, 850, operation_id(7))};
  operations[1].thread = 555;
  const LinkedOperations linked(source, std::move(operations));
  EXPECT_EQ(linked.sink.kernels[0].operation->name->text, "earlier");
}

TEST(CpuOperationsTest, AKernelIsInTheAnnotationAroundItsOperationWhereItCarriesNoNumberOfOne) {
  ScriptedSource source = simple_source();
  add_command_with_ids(source, {.start = 5'000, .end = 5'001, .enter_ns = 1'000, .exit_ns = 1'100}, {operation_id(7)});
  const LinkedOperations linked(source, {user_annotation("ended", 100, 900), user_annotation("step", 800, 3'000),
                                         user_annotation("inner", 850, 2'500), cpu_operation("aten::mm", 900, 2'000, operation_id(7))});
  const CpuOperationActivity* annotation = linked.sink.kernels[0].annotation;
  ASSERT_NE(annotation, nullptr);
  EXPECT_EQ(annotation->name->text, "inner");
  ASSERT_NE(annotation->annotation, nullptr);
  EXPECT_EQ(annotation->annotation->name->text, "step");
  EXPECT_EQ(annotation->annotation->annotation, nullptr);
}

TEST(CpuOperationsTest, OnlyTheKindsThatAreWantedAreTold) {
  ScriptedSource source = simple_source();
  add_command_with_ids(source, {.start = 5'000, .end = 5'001, .enter_ns = 1'000, .exit_ns = 1'100}, {operation_id(7)});
  const LinkedOperations linked(source,
                                {cpu_operation("op", 900, 2'000, operation_id(7)), user_annotation("step", 800, 3'000),
                                 cpu_operation("f", 700, 3'100, {}, ActivityKind::python_function)},
                                {ActivityKind::python_function, ActivityKind::kernel});
  EXPECT_THAT(linked.names(), ElementsAre("f"));
  ASSERT_NE(linked.sink.kernels[0].operation, nullptr) << "whose it is does not depend on what is shown";
  EXPECT_EQ(linked.sink.info->origin_ns, 700) << "where the axis begins does";
}

TEST(CpuOperationsTest, AnArrowHasOneStartAndAnEndBehindIt) {
  const LinkedOperations linked(
      simple_source(), {with_flow(cpu_operation("forward", 100, 200), 1, true), with_flow(cpu_operation("backward", 300, 400), 1, false),
                        with_flow(cpu_operation("another backward", 500, 600), 1, false)});
  EXPECT_THAT(linked.flow_ends(), ElementsAre("forward: 1 s", "backward: 1 f", "another backward: 1 f"));
  EXPECT_EQ(linked.sink.summary->dangling_flow_ends, 0u);
}

TEST(CpuOperationsTest, EndsOfArrowsThatLeadNowhereAreLeftOutAndCounted) {
  const LinkedOperations linked(
      simple_source(),
      {with_flow(cpu_operation("never ends", 100, 110), 1, true), with_flow(cpu_operation("never starts", 120, 130), 2, false),
       with_flow(cpu_operation("starts twice", 140, 150), 3, true), with_flow(cpu_operation("starts", 135, 139), 3, true),
       with_flow(cpu_operation("ends", 160, 170), 3, false), with_flow(cpu_operation("end", 180, 190), 4, false),
       with_flow(cpu_operation("before its start", 200, 210), 4, true),
       with_flow(cpu_operation("moment", 220, 0, {}, ActivityKind::cpu_instant_event), 3, false)});
  EXPECT_THAT(linked.flow_ends(), ElementsAre("starts: 3 s", "ends: 3 f"));
  EXPECT_EQ(linked.sink.summary->dangling_flow_ends, 6u);
  EXPECT_EQ(linked.sink.cpu_operations.size(), 8u) << "the operations themselves are shown";
}

TEST(CpuOperationsTest, OfTwoStartsTheEarlierOneIsMeantWhicheverThreadItIsOn) {
  std::vector<CpuOperation> operations = {with_flow(cpu_operation("later", 100, 110), 1, true),
                                          with_flow(cpu_operation("earlier", 50, 60), 1, true),
                                          with_flow(cpu_operation("end", 120, 130), 1, false)};
  operations[1].thread = 555;  // which is told behind thread 100
  const LinkedOperations linked(simple_source(), std::move(operations));
  EXPECT_THAT(linked.flow_ends(), ElementsAre("end: 1 f", "earlier: 1 s"));
  EXPECT_EQ(linked.sink.summary->dangling_flow_ends, 1u);
}

TEST(CpuOperationsTest, AnArrowFromWhatIsNotShownIsLeftOut) {
  const LinkedOperations linked(simple_source(),
                                {with_flow(cpu_operation("f", 100, 110, {}, ActivityKind::python_function), 1, true),
                                 with_flow(cpu_operation("backward", 120, 130), 1, false)},
                                {ActivityKind::cpu_op});
  EXPECT_THAT(linked.flow_ends(), IsEmpty());
  EXPECT_EQ(linked.sink.summary->dangling_flow_ends, 1u);
}

TEST(CpuOperationsTest, OfARecordingWithoutAProcessAreNotTold) {
  const LinkedOperations linked(ScriptedSource(), {cpu_operation("op", 1, 2)});
  EXPECT_THAT(linked.names(), IsEmpty());
}

}  // namespace
}  // namespace xpu::profiler
