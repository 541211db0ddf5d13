// What was seen to go wrong in Kineto's profiler for XPUs, each fault as a test of what is right. The rows D1 to D12 are those of
// docs/compared_with_kineto.md, which says what Kineto does in each case.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/collecting_sink.hpp"
#include "profiler/test_support/scripted_source.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/profiler/chrome_sink.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/session.hpp"
#include "xpu/profiler/trace_checker.hpp"
#include "xpu/trace/recording/layout.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler {
namespace {

using test_support::CollectingSink;
using test_support::ScriptedSource;
using test_support::TestPublisher;
using testing::HasSubstr;
using testing::Not;

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlower = 1;
#else
constexpr std::uint64_t kSlower = 10;  // everything takes so much longer; still several buffers
#endif

class KinetoFaultsTest : public testing::Test {
 protected:
  KinetoFaultsTest() : publisher_(TestPublisher::instance()) { EXPECT_EQ(probe::subscriber(), nullptr); }
  ~KinetoFaultsTest() override { EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still"; }

  struct Amount {
    std::uint64_t records = 0, bytes = 0;
  };
  static Amount amount_in(const RecordSource& source) {
    Amount amount;
    EXPECT_TRUE(source.for_each_batch({}, [&](std::size_t, std::span<const std::byte> records) {
      amount.bytes += records.size();
      trace::for_each_record(records, [&](const trace::RecordHeader&) { ++amount.records; });
    }));
    return amount;
  }
  struct Written {
    std::string text;
    ExportSummary summary;
    LinkSummary link;

    /// The only slice of a category.
    nlohmann::json slice(std::string_view category) const {
      const auto document = nlohmann::json::parse(text, nullptr, false);
      std::vector<nlohmann::json> found;
      for (const nlohmann::json& event : document["traceEvents"]) {
        if (event.value("cat", "") == category && event.value("ph", "") == "X") found.push_back(event);
      }
      EXPECT_EQ(found.size(), 1u) << category;
      return found.empty() ? nlohmann::json() : found[0];
    }
  };
  static Written write_json(Session& session) {
    Written written;
    ChromeSink sink(
        [&](std::string_view piece) {
          written.text += piece;
          return Result<>();
        },
        {.name = "test"});
    const Result<LinkSummary> link = session.run({&sink});
    EXPECT_TRUE(link);
    if (link) written.link = *link;
    written.summary = sink.summary();
    return written;
  }
  /// How often each rule of `xpu check` is broken.
  static std::map<std::string, std::uint64_t> findings_of(const std::string& trace) {
    std::istringstream input(trace);
    const Result<TraceCheck> check = TraceChecker().check(input);
    EXPECT_TRUE(check);
    std::map<std::string, std::uint64_t> findings;
    if (!check) return findings;
    for (const TraceFinding& finding : check->findings) findings[std::string(finding.rule->name)] = finding.count;
    return findings;
  }
  static std::int64_t nanoseconds_of(const nlohmann::json& microseconds) { return std::llround(microseconds.get<double>() * 1'000); }
  static std::uint64_t resident_bytes() {
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    unsigned long size = 0, resident = 0;
    if (file == nullptr || std::fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
    if (file != nullptr) std::fclose(file);
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }

  TestPublisher& publisher_;
};

// Kineto: all of the first session is gone, and the next one reports it as foreign.
TEST_F(KinetoFaultsTest, D1_AFlushBeforeTheEndNeitherLosesNorMixesSessions) {
  ActivityApi api;
  ASSERT_TRUE(api.enable(default_activity_kinds(), false, 16 << 20));
  for (int launch = 0; launch < 1'000; ++launch) publisher_.run();
  api.flush();
  api.flush();
  api.disable();
  CollectingSink first;
  ASSERT_TRUE(Linker(api).run(first));
  EXPECT_EQ(first.kernels.size(), 1'000u);
  EXPECT_EQ(first.summary->linked, 1'000u);
  ActivityApi next;
  ASSERT_TRUE(next.enable(default_activity_kinds(), false, 16 << 20));
  publisher_.run();
  next.flush();
  next.disable();
  CollectingSink second;
  ASSERT_TRUE(Linker(next).run(second));
  EXPECT_EQ(second.kernels.size(), 1u);
  EXPECT_EQ(second.calls.size(), 1u);
  EXPECT_EQ(second.summary->orphans + second.summary->duplicates, 0u);
}

/// The newest buffer first, as memory that is mapped downwards gives them in the order of addresses.
class ReversedSource final : public RecordSource {
 public:
  explicit ReversedSource(const ActivityApi& api) : api_(api) {}
  const trace::Manifest& manifest() const override { return api_.manifest(); }
  const std::vector<trace::ProcessInfo>& processes() const override { return api_.processes(); }
  Result<> for_each_batch(std::span<const trace::RecordKind>, const Visitor& visit) const override {
    for (const ActivityBuffer& buffer : std::views::reverse(api_.buffers())) visit(0, buffer.records());
    return {};
  }

 private:
  const ActivityApi& api_;
};

// Kineto: 7,142 of 40,000 keep their operation, and none of 200,000.
TEST_F(KinetoFaultsTest, D2_EveryKernelKeepsItsOperationWhenBuffersComeInReverse) {
  constexpr std::uint64_t kKernels = 40'000 / kSlower;
  ActivityApi api;
  ASSERT_TRUE(api.enable(default_activity_kinds(), false, 128 << 20));
  std::vector<TestPublisher::Launched> launched;
  for (std::uint64_t index = 0; index < kKernels; ++index) {
    ActivityApi::push_correlation_id(CorrelationFamily::custom_0, index);
    launched.push_back(publisher_.launch());
    ActivityApi::pop_correlation_id(CorrelationFamily::custom_0);
  }
  // By its length a kernel says whose it is.
  for (std::uint64_t index = 0; index < kKernels; ++index) publisher_.complete(launched[index], 1'000 + index);
  api.disable();
  ASSERT_GT(api.buffers().size(), 2u);
  CollectingSink sink;
  const ReversedSource source(api);
  Linker linker(source);
  ASSERT_TRUE(linker.run(sink));
  EXPECT_EQ(sink.summary->linked, kKernels);
  ASSERT_EQ(sink.kernels.size(), kKernels);
  const auto is_right = [](const auto& kernel) {
    return kernel.has_call && kernel.external_ids.size() == 1 && kernel.duration_ns == 1'000 + kernel.external_ids[0].id;
  };
  EXPECT_EQ(std::count_if(sink.kernels.begin(), sink.kernels.end(), is_right), static_cast<std::ptrdiff_t>(kKernels));
}

// Kineto: one false error for each kernel.
TEST_F(KinetoFaultsTest, D3_CallsOfTheDriverMakeNoFalseErrorsOfOrder) {
  for (const bool shows_driver_calls : {true, false}) {
    Config config;
    config.kinds = default_activity_kinds();
    if (shows_driver_calls) config.kinds.insert(ActivityKind::xpu_driver);
    Session session(config);
    ASSERT_TRUE(session.start());
    for (int launch = 0; launch < 500; ++launch) {
      publisher_.complete(publisher_.launch("zeCommandListAppendLaunchKernel"), 10);
      publisher_.call("zeEventQueryStatus");
      publisher_.complete(publisher_.launch("testLaunch"), 10);
    }
    ASSERT_TRUE(session.stop());
    const Written trace = write_json(session);
    EXPECT_EQ(trace.summary.kernels, 1'000u);
    std::map<std::string, std::uint64_t> findings = findings_of(trace.text);
    EXPECT_EQ(findings["device-before-call"], 0u);
    EXPECT_EQ(findings["flow-finish-before-start"], 0u);
    EXPECT_EQ(findings["flow-outside-slice"], 0u) << "an arrow from a call that is not shown";
    EXPECT_EQ(trace.summary.flows, shows_driver_calls ? 1'000u : 500u);
  }
}

TEST_F(KinetoFaultsTest, D3_AKernelThatTrulyStartsBeforeItsCallIsFound) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 6'000, .exit_ns = 6'100});
  Session session(source);
  EXPECT_EQ(findings_of(write_json(session).text)["device-before-call"], 1u);
}

// Kineto: an exception at the end of the user's operation, or a number that stays with the thread for ever.
TEST_F(KinetoFaultsTest, D4_APauseBetweenPushAndPopThrowsNothingAndLeavesNothing) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 1);
  session.toggle(false);
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), 1u);
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), std::nullopt);
  ActivityApi::push_correlation_id(CorrelationFamily::custom_0, 2);
  session.toggle(true);
  publisher_.run();
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), 2u);
  EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), std::nullopt);
  publisher_.run();
  ASSERT_TRUE(session.stop());
  CollectingSink sink;
  ASSERT_TRUE(session.run({&sink}));
  ASSERT_EQ(sink.kernels.size(), 2u);
  ASSERT_EQ(sink.kernels[0].external_ids.size(), 1u);
  EXPECT_EQ(sink.kernels[0].external_ids[0].id, 2u) << "of the operation that goes on";
  EXPECT_TRUE(sink.kernels[1].external_ids.empty());
}

// Kineto: a flag that one thread writes and all others read. ThreadSanitizer looks at this test.
TEST_F(KinetoFaultsTest, D5_ThreadsPushAndPopWhileOthersToggle) {
  Session session(Config{});
  ASSERT_TRUE(session.start());
  constexpr std::uint64_t kWorkers = 2, kTogglers = 2, kRounds = 50;
  std::atomic<bool> is_done{false};
  std::vector<std::thread> workers, togglers;
  for (std::uint64_t number = 1; number <= kWorkers; ++number) {
    workers.emplace_back([&, number] {
      while (!is_done) {
        ActivityApi::push_correlation_id(CorrelationFamily::custom_0, number);
        publisher_.complete(publisher_.launch(), number);
        EXPECT_EQ(ActivityApi::pop_correlation_id(CorrelationFamily::custom_0), number);
      }
    });
  }
  for (std::uint64_t index = 0; index < kTogglers; ++index) {
    togglers.emplace_back([&, index] {
      for (std::uint64_t round = 0; round < kRounds; ++round) session.toggle((round + index) % 2 == 0);
    });
  }
  for (std::thread& toggler : togglers) toggler.join();
  session.toggle(true);
  is_done = true;
  for (std::thread& worker : workers) worker.join();
  publisher_.complete(publisher_.launch(), 77);
  ASSERT_TRUE(session.stop());
  CollectingSink sink;
  ASSERT_TRUE(session.run({&sink}));
  EXPECT_EQ(sink.summary->pending + sink.summary->lost + sink.summary->duplicates, 0u);
  for (const auto& kernel : sink.kernels) {
    if (kernel.duration_ns == 77) continue;
    ASSERT_EQ(kernel.external_ids.size(), 1u);
    EXPECT_EQ(kernel.external_ids[0].id, kernel.duration_ns) << "the number of another thread";
  }
  const auto is_last = [](const auto& kernel) { return kernel.duration_ns == 77; };
  const auto last = std::find_if(sink.kernels.begin(), sink.kernels.end(), is_last);
  ASSERT_NE(last, sink.kernels.end());
  EXPECT_TRUE(last->external_ids.empty()) << "nobody pushed anything on this thread";
}

// Kineto: records are written behind the end of a vector that only has the capacity.
TEST_F(KinetoFaultsTest, D6_ABufferIsWholeRecordsInMemoryOfItsOwn) {
  ActivityApi api;
  ASSERT_TRUE(api.enable(default_activity_kinds(), false, 128 << 20));
  publisher_.run();
  api.discard();  // what is kept is copied
  constexpr std::uint64_t kLaunches = 20'000 / kSlower;
  for (std::uint64_t launch = 0; launch < kLaunches; ++launch) publisher_.run();
  api.disable();
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> places;
  std::uint64_t bytes = 0, submitted = 0;
  for (const ActivityBuffer& buffer : api.buffers()) {
    const std::vector<std::byte> copied(buffer.records().begin(), buffer.records().end());  // all of it can be read
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.records().data());
    EXPECT_EQ(begin % 8, 0u);
    places.emplace_back(begin, begin + copied.size());
    bytes += copied.size();
    std::size_t at = 0;
    while (at < copied.size()) {
      trace::RecordHeader header;
      ASSERT_LE(at + sizeof header, copied.size());
      std::memcpy(&header, copied.data() + at, sizeof header);
      ASSERT_GE(header.size, sizeof header);
      submitted += header.kind == static_cast<std::uint16_t>(trace::RecordKind::operation_submitted) ? 1 : 0;
      at += header.size;
    }
    EXPECT_EQ(at, copied.size()) << "the last record ends with its buffer";
  }
  EXPECT_EQ(bytes, api.recorded_bytes());
  EXPECT_EQ(submitted, kLaunches);
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_LE(places[i - 1].second, places[i].first) << "no two share memory";
}

// Kineto: 200,000 operations before the start are 400,000 texts of errors, 3.6 s in the stop, and no activity.
TEST_F(KinetoFaultsTest, D7_NothingOfAWarmUpIsKept) {
  constexpr std::uint64_t kWarmUp = 200'000 / kSlower;
  testing::internal::CaptureStderr();
  ActivityApi api;
  ASSERT_TRUE(api.enable(default_activity_kinds(), false, 128 << 20));
  for (std::uint64_t launch = 0; launch < kWarmUp; ++launch) publisher_.run();
  api.flush();
  EXPECT_GT(api.recorded_bytes() / kWarmUp, 100u);
  api.discard();
  EXPECT_LT(api.recorded_bytes(), 16u << 10);
  for (int launch = 0; launch < 10; ++launch) publisher_.run();
  api.disable();
  EXPECT_LT(amount_in(api).records, 100u) << "all that the end of the session and linking have to look at";
  CollectingSink sink;
  ASSERT_TRUE(Linker(api).run(sink));
  EXPECT_EQ(sink.kernels.size(), 10u);
  EXPECT_EQ(sink.summary->orphans, 0u);
  EXPECT_TRUE(sink.losses.empty());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(KinetoFaultsTest, D7_AWarmUpThatFillsTheMemoryLeavesRoomForTheProfile) {
  Config config;
  config.max_buffer_mib = 1;
  Session session(config);
  ASSERT_TRUE(session.prepare());
  for (int launch = 0; launch < 20'000; ++launch) publisher_.run();
  ASSERT_TRUE(session.start());
  for (int launch = 0; launch < 1'000; ++launch) publisher_.run();
  ASSERT_TRUE(session.stop());
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->conservation.submitted, 1'000u);
  EXPECT_EQ(report->conservation.recorded, 1'000u);
  EXPECT_EQ(report->conservation.lost + report->conservation.other_records_lost, 0u);
  EXPECT_EQ(report->conservation.unexplained, 0);
}

// Kineto: a text for each, in a vector that grows without end and that nobody reads.
TEST_F(KinetoFaultsTest, D8_WhatIsNotInOrderIsCountedWithinBoundsAndReadByTheApi) {
  constexpr std::uint64_t kBefore = 100, kLaunches = 40'000;
  Config config;
  config.max_buffer_mib = 1;
  Session session(config);
  ASSERT_TRUE(session.prepare());
  std::vector<TestPublisher::Launched> before;
  for (std::uint64_t launch = 0; launch < kBefore; ++launch) before.push_back(publisher_.launch());
  ASSERT_TRUE(session.start());
  for (const TestPublisher::Launched& launched : before) publisher_.complete(launched);
  for (std::uint64_t launch = 0; launch < kLaunches; ++launch) publisher_.run();
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(session.collect(std::chrono::milliseconds(1)));
  const Result<Report> report = make_report(session, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->conservation.submitted, kLaunches);
  EXPECT_GT(report->conservation.lost, kLaunches / 2);
  EXPECT_EQ(report->conservation.recorded + report->conservation.lost + report->conservation.pending, kLaunches);
  EXPECT_EQ(report->conservation.unexplained, 0);

  CollectingSink sink;
  ASSERT_TRUE(session.run({&sink}));
  EXPECT_EQ(sink.summary->orphans, kBefore);
  EXPECT_LT(sink.losses.size(), 100u) << "counted up, not one for each";
  EXPECT_LE(amount_in(session.source()).bytes, (1u << 20) + trace::kChunkBytes) << "the limit, and what this thread wrote into before";
  EXPECT_THAT(write_json(session).text, HasSubstr("\"completions without call\": 100"));
}

// Kineto: "0.015" for 15 ns before the start.
TEST_F(KinetoFaultsTest, D9_ATimeLessThanAMicrosecondBeforeAnotherKeepsItsSign) {
  ScriptedSource source;  // whose program began at 1000 ns
  source.add_simple_process();
  source.add_command({.start = 1'000, .end = 1'300, .enter_ns = 900, .exit_ns = 950, .queued = 985, .submit = 990});
  Session session(source);
  const Written trace = write_json(session);
  EXPECT_THAT(trace.text, HasSubstr("\"queued\":-0.015,\"submitted\":-0.010"));
  const nlohmann::json kernel = trace.slice("kernel");
  EXPECT_EQ(nanoseconds_of(kernel["ts"]), 0);
  EXPECT_EQ(nanoseconds_of(kernel["args"]["queued"]), -15);
  EXPECT_EQ(nanoseconds_of(trace.slice("xpu_runtime")["ts"]), -100);

  CollectingSink sink;
  ASSERT_TRUE(session.run({&sink}));
  ASSERT_EQ(sink.kernels.size(), 1u);
  EXPECT_EQ(*sink.kernels[0].queued_ns - sink.kernels[0].start_ns, -15);
}

// Kineto: "0.000", and minus 56 years relative to the start.
TEST_F(KinetoFaultsTest, D10_AnUnknownTimeIsAbsent) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.start = 5'000, .end = 5'300, .enter_ns = 4'000, .exit_ns = 4'250, .queued = 0, .submit = 4'600});
  Session session(source);
  const Written trace = write_json(session);
  const nlohmann::json kernel = trace.slice("kernel");
  EXPECT_FALSE(kernel["args"].contains("queued"));
  EXPECT_EQ(nanoseconds_of(kernel["args"]["submitted"]), 3'600) << "what is known is told";
  CollectingSink sink;
  ASSERT_TRUE(session.run({&sink}));
  ASSERT_EQ(sink.kernels.size(), 1u);
  EXPECT_EQ(sink.kernels[0].queued_ns, std::nullopt);
}

TEST_F(KinetoFaultsTest, D10_ACommandWithoutTimesHasNoPlaceInTheTraceAndIsCounted) {
  ScriptedSource source;
  source.add_simple_process();
  source.add_command({.enter_ns = 4'000, .exit_ns = 4'250, .completion_flags = trace::kFlagUntimed});
  Session session(source);
  const Written trace = write_json(session);
  EXPECT_EQ(trace.summary.kernels, 0u);
  EXPECT_EQ(trace.summary.untimed, 1u);
  EXPECT_THAT(trace.text, Not(HasSubstr("\"cat\":\"kernel\"")));
  EXPECT_THAT(trace.text, HasSubstr("\"without times\": 1"));
  EXPECT_EQ(findings_of(trace.text).count("negative-time"), 0u);
}

// Kineto: "GPU trace is empty" and "No Valid Trace Events" while 40 activities are written.
TEST_F(KinetoFaultsTest, D11_OnlyAnEmptyTraceIsCalledEmpty) {
  Session session(Config{}), empty(Config{});
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  ASSERT_TRUE(session.start());
  for (int launch = 0; launch < 20; ++launch) publisher_.run();
  ASSERT_TRUE(session.stop());
  const Written trace = write_json(session);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(trace.summary.slices, 40u) << "calls and kernels";
  EXPECT_EQ(trace.summary.kernels, 20u);
  EXPECT_EQ(trace.link.linked, 20u);
  EXPECT_EQ(findings_of(trace.text).count("no-events"), 0u);

  ASSERT_TRUE(empty.start());
  ASSERT_TRUE(empty.stop());
  const Written nothing = write_json(empty);
  EXPECT_EQ(nothing.summary.slices, 0u);
  EXPECT_EQ(findings_of(nothing.text)["no-events"], 1u);
}

// Kineto: 1,370 to 2,900 bytes of memory a record, and 604 bytes of JSON an event.
TEST_F(KinetoFaultsTest, D12_ARecordTakesAtMost250BytesOfMemoryAndAnEvent250OfJson) {
  constexpr std::uint64_t kSteps = 100'000 / kSlower;
  const auto annotate = [](probe::AnnotationType type) {
    probe::subscriber()->annotate({.time_ns = now_ns(probe::clock_domain()), .range = 0, .type = type, .text = "forward_pass", .value = 0});
  };
  Config config;
  config.kinds.erase(ActivityKind::overhead);  // how often that is told depends on the chunks
  Session session(config);
  const std::uint64_t resident_before = resident_bytes();
  ASSERT_TRUE(session.start());
  // The mix of bench/sink_cost: a range round a launch or, every fourth, a copy.
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    annotate(probe::AnnotationType::begin);
    publisher_.complete(step % 4 == 3 ? publisher_.copy(4'096) : publisher_.launch("clEnqueueNDRangeKernel"));
    annotate(probe::AnnotationType::end);
  }
  ASSERT_TRUE(session.stop());
  std::uint64_t json_bytes = 0;
  ChromeSink sink(
      [&](std::string_view piece) {
        json_bytes += piece.size();
        return Result<>();
      },
      {.name = "test"});
  ASSERT_TRUE(session.run({&sink}));
  const std::uint64_t resident_after = resident_bytes();
  EXPECT_EQ(sink.summary().slices, 4 * kSteps) << "the range, on the device as well, the call and the command";
  EXPECT_LE(json_bytes, 250 * sink.summary().slices);
  const Amount amount = amount_in(session.source());
  EXPECT_GE(amount.records, 4 * kSteps + kSteps / 4);
  EXPECT_LE(amount.bytes, 100 * amount.records);
  // Records, and what links them and writes them out. A sanitizer has memory of its own.
  const std::uint64_t grown = resident_after - std::min(resident_before, resident_after);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(grown, 250 * amount.records);
#endif
  RecordProperty("resident_bytes_a_record", static_cast<int>(grown / amount.records));
  RecordProperty("json_bytes_an_event", static_cast<int>(json_bytes / sink.summary().slices));
  RecordProperty("written_bytes_a_record", static_cast<int>(amount.bytes / amount.records));
}

}  // namespace
}  // namespace xpu::profiler
