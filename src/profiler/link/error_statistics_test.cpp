// What is not in order is counted, exactly, and said wherever the profile is read; what is in order makes no counter move.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "profiler/report/build_report.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::ScriptedSource;
using Json = nlohmann::json;

/// Two kernels, a call and a number of the program, with nothing to be counted.
class ErrorStatisticsTest : public testing::Test {
 protected:
  ErrorStatisticsTest() {
    source_.add_simple_process();
    first_ = source_.add_command({.start = 1'000, .end = 2'000, .enter_ns = 900, .exit_ns = 950});
    source_.add_command({.start = 3'000, .end = 4'000, .enter_ns = 960, .exit_ns = 990});
    source_.add_call("clFinish", 1'000, 1'100);
    add_external_id(first_);
  }
  void add_external_id(std::uint64_t operation) {
    trace::ExternalCorrelationRecord record{};
    record.operation = operation;
    record.external_id = 77;
    record.family = 2;
    source_.add(trace::RecordKind::external_correlation, record);
  }
  void add_stop(std::uint64_t time_ns) {
    trace::SessionRecord record{};
    record.time_ns = time_ns;
    record.what = static_cast<std::uint32_t>(trace::SessionEvent::stop);
    source_.add(trace::RecordKind::session, record);
  }
  void add_loss(probe::LossCause cause, std::uint64_t count, std::uint32_t flags) {
    trace::LossRecord loss{};
    loss.header.flags = flags;
    loss.cause = static_cast<std::uint32_t>(cause);
    loss.count = count;
    source_.add_loss(loss);
  }
  LinkSummary linked() {
    Session session(source_);
    collected_ = CollectingSink();
    return session.run({&collected_}).value();
  }
  /// As the API has them, and the same in the timeline and in the report.
  ErrorStatistics errors() {
    const ErrorStatistics errors = linked().errors;
    std::string text;
    ChromeSink sink(
        [&](std::string_view piece) {
          text += piece;
          return Result<>();
        },
        {.name = "test"});
    Session session(source_);
    EXPECT_TRUE(session.run({&sink}));
    const Json written = Json::parse(text)["errorStatistics"];
    const Json reported = Json::parse(report_json(build_report(source_, trace::Conservation(), {}).value()))["errors"];
    const auto is = [&](const char* in_trace, const char* in_report, std::uint64_t expected) {
      EXPECT_EQ(written[in_trace].get<std::uint64_t>(), expected) << in_trace;
      EXPECT_EQ(reported[in_report].get<std::uint64_t>(), expected) << in_report;
    };
    is("external ids without operation", "unused_external_ids", errors.unused_external_ids);
    is("out of range", "out_of_range", errors.out_of_range);
    is("before their call", "before_call", errors.before_call);
    is("calls without a name", "unnamed_calls", errors.unnamed_calls);
    is("unexpected records", "unexpected_records", errors.unexpected_records);
    is("dropped for room", "dropped_for_room", errors.dropped_for_room);
    return errors;
  }

  ScriptedSource source_;
  CollectingSink collected_;
  std::uint64_t first_ = 0;
};

TEST_F(ErrorStatisticsTest, WhatIsInOrderCountsNothing) {
  add_stop(5'000);
  EXPECT_EQ(errors(), ErrorStatistics());
  EXPECT_EQ(collected_.kernels.size(), 2u);
}

TEST_F(ErrorStatisticsTest, NumbersOfOperationsThatAreNotOnRecordAreCounted) {
  add_external_id(first_ + 1'000);
  add_external_id(first_ + 1'000);
  add_external_id(trace::make_operation(9, 1));
  EXPECT_EQ(errors(), (ErrorStatistics{.unused_external_ids = 3}));
}

TEST_F(ErrorStatisticsTest, CommandsThatEndAfterTheStopAreKeptFlaggedAndCounted) {
  add_stop(3'900);
  EXPECT_EQ(errors(), (ErrorStatistics{.out_of_range = 1}));
  ASSERT_EQ(collected_.kernels.size(), 2u) << "none is thrown away";
  EXPECT_FALSE(collected_.kernels[0].ends_late);
  EXPECT_TRUE(collected_.kernels[1].ends_late);
  add_stop(4'000);
  EXPECT_EQ(errors(), ErrorStatistics()) << "the last stop is that of the profile";
}

TEST_F(ErrorStatisticsTest, WithinTheErrorOfTheClockNothingIsLateOrEarly) {
  ScriptedSource inexact;
  inexact.add_process(100);
  inexact.add_queue(inexact.add_device("device"));
  inexact.add_kernel("kernel");
  inexact.add_reading(1, 0, 0, 200);
  inexact.add_reading(1, 10'000, 10'000, 200);
  inexact.add_command({.start = 5'000, .end = 6'000, .enter_ns = 5'050, .exit_ns = 5'060});
  source_ = inexact;
  add_stop(5'950);
  EXPECT_EQ(errors(), ErrorStatistics());
}

TEST_F(ErrorStatisticsTest, CommandsThatBeginBeforeTheirCallAreCounted) {
  source_.add_command({.start = 5'000, .end = 5'100, .enter_ns = 6'000, .exit_ns = 6'100});
  source_.add_command({.start = 7'000, .end = 7'100, .enter_ns = 7'000, .exit_ns = 7'100});
  EXPECT_EQ(errors(), (ErrorStatistics{.before_call = 1})) << "at the same moment is in order";
}

TEST_F(ErrorStatisticsTest, CallsOfTheDriverInsideOfOneOfTheRuntimeAreNoFalseAlarm) {
  // What a driver does later, for a command that has begun already, is not its submission.
  source_.add_call("zeCommandListAppendLaunchKernel", 1'500, 1'600);
  source_.add_call("zeEventQueryStatus", 3'500, 3'600);
  EXPECT_EQ(errors(), ErrorStatistics());
}

TEST_F(ErrorStatisticsTest, CallsWithoutANameAreCounted) {
  trace::ApiCallRecord nameless{};
  nameless.enter_ns = 2'000;
  nameless.exit_ns = 2'100;
  nameless.thread = 1;
  source_.add(trace::RecordKind::api_call, nameless);
  nameless.api = 4'711;  // nothing says what it is
  source_.add(trace::RecordKind::api_call, nameless);
  source_.add_call("unknown", 3'000, 3'100);
  EXPECT_EQ(errors(), (ErrorStatistics{.unnamed_calls = 2})) << "a function may be called so";
  EXPECT_EQ(collected_.calls.size(), 6u);
}

TEST_F(ErrorStatisticsTest, EndsWithoutABeginAndRecordsThatAreThereTwiceAreCounted) {
  trace::OperationCompletedRecord completed{};
  completed.operation = trace::make_operation(1, 900);
  completed.queue = 1;
  completed.start = 4'100;
  completed.end = 4'200;
  source_.add(trace::RecordKind::operation_completed, completed);
  EXPECT_EQ(errors(), (ErrorStatistics{.unexpected_records = 1}));
  completed.operation = first_;
  source_.add(trace::RecordKind::operation_completed, completed);
  source_.add(trace::RecordKind::operation_completed, completed);
  EXPECT_EQ(errors(), (ErrorStatistics{.unexpected_records = 3}));
  EXPECT_EQ(linked().orphans, 1u);
  EXPECT_EQ(linked().duplicates, 2u);
}

TEST_F(ErrorStatisticsTest, RecordsThatFoundNoRoomAreCountedAndOtherLossesAreNot) {
  add_loss(probe::LossCause::no_chunk, 5, 0);
  add_loss(probe::LossCause::no_chunk, 7, trace::kFlagNotOperation);
  add_loss(probe::LossCause::ring_full, 11, trace::kFlagCompletionLost);
  add_loss(probe::LossCause::fork, 13, trace::kFlagCompletionLost);
  EXPECT_EQ(errors(), (ErrorStatistics{.dropped_for_room = 23}));
}

TEST_F(ErrorStatisticsTest, TheOrderOfBuffersChangesNothing) {
  add_stop(3'900);
  add_external_id(first_ + 1'000);
  source_.add_command({.start = 2'100, .end = 2'200, .enter_ns = 6'000, .exit_ns = 6'100});
  const ErrorStatistics expected = {.unused_external_ids = 1, .out_of_range = 1, .before_call = 1};
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    source_.shuffle(seed);
    EXPECT_EQ(errors(), expected) << seed;
  }
}

}  // namespace
}  // namespace xpu::profiler
