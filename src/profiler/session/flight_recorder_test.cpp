// The flight recorder over this process: the ring, what queues are doing, hangs, and crashes of a child. The test publishes as a driver's
// publisher would.

#include "xpu/profiler/flight_recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/probe.hpp"
#include "profiler/test_support/test_publisher.hpp"
#include "xpu/profiler/trace_checker.hpp"

namespace xpu::profiler {
namespace {

using test_support::TestPublisher;
using testing::HasSubstr;
using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizerHandlesSignals = true;
#else
constexpr bool kSanitizerHandlesSignals = false;
#endif

std::string unpacked_dump(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char piece[4096];
  for (int count; (count = gzread(file, piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(count));
  gzclose(file);
  return text;
}

std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class FlightRecorderTest : public testing::Test {
 protected:
  FlightRecorderTest() : publisher_(TestPublisher::instance()) {
    char name[] = "/tmp/xpu_flight_test_XXXXXX";
    folder_ = ::mkdtemp(name);
    EXPECT_EQ(probe::subscriber(), nullptr);
  }
  ~FlightRecorderTest() override {
    EXPECT_EQ(probe::subscriber(), nullptr) << "somebody listens still";
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<FlightRecorder> start(FlightRecorderOptions options = {}) {
    options.folder = folder_;
    Result<std::unique_ptr<FlightRecorder>> recorder = FlightRecorder::start(options);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return recorder ? std::move(*recorder) : nullptr;
  }
  std::string path(const std::string& name) const { return folder_ + '/' + name; }
  /// Waits for what the recorder's thread is to do.
  static bool comes_true(const std::function<bool()>& condition) {
    for (int look = 0; look < 1'000; ++look) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  static void expect_passes_checker(const std::string& path) {
    const Result<TraceCheck> check = TraceChecker().check_file(path);
    ASSERT_TRUE(check) << check.error().message;
    for (const TraceFinding& finding : check->findings) {
      if (finding.rule->severity == Severity::error)
        ADD_FAILURE() << path << ": " << finding.rule->name << ' ' << finding.count << ' ' << finding.places.at(0).detail;
    }
  }

  /// How a child of this process ends that does `work`; -1 when it had to be killed.
  static int status_of_child(const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit no_core = {0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      work();
      ::_exit(0);
    }
    int status = 0;
    for (int look = 0; look < 3'000; ++look) {
      if (::waitpid(child, &status, WNOHANG) == child) return status;
      std::this_thread::sleep_for(10ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
  }
  /// The one file in the folder, or empty.
  std::string only_file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) found = found.empty() ? entry.path().string() : "several";
    return found;
  }

  TestPublisher& publisher_;
  std::string folder_;
};

TEST_F(FlightRecorderTest, OptionsThatMakeNoSenseAreRefusedInASentence) {
  const auto error = [](const FlightRecorderOptions& options) {
    const auto recorder = FlightRecorder::start(options);
    return recorder ? Error{ErrorCode::internal, "started"} : recorder.error();
  };
  EXPECT_THAT(error({.kept = 0ms}).message, HasSubstr("the time to keep is 0 ms; at least 1 ms"));
  EXPECT_EQ(error({.kept = 0ms}).code, ErrorCode::invalid_argument);
  EXPECT_THAT(error({.max_bytes = 1'000}).message, HasSubstr("1000 bytes are too few"));
  EXPECT_THAT(error({.hang_after = -1ms}).message, HasSubstr("after which a queue hangs is -1 ms"));
  EXPECT_THAT(error({.folder = "/nowhere/at/all"}).message, HasSubstr("\"/nowhere/at/all\""));
  EXPECT_EQ(error({.folder = "/nowhere/at/all"}).code, ErrorCode::not_found);
  EXPECT_THAT(error({.folder = "/proc/self/stat"}).message, HasSubstr("is no folder"));
}

TEST_F(FlightRecorderTest, WritesWhatIsInTheRingAsOftenAsWanted) {
  const auto recorder = start();
  for (int launch = 0; launch < 10; ++launch) publisher_.run();
  const Result<ExportSummary> first = recorder->dump(path("first.json"));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->kernels, 10u);
  publisher_.run();
  publisher_.launch();
  const Result<ExportSummary> second = recorder->dump(path("second.json.gz")), third = recorder->dump(path("third.pftrace"));
  ASSERT_TRUE(second && third);
  EXPECT_EQ(second->kernels, 11u);
  EXPECT_EQ(third->kernels, 11u);
  expect_passes_checker(path("first.json"));
  expect_passes_checker(path("second.json.gz"));
  EXPECT_THAT(unpacked_dump(path("second.json.gz")), HasSubstr("test device: test_kernel, submitted by thread"));
  EXPECT_THAT(recorder->dump(path("trace.txt")).error().message, HasSubstr("must end in .json"));
  EXPECT_THAT(recorder->dump(path("no/such/folder.json")).error().message, HasSubstr("No such file or directory"));
  recorder->stop();
  recorder->stop();
  EXPECT_EQ(probe::subscriber(), nullptr);
  publisher_.run();
  const Result<ExportSummary> afterwards = recorder->dump(path("afterwards.json"));
  ASSERT_TRUE(afterwards);
  EXPECT_EQ(afterwards->kernels, 11u);
}

TEST_F(FlightRecorderTest, KeepsOnlyTheLastSeconds) {
  const auto recorder = start({.kept = 200ms});
  publisher_.copy(64);  // pending: it stays
  for (int launch = 0; launch < 100; ++launch) publisher_.run();
  ASSERT_TRUE(comes_true([&] { return recorder->counts().dropped >= 101; }));
  publisher_.run();
  const Result<ExportSummary> summary = recorder->dump(path("late.json"));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->kernels, 1u);
  EXPECT_EQ(recorder->counts().submitted, 102u);
  expect_passes_checker(path("late.json"));
  EXPECT_EQ(times_in(unpacked_dump(path("late.json")), "\"testCopy\""), 1u) << "what is pending is there, however old";
  EXPECT_THAT(unpacked_dump(path("late.json")), HasSubstr("test_kernel")) << "descriptions outlive what was dropped";
}

TEST_F(FlightRecorderTest, AMillionLaunchesTakeBoundedMemory) {
  constexpr std::uint64_t kLaunches = 1'000'000;
  const auto resident_kib = [] {
    unsigned long size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) / 1'024;
  };
  const unsigned long before_kib = resident_kib();
  const auto recorder = start({.max_bytes = 8 << 20});
  unsigned long most_kib = 0;
  for (std::uint64_t launch = 0; launch < kLaunches; ++launch) {
    publisher_.run();
    if (launch % 50'000 != 0) continue;
    most_kib = std::max(most_kib, resident_kib());
    ASSERT_LE(recorder->counts().kept_bytes, std::uint64_t{6} << 20);
    std::this_thread::sleep_for(20ms);  // a program does something else, too
  }
  recorder->stop();
  const FlightRecorder::Counts counts = recorder->counts();
  EXPECT_GT(counts.dropped_for_room_bytes, 0u);
  EXPECT_LE(counts.submitted, kLaunches);
  EXPECT_GE(counts.submitted + counts.lost, kLaunches) << "recorded, or counted as lost";
  EXPECT_LT(counts.description_bytes, 10'000u);
  if (!kSanitizerHandlesSignals) {
    EXPECT_LE(most_kib, before_kib + 24 * 1'024);
  }
  const Result<ExportSummary> summary = recorder->dump(path("million.pftrace"));
  ASSERT_TRUE(summary);
  EXPECT_GT(summary->kernels, 10'000u);
}

TEST_F(FlightRecorderTest, SaysWhatEachQueueIsDoing) {
  const auto recorder = start();
  const auto queue = [&] {
    const FlightState state = recorder->state();
    return state.queues.empty() ? FlightQueue{} : state.queues.at(0);
  };
  EXPECT_THAT(recorder->state().text(), HasSubstr("of test device: nothing has been submitted\n"));
  publisher_.run();
  EXPECT_THAT(queue().text(), HasSubstr("after 1 command"));
  const TestPublisher::Launched launched = publisher_.launch();
  publisher_.copy(64);
  const FlightQueue busy = queue();
  EXPECT_EQ(busy.device, "test device");
  EXPECT_EQ(busy.pending, 2u);
  EXPECT_EQ(busy.oldest, "test_kernel");
  EXPECT_EQ(busy.oldest_ns, launched.enter_ns);
  EXPECT_EQ(busy.oldest_api, "testLaunch");
  EXPECT_EQ(busy.oldest_thread, static_cast<std::uint32_t>(::gettid()));
  EXPECT_THAT(busy.text(), HasSubstr(" through testLaunch, has been pending for 0."));
  EXPECT_THAT(busy.text(), HasSubstr(", and 1 command after it"));
  publisher_.complete(launched);
  EXPECT_EQ(queue().oldest, "copy");
  EXPECT_EQ(queue().pending, 1u);
}

TEST_F(FlightRecorderTest, WritesWhileOthersPublish) {
  const auto recorder = start({.kept = 100ms, .max_bytes = 4 << 20});
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&] {
      while (!done) {
        for (int launch = 0; launch < 100; ++launch) publisher_.run();
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 0; round < 10; ++round) EXPECT_TRUE(recorder->dump(path("same.json.gz")));
  });
  for (int round = 0; round < 10; ++round) {
    EXPECT_TRUE(recorder->dump(path("same.json.gz")));
    static_cast<void>(recorder->state());
  }
  threads.back().join();
  done = true;
  threads[0].join();
  threads[1].join();
  expect_passes_checker(path("same.json.gz"));
  EXPECT_EQ(only_file(), path("same.json.gz")) << "no file is left half written";
}

TEST_F(FlightRecorderTest, AHangIsWrittenOnceAndTold) {
  std::atomic<int> told{0};
  std::string told_path;
  const auto recorder = start({.hang_after = 100ms, .on_hang = [&](const FlightHang& hang) {
                                 told_path = hang.path;
                                 ++told;
                               }});
  publisher_.run();
  const TestPublisher::Launched hanging = publisher_.launch();
  publisher_.launch("behindIt");
  ASSERT_TRUE(comes_true([&] { return told == 1; }));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(told, 1) << "one hang, one file";
  ASSERT_EQ(recorder->hangs().size(), 1u);
  const FlightHang hang = recorder->hangs()[0];
  EXPECT_EQ(hang.queue.oldest, "test_kernel");
  EXPECT_GE(hang.queue.pending_ns, 100'000'000u);
  EXPECT_EQ(hang.queue.pending, 2u);
  EXPECT_EQ(hang.path, path("xpu_flight_" + std::to_string(::getpid()) + "_hang.json.gz"));
  EXPECT_EQ(told_path, hang.path);
  expect_passes_checker(hang.path);
  EXPECT_THAT(unpacked_dump(hang.path), HasSubstr("test_kernel, submitted by thread"));
  // The next one in the queue is another hang, once it had its time.
  publisher_.complete(hanging);
  ASSERT_TRUE(comes_true([&] { return told == 2; }));
  EXPECT_THAT(recorder->hangs().at(1).path, HasSubstr("_hang_2.json.gz"));
  EXPECT_EQ(recorder->counts().hangs, 2u);
}

TEST_F(FlightRecorderTest, ALongQueueThatMovesDoesNotHang) {
  const auto recorder = start({.hang_after = 300ms});
  std::vector<TestPublisher::Launched> launched;
  for (int launch = 0; launch < 20; ++launch) launched.push_back(publisher_.launch());
  for (const TestPublisher::Launched& one : launched) {
    std::this_thread::sleep_for(40ms);
    publisher_.complete(one);
  }
  EXPECT_EQ(recorder->counts().hangs, 0u) << "each waited for longer than that, for those in front of it";
}

TEST_F(FlightRecorderTest, StoppingEndsTheThread) {
  const auto threads_named_flight = [] {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::ifstream(task.path() / "comm") >> name;
      count += name == "xpu-flight" ? 1 : 0;
    }
    return count;
  };
  {
    const auto recorder = start();
    EXPECT_TRUE(comes_true([&] { return threads_named_flight() == 1; }));
    recorder->stop();
    EXPECT_EQ(threads_named_flight(), 0);
  }
  const auto recorder = start();
}

// ---- crashes

TEST_F(FlightRecorderTest, ACrashWritesTheRingAndEndsTheProcessAsBefore) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (kSanitizerHandlesSignals && signal != SIGABRT) continue;  // the sanitizer's own handler exits
    const int status = status_of_child([&] {
      const auto recorder = start({.dump_on_crash = true, .crash_patience = 20s});
      publisher_.run();
      publisher_.launch("crashingLaunch");
      int* volatile nowhere = nullptr;
      if (signal == SIGSEGV) *nowhere = 1;
      if (signal == SIGABRT) std::abort();
      ::raise(signal);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << signal << ": " << status;
    EXPECT_EQ(WTERMSIG(status), signal);
    const std::string file = only_file();
    ASSERT_THAT(file, HasSubstr("_crash.json.gz"));
    expect_passes_checker(file);
    EXPECT_THAT(unpacked_dump(file), HasSubstr("test_kernel, submitted by thread"));
    EXPECT_THAT(unpacked_dump(file), HasSubstr("crashingLaunch"));
    std::filesystem::remove(file);
  }
}

void exit_with_7(int) { ::_exit(7); }

TEST_F(FlightRecorderTest, HandlersThatWereThereBeforeAreCalled) {
  const int status = status_of_child([&] {
    ::signal(SIGFPE, exit_with_7);
    const auto recorder = start({.dump_on_crash = true, .crash_patience = 20s});
    ::raise(SIGFPE);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(only_file(), HasSubstr("_crash.json.gz"));
}

TEST_F(FlightRecorderTest, HandlersAreWhatTheyWereWhenItHasStopped) {
  ::signal(SIGFPE, exit_with_7);
  {
    const auto recorder = start({.dump_on_crash = true});
    EXPECT_NE(::signal(SIGFPE, SIG_DFL), &exit_with_7);
    ::signal(SIGFPE, exit_with_7);
    const Result<std::unique_ptr<FlightRecorder>> other = FlightRecorder::start({.folder = folder_, .dump_on_crash = true});
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message, HasSubstr("another flight recorder of this process"));
  }
  EXPECT_EQ(::signal(SIGFPE, SIG_DFL), &exit_with_7);
  const auto again = start({.dump_on_crash = true});
  EXPECT_TRUE(again);
}

TEST_F(FlightRecorderTest, AForkedChildHasNoRecorderAndCrashesAtOnce) {
  const auto recorder = start({.dump_on_crash = true, .crash_patience = 60s});
  const int crashed = status_of_child([&] { std::abort(); });
  ASSERT_TRUE(WIFSIGNALED(crashed)) << crashed;
  EXPECT_EQ(WTERMSIG(crashed), SIGABRT);
  EXPECT_EQ(only_file(), "");
  const int left = status_of_child([&] {
    if (recorder->dump(path("child.json")) || !recorder->state().queues.empty() || !recorder->hangs().empty()) ::_exit(1);
    recorder->stop();
    recorder->~FlightRecorder();  // as a static object would be at the child's exit
    ::_exit(5);
  });
  ASSERT_TRUE(WIFEXITED(left)) << left;
  EXPECT_EQ(WEXITSTATUS(left), 5);
  publisher_.run();
  EXPECT_TRUE(recorder->dump(path("parent.json")));
}

}  // namespace
}  // namespace xpu::profiler
