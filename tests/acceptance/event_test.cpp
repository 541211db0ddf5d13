#include <memory>
#include <thread>
#include <type_traits>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/drivers/sim.hpp"

// E1: the life of an event.

namespace xpu::acceptance {
namespace {

using ::testing::StrEq;

static_assert(!std::is_copy_constructible_v<Event> && !std::is_copy_assignable_v<Event>);
static_assert(std::is_nothrow_move_constructible_v<Event> && std::is_nothrow_move_assignable_v<Event>);
static_assert(std::is_nothrow_default_constructible_v<Event>);

OWN_PROCESS_TEST(E1_EventTest, AnEventThatWasNeverRecordedIsCompleteAndNothing) {
  for (const EventOptions& options : {EventOptions{}, EventOptions{.timing = true}, EventOptions{.blocking = true}}) {
    const Event event(options);
    EXPECT_THAT(event.query(), Gives(true));
    EXPECT_THAT(event.synchronize(), Succeeds());
    EXPECT_THAT(event.wait(), Succeeds());
    EXPECT_EQ(event.device(), -1);
    EXPECT_EQ(event.native_handle(), nullptr);
    EXPECT_FALSE(event.is_created());
  }
  EXPECT_FALSE(is_initialized());
  const Event event;
  EXPECT_THAT(Stream::current().value().wait(event), Succeeds());
  EXPECT_FALSE(event.is_created());
}

TEST(E1_EventTest, TheFirstRecordCreatesItOnTheDeviceOfTheStream) {
  Event event;
  EXPECT_THAT(event.record(Stream::from_pool(0, 1).value()), Succeeds());
  EXPECT_TRUE(event.is_created());
  EXPECT_EQ(event.device(), 1);
  void* const handle = event.native_handle();
  EXPECT_NE(handle, nullptr);
  EXPECT_THAT(event.record(Stream::default_stream(1).value()), Succeeds());
  EXPECT_EQ(event.native_handle(), handle);
  EXPECT_THAT(event.synchronize(), Succeeds());
}

TEST(E1_EventTest, RecordAndWaitWithoutAStreamUseTheCurrentOne) {
  const Stream source = Stream::from_pool().value(), target = Stream::from_pool().value();
  const Buffer values = zeros(2);
  std::int32_t* const places = values_of(values);
  Event event;
  {
    const StreamGuard guard = StreamGuard::make(source).value();
    store_late(source, places, 1);
    EXPECT_THAT(event.record(), Succeeds());
  }
  {
    const StreamGuard guard = StreamGuard::make(target).value();
    EXPECT_THAT(event.wait(), Succeeds());
    EXPECT_THAT(target.copy(places + 1, places, sizeof *places), Succeeds());
  }
  EXPECT_THAT(target.synchronize(), Succeeds());
  EXPECT_EQ(places[1], 1);
}

TEST(E1_EventTest, ItIsCompleteWhenWhatWasSubmittedBeforeItIsAndNotBefore) {
  const Stream stream = Stream::from_pool().value();
  const Buffer values = zeros(1);
  Event event;
  if (runs_by_itself()) {
    Hold hold(stream);
    EXPECT_THAT(event.record(stream), Succeeds());
    EXPECT_THAT(event.query(), Gives(false));
    hold.release();
  } else {
    EXPECT_THAT(stream.launch(long_kernel(), items(1), values_of(values), 1), Succeeds());
    EXPECT_THAT(stream.launch(long_kernel(), items(1), values_of(values), 1), Succeeds());
    EXPECT_THAT(event.record(stream), Succeeds());
    EXPECT_THAT(event.query(), Gives(false));
  }
  EXPECT_TRUE(eventually([&] { return event.query().value(); }));
  EXPECT_THAT(event.synchronize(), Succeeds());
}

TEST(E1_EventTest, SynchronizeReturnsAfterTheEffect) {
  for (const EventOptions& options : {EventOptions{}, EventOptions{.timing = true, .blocking = true}}) {
    const Stream stream = Stream::from_pool().value();
    const Buffer values = zeros(1);
    Event event(options);
    store_late(stream, values_of(values), 1);
    EXPECT_THAT(event.record(stream), Succeeds());
    EXPECT_THAT(event.synchronize(), Succeeds());
    EXPECT_EQ(values_of(values)[0], 1);
  }
}

TEST(E1_EventTest, RecordingAgainReplacesThePointAndWaitsKeepTheOldOne) {
  const Stream first = Stream::from_pool().value(), second = Stream::from_pool().value(), waiting = Stream::from_pool().value();
  const Buffer values = zeros(3);
  std::int32_t* const places = values_of(values);
  Event event;
  if (runs_by_itself()) {
    Hold first_hold(first), second_hold(second);
    EXPECT_THAT(first.fill(places, 1, 1), Succeeds());
    EXPECT_THAT(event.record(first), Succeeds());
    EXPECT_THAT(waiting.wait(event), Succeeds());
    EXPECT_THAT(waiting.copy(places + 1, places, sizeof *places), Succeeds());
    EXPECT_THAT(event.record(second), Succeeds());
    EXPECT_THAT(waiting.query(), Gives(false));
    first_hold.release();
    // The second hold is still there, so this ends only if the wait is for the first point.
    EXPECT_THAT(waiting.synchronize(), Succeeds());
    EXPECT_EQ(places[1], 1);
    EXPECT_THAT(event.query(), Gives(false));
    second_hold.release();
  } else {
    const hal::Device& device = *Device::get(0).value().native().value();
    EXPECT_THAT(first.launch(add_kernel(), items(1), places, 1), Succeeds());
    EXPECT_THAT(event.record(first), Succeeds());
    EXPECT_THAT(waiting.wait(event), Succeeds());
    EXPECT_THAT(waiting.copy(places + 1, places, sizeof *places), Succeeds());
    EXPECT_THAT(second.launch(long_kernel(), items(1), places + 2, 1), Succeeds());
    EXPECT_THAT(event.record(second), Succeeds());
    const auto before = drivers::sim::virtual_time(device).value();
    EXPECT_THAT(waiting.synchronize(), Succeeds());
    EXPECT_LT(drivers::sim::virtual_time(device).value() - before, std::chrono::milliseconds(1));
    EXPECT_EQ(places[1], 1);
    EXPECT_EQ(places[2], 0);
  }
  EXPECT_THAT(event.synchronize(), Succeeds());
  EXPECT_THAT(synchronize(0), Succeeds());
}

TEST(E1_EventTest, RecordOnceKeepsTheFirstPoint) {
  const Stream first = Stream::from_pool().value(), second = Stream::from_pool().value();
  Event event(EventOptions{.timing = true});
  Event after(EventOptions{.timing = true});
  EXPECT_THAT(event.record_once(first), Succeeds());
  EXPECT_THAT(after.record(first), Succeeds());
  EXPECT_THAT(synchronize(0), Succeeds());
  const double between = event.elapsed_time(after).value();
  EXPECT_THAT(event.record_once(second), Succeeds());
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(event.elapsed_time(after), Gives(between));
}

TEST(E1_EventTest, RecordingOnAStreamOfAnotherDeviceIsRefusedWithBothNamed) {
  Event event;
  EXPECT_THAT(event.record(Stream::default_stream(0).value()), Succeeds());
  void* const handle = event.native_handle();
  EXPECT_THAT(event.record(Stream::default_stream(1).value()),
              FailsWith(ErrorCode::invalid_argument, StrEq("Event device 0 does not match recording stream's device 1.")));
  EXPECT_EQ(event.device(), 0);
  EXPECT_EQ(event.native_handle(), handle);
  EXPECT_THAT(event.record(Stream::from_pool(0, 0).value()), Succeeds());
  Event other;
  EXPECT_THAT(other.record(Stream::default_stream(1).value()), Succeeds());
  EXPECT_THAT(Stream::default_stream(0).value().record(other),
              FailsWith(ErrorCode::invalid_argument, StrEq("Event device 1 does not match recording stream's device 0.")));
}

TEST(E1_EventTest, AStreamOfAnotherDeviceMayWaitForIt) {
  const Stream here = Stream::from_pool(0, 0).value(), there = Stream::from_pool(0, 1).value();
  const Buffer values = zeros(2, 0);
  std::int32_t* const places = values_of(values);
  Event event;
  store_late(here, places, 1);
  EXPECT_THAT(event.record(here), Succeeds());
  EXPECT_THAT(there.wait(event), Succeeds());
  EXPECT_THAT(there.run({}, [=] { places[1] = places[0]; }), Succeeds());
  EXPECT_THAT(there.synchronize(), Succeeds());
  EXPECT_EQ(places[1], 1);
  // A stream of another device may be waited for whole, too.
  store_late(there, places, 2);
  EXPECT_THAT(here.wait(there), Succeeds());
  EXPECT_THAT(here.run({}, [=] { places[1] = places[0]; }), Succeeds());
  EXPECT_THAT(here.synchronize(), Succeeds());
  EXPECT_EQ(places[1], 2);
}

TEST(E1_EventTest, AWaitOutlivesItsEvent) {
  const Stream first = Stream::from_pool().value(), second = Stream::from_pool().value();
  const Buffer values = zeros(2);
  std::int32_t* const places = values_of(values);
  auto event = std::make_unique<Event>();
  store_late(first, places, 1);
  EXPECT_THAT(event->record(first), Succeeds());
  EXPECT_THAT(second.wait(*event), Succeeds());
  event.reset();
  EXPECT_THAT(second.copy(places + 1, places, sizeof *places), Succeeds());
  EXPECT_THAT(second.synchronize(), Succeeds());
  EXPECT_EQ(places[1], 1);
}

TEST(E1_EventTest, AMovedEventTakesThePointAlongAndLeavesANewEvent) {
  Event first(EventOptions{.timing = true});
  EXPECT_THAT(first.record(Stream::default_stream(1).value()), Succeeds());
  void* const handle = first.native_handle();
  Event second = std::move(first);
  EXPECT_EQ(second.native_handle(), handle);
  EXPECT_EQ(second.device(), 1);
  EXPECT_TRUE(second.options().timing);
  EXPECT_FALSE(first.is_created());
  EXPECT_EQ(first.device(), -1);
  EXPECT_THAT(first.query(), Gives(true));
  Event third;
  third = std::move(second);
  EXPECT_EQ(third.native_handle(), handle);
  EXPECT_FALSE(second.is_created());
  EXPECT_THAT(third.synchronize(), Succeeds());
  // What was moved from may be recorded again, on any device.
  EXPECT_THAT(second.record(Stream::default_stream(0).value()), Succeeds());
  EXPECT_EQ(second.device(), 0);
}

TEST(E1_EventTest, ThreadsMayAskAndWaitAtTheSameTime) {
  const Stream stream = Stream::from_pool().value();
  const Buffer values = zeros(1);
  Event event;
  store_late(stream, values_of(values), 1);
  EXPECT_THAT(event.record(stream), Succeeds());
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      if (index % 2 == 0) {
        EXPECT_THAT(event.synchronize(), Succeeds());
      } else {
        EXPECT_TRUE(eventually([&] { return event.query().value(); }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values_of(values)[0], 1);
}

}  // namespace
}  // namespace xpu::acceptance
