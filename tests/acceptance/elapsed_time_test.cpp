#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/drivers/sim.hpp"

// E2: the time between two events, and why there is none.

namespace xpu::acceptance {
namespace {

using namespace std::chrono_literals;
using ::testing::StrEq;

constexpr const char* kNotRecorded = "Both events must be recorded before calculating elapsed time.";
constexpr const char* kNotCompleted = "Both events must be completed before calculating elapsed time.";
constexpr const char* kNotTimed = "Both events must be created with argument 'enable_timing=True'.";

enum class Stage { created, recorded, completed };

/// What is asked of one event of a pair.
struct Wanted {
  Stage reached;
  bool is_timed;
};

const char* expected_sentence(const Wanted& begin, const Wanted& end) {
  if (begin.reached == Stage::created || end.reached == Stage::created) return kNotRecorded;
  if (begin.reached == Stage::recorded || end.reached == Stage::recorded) return kNotCompleted;
  if (!begin.is_timed || !end.is_timed) return kNotTimed;
  return nullptr;
}

std::vector<Wanted> all_wanted() {
  std::vector<Wanted> all;
  for (const Stage reached : {Stage::created, Stage::recorded, Stage::completed}) {
    for (const bool is_timed : {false, true}) all.push_back({reached, is_timed});
  }
  return all;
}

/// Where events are recorded that are to stay incomplete until the end of its life.
class BusyStream {
 public:
  BusyStream() {
    if (runs_by_itself()) {
      hold_.emplace(stream_);
      return;
    }
    // Each query lets one operation end: there are more than anybody asks.
    for (int launch = 0; launch < 200; ++launch) stream_.launch(kernel_, items(1), values_of(values_), 1).value();
  }
  ~BusyStream() {
    if (hold_) hold_->release();
    EXPECT_THAT(stream_.synchronize(), Succeeds());
  }
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;
  const Stream& stream() const { return stream_; }

 private:
  Stream stream_ = Stream::from_pool(-1).value();  // of a pool from which nobody else takes one meanwhile
  Kernel kernel_ = long_kernel();
  Buffer values_ = zeros(1);
  std::optional<Hold> hold_;
};

TEST(E2_ElapsedTimeTest, TheFirstThingThatIsMissingIsNamed) {
  const Stream idle = Stream::from_pool().value();
  const auto made = [&](const Wanted& wanted, const BusyStream& busy) {
    auto event = std::make_unique<Event>(EventOptions{.timing = wanted.is_timed});
    if (wanted.reached == Stage::recorded) event->record(busy.stream()).value();
    if (wanted.reached == Stage::completed) {
      event->record(idle).value();
      event->synchronize().value();
    }
    return event;
  };
  for (const Wanted& begin_wanted : all_wanted()) {
    for (const Wanted& end_wanted : all_wanted()) {
      SCOPED_TRACE(::testing::Message() << "begin reached " << static_cast<int>(begin_wanted.reached) << ", timed " << begin_wanted.is_timed
                                        << "; end reached " << static_cast<int>(end_wanted.reached) << ", timed " << end_wanted.is_timed);
      const BusyStream busy;
      const auto begin = made(begin_wanted, busy), end = made(end_wanted, busy);
      const char* const sentence = expected_sentence(begin_wanted, end_wanted);
      if (sentence == nullptr) {
        EXPECT_THAT(begin->elapsed_time(*end), Succeeds());
      } else {
        EXPECT_THAT(begin->elapsed_time(*end), FailsWith(ErrorCode::failed_precondition, StrEq(sentence)));
      }
    }
  }
}

TEST(E2_ElapsedTimeTest, EventsOfTwoDevicesHaveNoCommonClock) {
  Event here(EventOptions{.timing = true}), there(EventOptions{.timing = true});
  EXPECT_THAT(here.record(Stream::default_stream(0).value()), Succeeds());
  EXPECT_THAT(there.record(Stream::default_stream(1).value()), Succeeds());
  EXPECT_THAT(here.synchronize(), Succeeds());
  EXPECT_THAT(there.synchronize(), Succeeds());
  EXPECT_THAT(
      here.elapsed_time(there),
      FailsWith(ErrorCode::invalid_argument, StrEq("Both events must be of one device, whose clock it is; they are of devices 0 and 1.")));
}

TEST(E2_ElapsedTimeTest, AnEventIsNoTimeAwayFromItself) {
  Event event(EventOptions{.timing = true});
  EXPECT_THAT(event.record(Stream::current().value()), Succeeds());
  EXPECT_THAT(event.synchronize(), Succeeds());
  EXPECT_THAT(event.elapsed_time(event), Gives(0.0));
}

TEST(E2_ElapsedTimeTest, EventsInTheOtherOrderGiveTheNegativeTime) {
  const Stream stream = Stream::from_pool().value();
  const Buffer values = zeros(1);
  Event first(EventOptions{.timing = true}), second(EventOptions{.timing = true});
  EXPECT_THAT(first.record(stream), Succeeds());
  store_late(stream, values_of(values), 1);
  EXPECT_THAT(second.record(stream), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const double forwards = first.elapsed_time(second).value();
  EXPECT_GT(forwards, 0);
  EXPECT_THAT(second.elapsed_time(first), Gives(-forwards));
}

TEST(E2_ElapsedTimeTest, AFunctionOfATenthOfASecondTakesThatLongAndNoLongerThanTheHostSaw) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  const Stream stream = Stream::from_pool().value();
  EXPECT_THAT(stream.synchronize(), Succeeds());
  Event begin(EventOptions{.timing = true}), end(EventOptions{.timing = true});
  std::uint64_t function_begin_ns = 0, function_end_ns = 0;
  const std::uint64_t before_ns = now_ns();
  EXPECT_THAT(begin.record(stream), Succeeds());
  EXPECT_THAT(stream.run({},
                         [&] {
                           function_begin_ns = now_ns();
                           std::this_thread::sleep_for(100ms);
                           function_end_ns = now_ns();
                         }),
              Succeeds());
  EXPECT_THAT(end.record(stream), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  const std::uint64_t after_ns = now_ns();

  const double elapsed_ms = begin.elapsed_time(end).value();
  EXPECT_GE(elapsed_ms, 100.0);
  // Double arithmetic may lose less than a nanosecond.
  EXPECT_GE(elapsed_ms, static_cast<double>(function_end_ns - function_begin_ns) / 1e6 - 1e-6);
  EXPECT_LE(elapsed_ms, static_cast<double>(after_ns - before_ns) / 1e6 + 1e-6);
}

/// A device of its own with programmed times; device 1 counts 19.2 MHz in 32 bits and wraps soon.
void use_program() {
  drivers::sim::Program program;
  program.device_count = 2;
  program.clocks = {{}, {.tick_numerator = 625, .tick_denominator = 12, .valid_bits = 32, .start_ticks = 0xffff'ffff - 100}};
  program.timings = {{.operation = drivers::sim::OperationKind::kernel,
                      .kernel_pattern = "acceptance_add",
                      .submit = 2us,
                      .launch = 3us,
                      .duration = 1'234'567ns},
                     {.operation = drivers::sim::OperationKind::event, .submit = 500ns}};
  drivers::sim::set_program(program);
}
bool is_sim() { return std::string_view(Device::get(0).value().driver()) == "sim"; }

/// Around one launch on an idle stream, and around the launch behind it.
std::pair<double, double> measure_two_launches(int device) {
  const Stream stream = Stream::from_pool(0, device).value();
  const Kernel kernel = add_kernel(device);
  const Buffer values = zeros(1, device);
  const EventOptions timed{.timing = true};
  Event before(timed), between(timed), after(timed);
  before.record(stream).value();
  stream.launch(kernel, items(1), values_of(values), 1).value();
  between.record(stream).value();
  stream.launch(kernel, items(1), values_of(values), 1).value();
  after.record(stream).value();
  stream.synchronize().value();
  return {before.elapsed_time(between).value(), between.elapsed_time(after).value()};
}

OWN_PROCESS_TEST(E2_ElapsedTimeTest, AProgrammedDurationComesOutToTheTick) {
  use_program();
  if (!is_sim()) GTEST_SKIP() << "needs a device whose times are programmed";
  const auto [idle_ms, busy_ms] = measure_two_launches(0);
  EXPECT_DOUBLE_EQ(idle_ms, (2'000 + 3'000 + 1'234'567) / 1e6);
  EXPECT_DOUBLE_EQ(busy_ms, 1'234'567 / 1e6);
}

OWN_PROCESS_TEST(E2_ElapsedTimeTest, ACounterThatWrapsGivesTheSameTime) {
  use_program();
  if (!is_sim()) GTEST_SKIP() << "needs a device whose times are programmed";
  constexpr double kTickMs = 625.0 / 12 / 1e6;
  const auto [idle_ms, busy_ms] = measure_two_launches(1);
  // Each of the two points is rounded down to a tick.
  EXPECT_NEAR(idle_ms, (2'000 + 3'000 + 1'234'567) / 1e6, kTickMs);
  EXPECT_NEAR(busy_ms, 1'234'567 / 1e6, kTickMs);
  EXPECT_NEAR(busy_ms / kTickMs, std::round(busy_ms / kTickMs), 1e-6);
}

}  // namespace
}  // namespace xpu::acceptance
