#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// T1: the ten points at which a program's own functions are called.

namespace xpu::acceptance {
namespace {

using gpu_trace::Point;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Point kAllPoints[] = {Point::event_creation,       Point::event_deletion,         Point::event_record,
                                Point::event_wait,           Point::memory_allocation,      Point::memory_deallocation,
                                Point::stream_creation,      Point::device_synchronization, Point::stream_synchronization,
                                Point::event_synchronization};

/// A call as it came.
using Reached = std::tuple<Point, std::uintptr_t, std::uintptr_t>;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Registers at every point and remembers what comes.
class Reporter {
 public:
  Reporter() {
    for (const Point point : kAllPoints) {
      ids_.push_back(gpu_trace::add_callback(point, [this, point](std::uintptr_t first, std::uintptr_t second) {
        const std::lock_guard lock(mutex_);
        reached_.emplace_back(point, first, second);
      }));
    }
  }
  ~Reporter() {
    for (const std::uint64_t id : ids_) gpu_trace::remove_callback(id);
  }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  std::vector<Reached> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reached_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Reached> reached_;
  std::vector<std::uint64_t> ids_;
};

OWN_PROCESS_TEST(T1_GpuTraceTest, EachPointIsReachedOnceWithItsArgumentsInOrder) {
  Reporter reporter;
  EXPECT_THAT(initialize(), Succeeds());
  EXPECT_THAT(reporter.take(), IsEmpty());

  const Stream stream = Stream::from_pool().value();
  const std::uintptr_t queue = address_of(stream.native_handle());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::stream_creation, queue, 0)));
  const Stream other = Stream::from_pool(-1, 1).value();
  const std::uintptr_t other_queue = address_of(other.native_handle());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::stream_creation, other_queue, 0)));

  auto event = std::make_unique<Event>();
  EXPECT_THAT(event->record(stream), Succeeds());
  const std::uintptr_t handle = address_of(event->native_handle());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::event_creation, handle, 0), Reached(Point::event_record, handle, queue)));
  EXPECT_THAT(event->record(stream), Succeeds());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::event_record, handle, queue)));
  EXPECT_THAT(event->wait(other), Succeeds());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::event_wait, handle, other_queue)));
  EXPECT_THAT(event->synchronize(), Succeeds());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::event_synchronization, handle, 0)));
  EXPECT_THAT(event->query(), Gives(true));
  EXPECT_THAT(reporter.take(), IsEmpty());

  EXPECT_THAT(other.synchronize(), Succeeds());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::stream_synchronization, other_queue, 0)));
  EXPECT_THAT(synchronize(1), Succeeds());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::device_synchronization, 0, 0)));

  auto buffer = std::make_unique<Buffer>(Buffer::allocate(100).value());
  const std::uintptr_t data = address_of(buffer->data());
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::memory_allocation, data, 0)));
  buffer.reset();
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::memory_deallocation, data, 0)));

  event.reset();
  EXPECT_THAT(reporter.take(), ElementsAre(Reached(Point::event_deletion, handle, 0)));
}

TEST(T1_GpuTraceTest, AnEventThatWasNeverRecordedReachesNothing) {
  Stream::current().value();
  Reporter reporter;
  {
    const Event event;
    EXPECT_THAT(event.wait(), Succeeds());
    EXPECT_THAT(event.synchronize(), Succeeds());
  }
  EXPECT_THAT(reporter.take(), IsEmpty());
}

TEST(T1_GpuTraceTest, ACallThatIsRefusedReachesNothing) {
  Event event;
  EXPECT_THAT(event.record(Stream::default_stream(0).value()), Succeeds());
  const Stream other = Stream::default_stream(1).value();
  Reporter reporter;
  EXPECT_FALSE(event.record(other));
  EXPECT_FALSE(Buffer::allocate(0));
  EXPECT_FALSE(Stream::from_id(-1, 0));
  EXPECT_THAT(reporter.take(), IsEmpty());
}

TEST(T1_GpuTraceTest, AMovedEventIsDeletedOnce) {
  Reporter reporter;
  std::uintptr_t handle = 0;
  {
    Event first;
    EXPECT_THAT(first.record(Stream::default_stream(0).value()), Succeeds());
    handle = address_of(first.native_handle());
    Event second = std::move(first);
    const Event third = std::move(second);
  }
  const std::vector<Reached> reached = reporter.take();
  EXPECT_EQ(std::count(reached.begin(), reached.end(), Reached(Point::event_deletion, handle, 0)), 1);
}

TEST(T1_GpuTraceTest, MemoryIsStillThereWhenItsEndIsTold) {
  std::int32_t seen = 0;
  const std::uint64_t id = gpu_trace::add_callback(
      Point::memory_deallocation, [&](std::uintptr_t address, std::uintptr_t) { seen = *reinterpret_cast<const std::int32_t*>(address); });
  {
    const Buffer buffer = zeros(1);
    values_of(buffer)[0] = 42;
  }
  EXPECT_EQ(seen, 42);
  EXPECT_TRUE(gpu_trace::remove_callback(id));
}

TEST(T1_GpuTraceTest, FunctionsOfAPointAreCalledInTheOrderOfRegistration) {
  std::vector<int> order;
  std::vector<std::uint64_t> ids;
  for (int index = 0; index < 5; ++index) {
    ids.push_back(
        gpu_trace::add_callback(Point::device_synchronization, [&, index](std::uintptr_t, std::uintptr_t) { order.push_back(index); }));
  }
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_TRUE(gpu_trace::remove_callback(ids[1]));
  EXPECT_FALSE(gpu_trace::remove_callback(ids[1]));
  order.clear();
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(order, ElementsAre(0, 2, 3, 4));
  gpu_trace::clear_callbacks();
  EXPECT_FALSE(gpu_trace::remove_callback(ids[0]));
  order.clear();
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(order, IsEmpty());
}

TEST(T1_GpuTraceTest, AFunctionThatIsRemovedIsNotCalledAnyMore) {
  int calls = 0;
  const std::uint64_t id = gpu_trace::add_callback(Point::device_synchronization, [&](std::uintptr_t, std::uintptr_t) { ++calls; });
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_TRUE(gpu_trace::remove_callback(id));
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_EQ(calls, 1);
}

XPU_CHILD_MODE(throw_in_callbacks) {
  int calls = 0;
  for (const Point point : kAllPoints) {
    gpu_trace::add_callback(point, [&](std::uintptr_t, std::uintptr_t) -> void {
      ++calls;
      throw std::runtime_error("out of a callback");
    });
    gpu_trace::add_callback(point, [&](std::uintptr_t, std::uintptr_t) -> void {
      ++calls;
      throw 5;
    });
  }
  const Stream stream = Stream::from_pool().value();
  {
    const Buffer values = zeros(1);
    Event event;
    event.record(stream).value();
    event.wait(Stream::default_stream().value()).value();
    event.synchronize().value();
    stream.launch(add_kernel(), items(1), values_of(values), 1).value();
    stream.synchronize().value();
    synchronize(0).value();
    if (values_of(values)[0] != 1) return 1;
  }
  gpu_trace::clear_callbacks();
  return calls == 2 * 11 ? 0 : calls;  // two streams
}

TEST(T1_GpuTraceTest, AnExceptionGoesNoFurtherAndIsSaidOnce) {
  const Ended ended = run_mode("throw_in_callbacks");
  EXPECT_EQ(ended.exit_code, 0) << ended;
  const std::size_t said = ended.complaints.find("out of a callback");
  EXPECT_NE(said, std::string::npos) << ended;
  EXPECT_EQ(ended.complaints.find("out of a callback", said + 1), std::string::npos) << ended;
}

TEST(T1_GpuTraceTest, AFunctionMayRegisterAndRemove) {
  int outer_calls = 0, inner_calls = 0;
  std::uint64_t outer = 0, inner = 0;
  outer = gpu_trace::add_callback(Point::device_synchronization, [&](std::uintptr_t, std::uintptr_t) {
    ++outer_calls;
    EXPECT_TRUE(gpu_trace::remove_callback(outer));
    inner = gpu_trace::add_callback(Point::device_synchronization, [&](std::uintptr_t, std::uintptr_t) { ++inner_calls; });
  });
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_EQ(outer_calls, 1);
  EXPECT_EQ(inner_calls, 0);  // a call that is under way goes to those who were there when it began
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_EQ(outer_calls, 1);
  EXPECT_EQ(inner_calls, 1);
  EXPECT_TRUE(gpu_trace::remove_callback(inner));
}

TEST(T1_GpuTraceTest, AFunctionMayUseTheRuntime) {
  const Stream stream = Stream::from_pool().value();
  const Buffer values = zeros(1);
  const Kernel kernel = add_kernel();
  bool is_inside = false;
  const std::uint64_t id = gpu_trace::add_callback(Point::stream_synchronization, [&](std::uintptr_t, std::uintptr_t) {
    if (std::exchange(is_inside, true)) return;
    EXPECT_THAT(stream.launch(kernel, items(1), values_of(values), 1), Succeeds());
    EXPECT_THAT(stream.synchronize(), Succeeds());
    is_inside = false;
  });
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_TRUE(gpu_trace::remove_callback(id));
  EXPECT_EQ(values_of(values)[0], 1);
}

TEST(T1_GpuTraceTest, ThreadsMayRegisterAndRemoveWhileOthersReachThePoint) {
  std::atomic<bool> is_over{false};
  std::atomic<int> calls{0};
  std::thread reaching([&] {
    while (!is_over) EXPECT_THAT(synchronize(0), Succeeds());
  });
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const std::uint64_t id = gpu_trace::add_callback(Point::device_synchronization, [&](std::uintptr_t, std::uintptr_t) { ++calls; });
        if (round % 20 == 0) {
          const int before = calls;
          EXPECT_TRUE(eventually([&] { return calls > before; }));
        }
        EXPECT_TRUE(gpu_trace::remove_callback(id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  reaching.join();
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace xpu::acceptance
