#include "profiler/link/device_annotations.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/framework_trace.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

using probe::AnnotationType;
using test_support::add_command_with_ids;
using test_support::annotation_id;
using test_support::CollectingSink;
using test_support::cpu_operation;
using test_support::operation_id;
using test_support::ScriptedSource;
using test_support::user_annotation;
using testing::ElementsAre;
using testing::IsEmpty;

/// "name queue/lane start-end xcommands" of each span, in the order in which they are told.
std::vector<std::string> spans_of(const ScriptedSource& source, std::vector<CpuOperation> operations = {}) {
  Session session(source);
  if (!operations.empty()) {
    EXPECT_TRUE(session.transfer_cpu_trace({std::move(operations), {}}));
  }
  CollectingSink sink;
  EXPECT_TRUE(session.run({&sink}));
  std::vector<std::string> spans;
  for (const auto& span : sink.device_annotations) {
    spans.push_back(fmt::format("{} {}/{} {}-{} x{}", span.own_name, span.queue->id, span.lane, span.start_ns,
                                span.start_ns + static_cast<std::int64_t>(span.duration_ns), span.commands));
  }
  return spans;
}

TEST(DeviceAnnotationsTest, GoFromTheFirstStartToTheLastEndOnEachQueue) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_queue(1);
  add_command_with_ids(source, {.start = 5'000, .end = 5'300, .enter_ns = 1'000, .exit_ns = 1'010}, {annotation_id(7)});
  add_command_with_ids(source, {.start = 6'000, .end = 6'100, .enter_ns = 1'100, .exit_ns = 1'110}, {annotation_id(7)});
  add_command_with_ids(source, {.queue = 2, .start = 5'500, .end = 7'000, .enter_ns = 1'200, .exit_ns = 1'210}, {annotation_id(7)});
  source.add_command({.start = 6'200, .end = 6'900, .enter_ns = 1'300, .exit_ns = 1'310});
  EXPECT_THAT(spans_of(source, {user_annotation("step", 900, 1'250, annotation_id(7))}),
              ElementsAre("step 1/0 5000-6100 x2", "step 2/0 5500-7000 x1"));
}

TEST(DeviceAnnotationsTest, AreCalledByTheirNumberWhereNobodyTransferredTheirName) {
  ScriptedSource source;
  source.add_simple_process();
  add_command_with_ids(source, {.start = 5'000, .end = 5'300, .enter_ns = 1'000, .exit_ns = 1'010}, {operation_id(1), annotation_id(7)});
  EXPECT_THAT(spans_of(source), ElementsAre("annotation 7 1/0 5000-5300 x1"));
}

TEST(DeviceAnnotationsTest, OfANumberOfAnOperationThereAreNone) {
  ScriptedSource source;
  source.add_simple_process();
  add_command_with_ids(source, {.start = 5'000, .end = 5'300, .enter_ns = 1'000, .exit_ns = 1'010}, {operation_id(7)});
  EXPECT_THAT(spans_of(source, {cpu_operation("op", 900, 1'250, operation_id(7))}), IsEmpty());
}

TEST(DeviceAnnotationsTest, TheOuterOneHoldsWhatWasDoneInTheInnerOne) {
  ScriptedSource source;
  source.add_simple_process();
  add_command_with_ids(source, {.start = 5'000, .end = 5'100, .enter_ns = 1'000, .exit_ns = 1'010}, {annotation_id(2)});
  add_command_with_ids(source, {.start = 5'100, .end = 5'200, .enter_ns = 1'100, .exit_ns = 1'110}, {annotation_id(2)});
  EXPECT_THAT(
      spans_of(source, {user_annotation("inner", 950, 1'200, annotation_id(2)), user_annotation("outer", 900, 1'300, annotation_id(1))}),
      ElementsAre("outer 1/0 5000-5200 x2", "inner 1/0 5000-5200 x2"));
}

TEST(DeviceAnnotationsTest, OfRangesOfTheProgramThereIsOneForEachRange) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_annotation(AnnotationType::begin, 900, "step");
  source.add_annotation(AnnotationType::begin, 1'050, "load");
  source.add_annotation(AnnotationType::end, 1'150, "");
  source.add_annotation(AnnotationType::end, 1'300, "");
  source.add_annotation(AnnotationType::begin, 1'400, "step");
  source.add_annotation(AnnotationType::begin, 1'410, "");
  source.add_annotation(AnnotationType::end, 1'490, "");
  source.add_annotation(AnnotationType::end, 1'500, "");
  source.add_annotation(AnnotationType::begin, 1'600, "nothing submitted");
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 1'000, .exit_ns = 1'010});
  source.add_command({.start = 5'100, .end = 5'200, .enter_ns = 1'100, .exit_ns = 1'110});
  source.add_command({.start = 5'200, .end = 5'400, .enter_ns = 1'200, .exit_ns = 1'210});
  source.add_command({.start = 6'000, .end = 6'400, .enter_ns = 1'450, .exit_ns = 1'460});
  source.add_command({.start = 6'500, .end = 6'600, .enter_ns = 1'550, .exit_ns = 1'560});
  source.shuffle(5);
  EXPECT_THAT(spans_of(source), ElementsAre("step 1/0 5000-5400 x3", "load 1/0 5100-5200 x1", "step 1/0 6000-6400 x1"));
}

TEST(DeviceAnnotationsTest, WhatOnlyWaitsOrHasNoPlaceIsNoWork) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_annotation(AnnotationType::begin, 900, "step");
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 1'000, .exit_ns = 1'010, .command = probe::Command::marker});
  source.add_command({.start = 5'000, .end = 5'100, .enter_ns = 1'100, .exit_ns = 1'110, .command = probe::Command::barrier});
  source.add_command({.enter_ns = 1'200, .exit_ns = 1'210});
  source.add_command({.enter_ns = 1'300, .exit_ns = 1'310, .result = -5});
  EXPECT_THAT(spans_of(source), IsEmpty());
  source.add_command({.start = 7'000, .end = 7'100, .enter_ns = 1'400, .exit_ns = 1'410, .command = probe::Command::write, .bytes = 8});
  EXPECT_THAT(spans_of(source), ElementsAre("step 1/0 7000-7100 x1"));
}

TEST(DeviceAnnotationsTest, ThoseThatCrossHaveRowsOfTheirOwn) {
  ScriptedSource source;
  source.add_simple_process();
  // Two threads take turns on one queue.
  for (std::uint64_t turn = 0; turn < 4; ++turn) {
    add_command_with_ids(
        source, {.start = 5'000 + turn * 100, .end = 5'100 + turn * 100, .enter_ns = 1'000 + turn * 100, .exit_ns = 1'010 + turn * 100},
        {annotation_id(1 + turn % 2)});
  }
  add_command_with_ids(source, {.start = 5'500, .end = 5'600, .enter_ns = 1'900, .exit_ns = 1'910}, {annotation_id(3)});
  EXPECT_THAT(spans_of(source),
              ElementsAre("annotation 1 1/0 5000-5300 x2", "annotation 2 1/1 5100-5400 x2", "annotation 3 1/0 5500-5600 x1"));
}

TEST(DeviceAnnotationsTest, OfARowLieInEachOtherOrBesideEachOtherWhateverWasPushed) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    ScriptedSource source;
    source.add_simple_process();
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::uint64_t start = 5'000 + random() % 500;
      add_command_with_ids(source, {.start = start, .end = start + random() % 90, .enter_ns = 1'000 + i, .exit_ns = 1'001 + i},
                           {annotation_id(random() % 25)});
    }
    Session session(source);
    CollectingSink sink;
    ASSERT_TRUE(session.run({&sink}));
    ASSERT_FALSE(sink.device_annotations.empty());
    for (std::size_t i = 0; i < sink.device_annotations.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto &a = sink.device_annotations[j], &b = sink.device_annotations[i];
        if (a.lane != b.lane) continue;
        const auto a_end = a.start_ns + static_cast<std::int64_t>(a.duration_ns),
                   b_end = b.start_ns + static_cast<std::int64_t>(b.duration_ns);
        EXPECT_LE(a.start_ns, b.start_ns) << "in the order of starts";
        EXPECT_TRUE(a_end <= b.start_ns || b_end <= a_end) << seed << ": " << a.own_name << " and " << b.own_name;
      }
    }
  }
}

}  // namespace
}  // namespace xpu::profiler
