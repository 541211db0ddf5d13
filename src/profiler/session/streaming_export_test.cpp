// A trace that is written while the program goes on, compared with what a session writes at its end, which listens at the same time.

#include "xpu/profiler/streaming_export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/probe.hpp"
#include "profiler/test_support/busy_program.hpp"
#include "profiler/test_support/comparable_trace.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/child_profiler.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/profiler/trace_checker.hpp"

namespace xpu::profiler {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test_support::annotate_now;
using test_support::BusyProgram;
using test_support::comparable_events;
using test_support::comparable_figures;
using test_support::comparable_perfetto_events;
using test_support::differences;
using test_support::read_trace_file;
using test_support::TestPublisher;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Spans of what queues did for ranges can only be told behind everything else, so a stream has none.
/// What a stream and a session over the same time both hold: a stream has no device annotations, and what starting and fetching took is
/// told to whoever goes on.
Config comparable_kinds() {
  Config config;
  config.kinds.erase(ActivityKind::gpu_user_annotation);
  config.kinds.erase(ActivityKind::overhead);
  return config;
}

class StreamingExportTest : public testing::Test {
 protected:
  StreamingExportTest() : publisher_(TestPublisher::instance()) {
    EXPECT_EQ(probe::subscriber(), nullptr);
    std::string pattern = (fs::temp_directory_path() / "xpu_streaming_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StreamingExportTest() override {
    fs::remove_all(folder_);
    EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still";
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }
  static StreamingOptions by_hand(const std::string& path) {
    StreamingOptions options;
    options.output.path = path;
    options.has_thread = false;
    return options;
  }
  std::unique_ptr<StreamingExport> start(const std::string& name, const Config& config = {}) {
    auto stream = StreamingExport::start(config, by_hand(path(name)));
    EXPECT_TRUE(stream) << stream.error().message;
    return stream ? *std::move(stream) : nullptr;
  }
  static void expect_no_finding(const std::string& trace) {
    std::istringstream input(trace);
    const Result<TraceCheck> check = TraceChecker().check(input);
    ASSERT_TRUE(check) << check.error().message;
    for (const TraceFinding& finding : check->findings) {
      if (finding.rule->severity == Severity::error)
        ADD_FAILURE() << finding.rule->name << ": " << finding.count << ' ' << finding.places.at(0).detail;
    }
  }

  TestPublisher& publisher_;
  fs::path folder_;
};

TEST_F(StreamingExportTest, ItsEventsAreThoseOfAWholeSession) {
  for (const std::string name : {"trace.json", "trace.json.gz", "trace.pftrace", "trace.pftrace.gz"}) {
    Session whole(comparable_kinds());
    ASSERT_TRUE(whole.start());
    const auto stream = start(name, comparable_kinds());
    annotate_now(probe::AnnotationType::begin, "everything");
    annotate_now(probe::AnnotationType::begin, "never ended");
    BusyProgram program(publisher_);
    std::uint64_t rounds = 0;
    for (; program.is_submitting() || rounds < 20; ++rounds) {
      ASSERT_TRUE(stream->advance());
      std::this_thread::sleep_for(milliseconds(1));
    }
    program.finish();
    annotate_now(probe::AnnotationType::begin, "inner");
    ASSERT_TRUE(stream->advance());
    annotate_now(probe::AnnotationType::end, {});
    const Result<StreamedTrace> streamed = stream->finish();
    ASSERT_TRUE(streamed) << streamed.error().message;
    ASSERT_TRUE(whole.stop());
    ExportOptions options;
    options.path = path("whole_" + name);
    const Result<ExportSummary> written = export_as_named(whole, options);
    ASSERT_TRUE(written) << written.error().message;

    const std::string trace = read_trace_file(path(name)), expected = read_trace_file(options.path);
    if (is_perfetto_name(name)) {
      EXPECT_THAT(differences(comparable_perfetto_events(trace), comparable_perfetto_events(expected)), IsEmpty());
      EXPECT_THAT(comparable_perfetto_events(trace), Each(Not(testing::StartsWith("problem"))));
    } else {
      EXPECT_THAT(differences(comparable_events(trace), comparable_events(expected)), IsEmpty());
      EXPECT_EQ(comparable_figures(trace), comparable_figures(expected));
      expect_no_finding(trace);
    }
    EXPECT_EQ(streamed->links.commands, program.submitted());
    EXPECT_EQ(streamed->trace.kernels, written->kernels);
    EXPECT_EQ(streamed->trace.flows, written->flows);
    EXPECT_EQ(streamed->trace.slices, written->slices);
    EXPECT_EQ(streamed->trace.overlapping, written->overlapping);
    EXPECT_EQ(streamed->trace.bytes, fs::file_size(path(name)));
    EXPECT_EQ(streamed->memory.rounds, rounds + 3) << "with one more here, the one before the stop and the last";
    EXPECT_EQ(streamed->memory.carried_operations, 0u);
    EXPECT_EQ(streamed->books.total.submitted, program.submitted());
    EXPECT_EQ(streamed->books.total.recorded, program.submitted());
    EXPECT_EQ(streamed->books.total.unexplained, 0);
    const Result<Report> report = make_report(whole, {});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->conservation.submitted, streamed->books.total.submitted);
  }
}

/// Has one operation to show.
class ChildWithWork final : public ChildProfiler {
 public:
  Result<> configure(const Config&) override { return {}; }
  std::vector<CpuOperation> process(const ProfileWindow& window) override {
    CpuOperation operation;
    operation.name = "work";
    operation.start_ns = window.begin_ns;
    operation.end_ns = window.end_ns;
    return {operation};
  }
};

TEST_F(StreamingExportTest, WhatOthersHaveToShowIsDiscardedAndCounted) {
  ASSERT_TRUE(register_child_profiler("child", [] { return std::make_unique<ChildWithWork>(); }));
  const auto stream = start("trace.json");
  publisher_.run();
  ASSERT_TRUE(stream->advance());
  const Result<StreamedTrace> streamed = stream->finish();
  EXPECT_TRUE(unregister_child_profiler("child"));
  ASSERT_TRUE(streamed);
  EXPECT_EQ(streamed->links.discarded_cpu_operations, 1u);
  EXPECT_THAT(read_trace_file(path("trace.json")), HasSubstr("\"CPU operations discarded\": 1"));
}

TEST_F(StreamingExportTest, PausesAreThoseOfAWholeSession) {
  Session whole(comparable_kinds());
  ASSERT_TRUE(whole.start());
  const auto stream = start("trace.json", comparable_kinds());
  std::vector<TestPublisher::Launched> across;
  for (int round = 0; round < 30; ++round) {
    const bool collects = round % 3 != 1;
    if (round % 3 == 1) across.push_back(publisher_.launch());
    stream->toggle(collects);
    whole.toggle(collects);
    for (int launch = 0; launch < 20; ++launch) publisher_.complete_now(publisher_.launch());
    if (round % 2 == 0) {
      ASSERT_TRUE(stream->advance());
    }
    // What began before a pause ends within it, or later.
    if (round % 6 == 1) {
      for (const TestPublisher::Launched& launched : across) publisher_.complete_now(launched);
      across.clear();
    }
  }
  for (const TestPublisher::Launched& launched : across) publisher_.complete_now(launched);
  const Result<StreamedTrace> streamed = stream->finish();
  ASSERT_TRUE(streamed);
  ASSERT_TRUE(whole.stop());
  ExportOptions options;
  options.path = path("whole.json");
  ASSERT_TRUE(export_chrome(whole, options));
  const auto without_marks = [](std::vector<std::string> events) {
    // Who toggles second sees the mark of the first.
    std::erase_if(events, [](const std::string& event) { return event.find("xpu: collection") != std::string::npos; });
    return events;
  };
  const std::string trace = read_trace_file(path("trace.json"));
  EXPECT_THAT(differences(without_marks(comparable_events(trace)), without_marks(comparable_events(read_trace_file(path("whole.json"))))),
              IsEmpty());
  expect_no_finding(trace);
  const Result<Report> report = make_report(whole, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(streamed->books.total.unexplained, 0);
  EXPECT_EQ(report->conservation.submitted, streamed->books.total.submitted);
  EXPECT_EQ(streamed->books.total.submitted, 20u * 20 + 10);
}

TEST_F(StreamingExportTest, WhatFindsNoRoomIsCountedRoundAfterRound) {
  constexpr std::uint64_t kLaunches = 20'000, kRounds = 4;
  Config config;
  config.max_buffer_mib = 1;
  const auto stream = start("trace.json", config);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (std::uint64_t launch = 0; launch < kLaunches; ++launch) publisher_.run();
    ASSERT_TRUE(stream->advance());
    EXPECT_LE(stream->counts().carried_bytes, 1u << 20);
  }
  const Result<StreamedTrace> streamed = stream->finish(milliseconds(1));
  ASSERT_TRUE(streamed);
  EXPECT_EQ(streamed->books.total.submitted, kLaunches * kRounds);
  EXPECT_EQ(streamed->books.total.unexplained, 0);
  EXPECT_GT(streamed->books.total.lost, 0u);
  EXPECT_EQ(streamed->books.total.recorded, streamed->links.linked);
  EXPECT_EQ(streamed->books.total.recorded + streamed->books.total.lost + streamed->books.total.pending, kLaunches * kRounds);
  EXPECT_LE(streamed->memory.largest_round_bytes, 2u << 20);
  expect_no_finding(read_trace_file(path("trace.json")));
}

class CountingSink final : public Sink {
 public:
  void handle_kernel_activity(const KernelActivity& kernel) override {
    ++kernels;
    timed += kernel.timed && kernel.placed && kernel.call != nullptr ? 1 : 0;
  }
  std::uint64_t kernels = 0, timed = 0;
};

TEST_F(StreamingExportTest, MemoryStaysFlatHoweverLongItGoesOn) {
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kRounds = 200, kKernels = 20'000;
#else
  constexpr std::uint64_t kRounds = 40, kKernels = 5'000;
#endif
  constexpr std::uint64_t kMemoryMib = 8;
  Config config;
  config.max_buffer_mib = kMemoryMib;
  Session session(config);
  CountingSink sink;
  session.add_sink(sink);
  ASSERT_TRUE(session.start());
  std::uint64_t most_carried = 0, bytes_of_a_round = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (std::uint64_t kernel = 0; kernel < kKernels; ++kernel) publisher_.run();
    ASSERT_TRUE(session.advance());
    most_carried = std::max(most_carried, session.stream_counts().carried_bytes);
    EXPECT_EQ(session.fetch(), 0u) << "nothing is kept of a round";
    if (round == 0) bytes_of_a_round = session.stream_counts().largest_round_bytes;
  }
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(session.run());
  EXPECT_EQ(sink.kernels, kRounds * kKernels);
  EXPECT_EQ(sink.timed, sink.kernels);
  EXPECT_LE(most_carried, sizeof(trace::OverheadRecord)) << "what the fetch of the round itself took";
  const StreamCounts counts = session.stream_counts();
  EXPECT_GT(counts.fetched_bytes, kRounds * kKernels * 100);
  EXPECT_LE(counts.largest_round_bytes, bytes_of_a_round + bytes_of_a_round / 10);
  EXPECT_GT(counts.fetched_bytes, 2 * (kMemoryMib << 20)) << "more than there was memory for, so it was given back";
  const Result<trace::Conservation> books = session.take_stream_books();
  ASSERT_TRUE(books);
  EXPECT_EQ(books->total.lost, 0u);
  EXPECT_EQ(books->total.recorded, kRounds * kKernels);
}

TEST_F(StreamingExportTest, WhatWasWrittenIsThereAfterEachRound) {
  for (const std::string name : {"trace.json", "trace.json.gz", "trace.pftrace", "trace.pftrace.gz"}) {
    const auto stream = start(name);
    for (int round = 1; round <= 3; ++round) {
      for (int launch = 0; launch < 10; ++launch) publisher_.run();
      ASSERT_TRUE(stream->advance());
      EXPECT_FALSE(fs::exists(path(name)));
      std::string part = read_trace_file(path(name) + ".tmp");
      if (is_perfetto_name(name)) {
        const std::vector<std::string> events = comparable_perfetto_events(part);
        EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const std::string& line) { return line.starts_with("command"); }),
                  10 * round);
        EXPECT_THAT(events, Each(Not(testing::StartsWith("problem"))));
      } else {
        // As docs/profiler.md says how to close it.
        const std::vector<std::string> events = comparable_events(part + "]}");
        EXPECT_EQ(std::count_if(events.begin(), events.end(),
                                [](const std::string& line) { return line.find("\"cat\":\"kernel\"") != std::string::npos; }),
                  10 * round);
        EXPECT_THAT(events, testing::Contains(HasSubstr("thread_name"))) << "rows have their names";
      }
    }
    ASSERT_TRUE(stream->finish());
    EXPECT_TRUE(fs::exists(path(name)));
    EXPECT_FALSE(fs::exists(path(name) + ".tmp"));
  }
}

TEST_F(StreamingExportTest, FilesAreSplitAndEachIsAWholeTrace) {
  for (const std::string name : {"trace.json", "trace.json.gz", "trace.pftrace"}) {
    Session whole(comparable_kinds());
    ASSERT_TRUE(whole.start());
    StreamingOptions options = by_hand(path(name));
    options.split_bytes = name.ends_with(".json") ? 10'000 : 1'000;
    const auto stream = StreamingExport::start(comparable_kinds(), options);
    ASSERT_TRUE(stream);
    for (int round = 0; round < 12; ++round) {
      for (int launch = 0; launch < 20; ++launch) publisher_.complete_now(publisher_.launch());
      ASSERT_TRUE((*stream)->advance());
    }
    publisher_.launch();  // never ends
    const Result<StreamedTrace> streamed = (*stream)->finish(milliseconds(1));
    ASSERT_TRUE(streamed) << streamed.error().message;
    ASSERT_TRUE(whole.stop());
    ASSERT_TRUE(whole.collect(milliseconds(1)));
    ExportOptions at_once;
    at_once.path = path("whole_" + name);
    const Result<ExportSummary> written = export_as_named(whole, at_once);
    ASSERT_TRUE(written);

    ASSERT_GE(streamed->files.size(), 3u);
    EXPECT_EQ(streamed->files[1], path("trace.1" + name.substr(5)));
    EXPECT_EQ(streamed->trace.kernels, written->kernels);
    EXPECT_EQ(streamed->trace.slices, written->slices);
    EXPECT_EQ(streamed->links.pending, 1u);
    std::uint64_t bytes = 0, events = 0;
    for (const std::string& file : streamed->files) {
      bytes += fs::file_size(file);
      const std::string trace = read_trace_file(file);
      if (is_perfetto_name(name)) {
        const std::vector<std::string> lines = comparable_perfetto_events(trace);
        EXPECT_THAT(lines, Each(Not(testing::StartsWith("problem"))));
        events += static_cast<std::uint64_t>(
            std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.starts_with("command"); }));
      } else {
        expect_no_finding(trace);  // its own figures included
        const std::vector<std::string> lines = comparable_events(trace);
        events += static_cast<std::uint64_t>(std::count_if(
            lines.begin(), lines.end(), [](const std::string& line) { return line.find("\"cat\":\"kernel\"") != std::string::npos; }));
      }
    }
    EXPECT_EQ(events, 240u);
    EXPECT_EQ(streamed->trace.bytes, bytes);
  }
}

TEST_F(StreamingExportTest, AThreadDoesItWhileTheProgramGoesOn) {
  StreamingOptions options;
  options.output.path = path("trace.json");
  options.interval = milliseconds(5);
  auto stream = StreamingExport::start(Config{}, options);
  ASSERT_TRUE(stream) << stream.error().message;
  std::uint64_t launches = 0;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((*stream)->counts().rounds < 5 && std::chrono::steady_clock::now() < limit) {
    publisher_.run();
    ++launches;
  }
  const Result<StreamedTrace> streamed = (*stream)->finish();
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_GE(streamed->memory.rounds, 7u);
  EXPECT_EQ(streamed->trace.kernels, launches);
  expect_no_finding(read_trace_file(path("trace.json")));
  EXPECT_EQ((*stream)->finish().error().code, ErrorCode::failed_precondition);
}

TEST_F(StreamingExportTest, ARoundComesEarlyWhenMemoryFills) {
  Config config;
  config.max_buffer_mib = 8;
  StreamingOptions options;
  options.output.path = path("trace.pftrace");
  options.interval = std::chrono::hours(1);
  auto stream = StreamingExport::start(config, options);
  ASSERT_TRUE(stream);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((*stream)->counts().rounds < 2 && std::chrono::steady_clock::now() < limit) {
    for (int launch = 0; launch < 200; ++launch) publisher_.run();
    std::this_thread::sleep_for(milliseconds(1));
  }
  const Result<StreamedTrace> streamed = (*stream)->finish();
  ASSERT_TRUE(streamed);
  EXPECT_GE(streamed->memory.rounds, 4u) << "two that came early, and two at the end";
  EXPECT_EQ(streamed->books.total.unexplained, 0);
}

TEST_F(StreamingExportTest, WhatRunsAtTheStopIsWaitedForAndElsePending) {
  const auto stream = start("trace.json");
  const TestPublisher::Launched waited_for = publisher_.launch(), never = publisher_.launch();
  ASSERT_TRUE(stream->advance());
  EXPECT_EQ(stream->counts().carried_operations, 2u);
  std::thread device([&] {
    std::this_thread::sleep_for(milliseconds(20));
    publisher_.complete(waited_for);
  });
  const Result<StreamedTrace> streamed = stream->finish(milliseconds(500));
  device.join();
  ASSERT_TRUE(streamed);
  EXPECT_EQ(streamed->links.linked, 1u);
  EXPECT_EQ(streamed->links.pending, 1u);
  ASSERT_EQ(streamed->books.pending.size(), 1u);
  EXPECT_EQ(streamed->books.pending[0].operation, never.id);
  EXPECT_EQ(streamed->books.total.pending, 1u);
}

TEST_F(StreamingExportTest, ACancelledOneLeavesNothingAndAnAbandonedOneItsPart) {
  {
    const auto stream = start("cancelled.json");
    publisher_.run();
    ASSERT_TRUE(stream->advance());
    stream->cancel();
    EXPECT_EQ(probe::subscriber(), nullptr);
    EXPECT_THAT(files(), IsEmpty());
    EXPECT_EQ(stream->advance().error().code, ErrorCode::failed_precondition);
  }
  {
    const auto stream = start("abandoned.json");
    publisher_.run();
    ASSERT_TRUE(stream->advance());
  }
  EXPECT_THAT(files(), testing::ElementsAre("abandoned.json.tmp"));
}

/// The file-size limit of this process, lowered for a while: a full disk that needs no privileges.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

TEST_F(StreamingExportTest, AFullDiskEndsItAndTheSentenceSaysWhereThePartIs) {
  const auto stream = start("trace.json");
  publisher_.run();
  ASSERT_TRUE(stream->advance());
  const SmallDisk disk(16'384);
  for (int launch = 0; launch < 1'000; ++launch) publisher_.run();
  const Result<> failed = stream->advance();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message,
              AllOf(HasSubstr("cannot write"), HasSubstr("; what was written before is in " + path("trace.json.tmp"))));
  EXPECT_EQ(probe::subscriber(), nullptr) << "nobody pays for what is not written";
  EXPECT_EQ(stream->finish().error().message, failed.error().message);
  EXPECT_THAT(files(), testing::ElementsAre("trace.json.tmp"));
}

TEST_F(StreamingExportTest, StepsOutOfOrderAreRefusedInASentence) {
  EXPECT_EQ(StreamingExport::start(Config{}, by_hand(path("no/such/folder.json"))).error().code, ErrorCode::unavailable);
  StreamingOptions options = by_hand(path("trace.json"));
  options.interval = milliseconds(0);
  EXPECT_THAT(StreamingExport::start(Config{}, options).error().message, HasSubstr("an interval of 0 ms is too short"));
  EXPECT_THAT(files(), IsEmpty());

  Session session(Config{});
  CountingSink sink, other;
  session.add_sink(sink);
  EXPECT_THAT(session.advance().error().message, HasSubstr("cannot advance: it is created, and must be collecting"));
  ASSERT_TRUE(session.start());
  publisher_.run();
  ASSERT_TRUE(session.advance());
  EXPECT_FALSE(session.take_stream_books()) << "before the end";
  ASSERT_TRUE(session.stop());
  ASSERT_TRUE(session.advance()) << "what was begun may still end";
  EXPECT_THAT(session.run({&other}).error().message, HasSubstr("keeps nothing for other sinks"));
  EXPECT_THAT(make_report(session, {}).error().message, HasSubstr("keeps nothing for other sinks"));
  ASSERT_TRUE(session.run());
  EXPECT_EQ(sink.kernels, 1u);
  EXPECT_FALSE(session.run());
  EXPECT_FALSE(session.advance());
  EXPECT_TRUE(session.take_stream_books());
  EXPECT_FALSE(session.take_stream_books());
}

TEST_F(StreamingExportTest, AForkedChildLeavesItToItsParent) {
  const auto stream = start("trace.json");
  publisher_.run();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = !stream->advance() && !stream->finish();
    stream->cancel();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  publisher_.run();
  const Result<StreamedTrace> streamed = stream->finish();
  ASSERT_TRUE(streamed);
  EXPECT_EQ(streamed->trace.kernels, 2u);
}

}  // namespace
}  // namespace xpu::profiler
