#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/test_support/written_trace.hpp"

/// The rules about slices of a row and about arrows, each broken and kept.
namespace xpu::profiler {
namespace {

using test_support::check_text;
using test_support::findings_in;
using test_support::first_place;
using test_support::WrittenTrace;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SliceRulesTest, PartialOverlap) {
  const WrittenTrace trace = WrittenTrace().add_slice("cpu_op", "first", 1, 1, 0, 10.5).add_slice("cpu_op", "second", 1, 1, 5, 10);
  EXPECT_THAT(findings_in(trace), ElementsAre("partial-overlap: 1"));
  const TracePlace place = first_place(trace, "partial-overlap");
  EXPECT_EQ(place.event, 1u);
  EXPECT_EQ(place.name, "second");
  EXPECT_EQ(place.time_ns, 5'000);
  EXPECT_THAT(place.detail,
              AllOf(HasSubstr("until 15.000 µs"), HasSubstr("event 0 \"first\" from 0.000 µs to 10.500 µs"), HasSubstr("pid 1 tid 1")));
}

TEST(SliceRulesTest, SlicesThatNestOrFollowOrLieOnOtherRowsAreFine) {
  const WrittenTrace trace = WrittenTrace()
                                 .add_slice("cpu_op", "last", 1, 1, 10, 5)
                                 .add_slice("cpu_op", "inner", 1, 1, 2, 8)
                                 .add_slice("cpu_op", "outer", 1, 1, 0, 10)
                                 .add_slice("cpu_op", "innermost", 1, 1, 2, 3.001)
                                 .add_slice("cpu_op", "nothing", 1, 1, 10, 0)
                                 .add_slice("cpu_op", "other thread", 1, 2, 5, 10)
                                 .add_slice("cpu_op", "other process", 2, 1, 7, 10);
  EXPECT_THAT(findings_in(trace), IsEmpty());
}

TEST(SliceRulesTest, AFileOfWholeMicrosecondsIsHeldToOne) {
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "a", 1, 1, 0, 10).add_slice("cpu_op", "b", 1, 1, 5, 6)), IsEmpty());
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "a", 1, 1, 0, 10).add_slice("cpu_op", "b", 1, 1, 5, 7)),
              ElementsAre("partial-overlap: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_slice("cpu_op", "a", 1, 1, 0, 10.001).add_slice("cpu_op", "b", 1, 1, 5, 5.002)),
              ElementsAre("partial-overlap: 1"));
}

TEST(SliceRulesTest, DeviceOverlap) {
  const auto kernels = [](double second, double duration) {
    return WrittenTrace().add_call(1, 0).add_call(2, 3).add_kernel(1, 10, 5.5).add_kernel(2, second, duration);
  };
  EXPECT_THAT(findings_in(kernels(15, 5)), ElementsAre("device-overlap: 1"));
  EXPECT_THAT(findings_in(kernels(11, 2)), ElementsAre("device-overlap: 1")) << "also inside: a queue does one thing at a time";
  EXPECT_THAT(findings_in(kernels(15.5, 5)), IsEmpty());
}

TEST(SliceRulesTest, DeviceWorkMayLieInAnAnnotationOfItsRow) {
  WrittenTrace trace = WrittenTrace().add_call(1, 0).add_call(2, 3);
  trace.add_slice("gpu_user_annotation", "step", 0, 1, 9, 30).add_kernel(1, 10, 5.5).add_kernel(2, 16, 5);
  EXPECT_THAT(findings_in(trace), IsEmpty());
  trace.add_slice("gpu_user_annotation", "between", 0, 1, 11, 1).add_call(3, 6).add_kernel(3, 12.5, 1);
  EXPECT_THAT(findings_in(trace), ElementsAre("device-overlap: 1"));
}

std::string mark(char phase, std::string_view name, double ts, int tid = 1) {
  std::ostringstream event;
  event << R"({"ph":")" << phase << R"(","name":")" << name << R"(","pid":1,"tid":)" << tid << R"(,"ts":)" << ts << '}';
  return event.str();
}

TEST(SliceRulesTest, UnbalancedBeginEnd) {
  EXPECT_THAT(findings_in(WrittenTrace().add(mark('B', "a", 1))), ElementsAre("unbalanced-begin-end: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add(mark('E', "a", 1))), ElementsAre("unbalanced-begin-end: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add(mark('B', "a", 1)).add(mark('E', "a", 2, 2))), ElementsAre("unbalanced-begin-end: 2"));
  EXPECT_THAT(findings_in(WrittenTrace().add(mark('B', "a", 1)).add(mark('E', "b", 2))), ElementsAre("unbalanced-begin-end: 1"));
}

TEST(SliceRulesTest, BeginsAndEndsMakeSlices) {
  WrittenTrace trace;
  trace.add(mark('B', "a", 1)).add(mark('B', "b", 2.5)).add(mark('E', "b", 3)).add(R"({"ph":"E","pid":1,"tid":1,"ts":4})");
  EXPECT_THAT(findings_in(trace), IsEmpty());
  EXPECT_EQ(check_text(trace.text())->slices, 2u);
  trace.add_slice("cpu_op", "across", 1, 1, 3.5, 3);
  EXPECT_THAT(findings_in(trace), ElementsAre("partial-overlap: 1"));
}

TEST(FlowRulesTest, FlowWithoutStart) {
  const WrittenTrace trace = WrittenTrace().add_call(7, 0).add_kernel(7, 10.5).add_flow('f', 7, 0, 1, 10.5);
  EXPECT_THAT(findings_in(trace), ElementsAre("flow-without-start: 1"));
  EXPECT_EQ(first_place(trace, "flow-without-start").detail, "ac2g id 7 has no start");
}

TEST(FlowRulesTest, FlowWithoutFinish) {
  EXPECT_THAT(findings_in(WrittenTrace().add_call(7, 0.5).add_flow('s', 7, 100, 101, 0.5)), ElementsAre("flow-without-finish: 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_call(7, 0.5).add_flow('s', 7, 100, 101, 0.5).add_flow('t', 7, 100, 101, 1)),
              ElementsAre("flow-without-finish: 1"))
      << "a step is no finish";
}

TEST(FlowRulesTest, FlowStartedTwice) {
  WrittenTrace trace = WrittenTrace().add_launch(1, 0.5);
  EXPECT_THAT(findings_in(trace.add_flow('s', 1, 100, 101, 1)), ElementsAre("flow-started-twice: 1"));
}

TEST(FlowRulesTest, OneStartMayHaveSeveralFinishesAndSteps) {
  WrittenTrace trace =
      WrittenTrace().add_launch(1, 0.5).add_slice("cpu_op", "a", 1, 1, 2, 2).add_flow('t', 1, 1, 1, 3).add_flow('f', 1, 1, 1, 4);
  EXPECT_THAT(findings_in(trace), IsEmpty());
  EXPECT_EQ(check_text(trace.text())->flows, 1u);
}

TEST(FlowRulesTest, CategoriesHaveIdsOfTheirOwn) {
  WrittenTrace trace =
      WrittenTrace().add_launch(1, 0.5).add_slice("cpu_op", "forward", 1, 1, 0, 1).add_slice("cpu_op", "backward", 1, 2, 5, 1);
  trace.add(R"({"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":1,"ts":0})");
  trace.add(R"({"ph":"f","bp":"e","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":2,"ts":5})");
  EXPECT_THAT(findings_in(trace), IsEmpty());
  EXPECT_EQ(check_text(trace.text())->flows, 2u);
}

/// A kernel that seems to begin 0.5 µs before its call, on a device whose clock has a stated error.
WrittenTrace early_kernel() {
  return WrittenTrace()
      .add_call(1, 10)
      .add_flow('s', 1, 100, 101, 10)
      .add_slice("kernel", "gemm", 0, 1, 9.5, 2, R"(,"args":{"correlation":1,"device":0})")
      .add_flow('f', 1, 0, 1, 9.5);
}

TEST(FlowRulesTest, FlowFinishBeforeStart) {
  EXPECT_THAT(findings_in(early_kernel()), ElementsAre("flow-finish-before-start: 1", "device-before-call: 1"));
  EXPECT_THAT(first_place(early_kernel(), "flow-finish-before-start").detail, HasSubstr("ends 0.500 µs before its start, event 1"));
}

TEST(FlowRulesTest, TheStatedErrorOfAClockIsAllowed) {
  WrittenTrace exact = early_kernel(), inexact = early_kernel(), other = early_kernel();
  exact.add_member(R"("clocks": [{"device": 0, "pid": 100, "error max ns": 499}])");
  inexact.add_member(R"("clocks": [{"device": 0, "pid": 1, "error max ns": 10}, {"device": 0, "pid": 100, "error max ns": 500}])");
  other.add_member(R"("clocks": [{"device": 1, "error max ns": 500}])");
  EXPECT_THAT(findings_in(exact), ElementsAre("flow-finish-before-start: 1", "device-before-call: 1"));
  EXPECT_THAT(findings_in(inexact), IsEmpty());
  EXPECT_THAT(findings_in(other), ElementsAre("flow-finish-before-start: 1", "device-before-call: 1"));
}

TEST(FlowRulesTest, FlowOutsideSlice) {
  WrittenTrace trace = WrittenTrace().add_call(1, 0).add_kernel(1, 10, 5.5).add_flow('s', 1, 100, 101, 0).add_flow('f', 1, 0, 1, 15.501);
  EXPECT_THAT(findings_in(trace), ElementsAre("flow-outside-slice: 1"));
  EXPECT_THAT(first_place(trace, "flow-outside-slice").detail, HasSubstr("its finish lies in no slice of row pid 0 tid 1"));
  EXPECT_THAT(findings_in(WrittenTrace().add_launch(1, 0.5).add_flow('t', 1, 5, 5, 12)), ElementsAre("flow-outside-slice: 1"))
      << "a row without slices";
  EXPECT_THAT(
      findings_in(WrittenTrace().add_call(1, 0).add_kernel(1, 10, 5.5).add_flow('s', 1, 100, 101, 2.5).add_flow('f', 1, 0, 1, 15.5)),
      IsEmpty())
      << "the ends of a slice belong to it";
}

TEST(FlowRulesTest, AFinishThatBindsToTheNextSliceNeedsOne) {
  const auto trace = [](double ts) {
    return WrittenTrace()
        .add_call(1, 0)
        .add_kernel(1, 10, 5.5)
        .add_flow('s', 1, 100, 101, 0)
        .add(R"({"ph":"f","cat":"ac2g","name":"ac2g","id":1,"pid":0,"tid":1,"ts":)" + std::to_string(ts) + "}");
  };
  EXPECT_THAT(findings_in(trace(8)), IsEmpty());
  EXPECT_THAT(findings_in(trace(16)), ElementsAre("flow-outside-slice: 1"));
}

}  // namespace
}  // namespace xpu::profiler
