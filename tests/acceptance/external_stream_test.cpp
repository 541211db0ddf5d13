#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/hal/driver.hpp"

// S4: what is checked of external queues, what device-wide synchronisation covers, and what remains of a stream that was let go.

namespace xpu::acceptance {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;

hal::Device& native_device(int index) { return *Device::get(index).value().native().value(); }

/// A queue that the runtime did not make.
std::unique_ptr<hal::Queue> new_queue(int device, const hal::QueueOptions& options = {}) {
  return native_device(device).create_queue(options).value();
}

auto refuses_queue(const char* sentence) { return FailsWith(ErrorCode::invalid_argument, StrEq(sentence)); }

TEST(S4_ExternalStreamTest, ANullQueueIsRefused) {
  constexpr const char* kSentence = "External sycl::queue* must not be a nullptr.";
  EXPECT_THAT(Stream::from_external(nullptr, 0), refuses_queue(kSentence));
  EXPECT_THAT(ExternalStream::wrap(nullptr, 1), refuses_queue(kSentence));
}

TEST(S4_ExternalStreamTest, AQueueThatIsNotInOrderIsRefused) {
  const auto queue = new_queue(0, {.out_of_order = true});
  constexpr const char* kSentence = "External SYCL queue must be in-order.";
  EXPECT_THAT(Stream::from_external(queue->native_handle(), 0), refuses_queue(kSentence));
  EXPECT_THAT(ExternalStream::wrap(queue->native_handle(), 0), refuses_queue(kSentence));
}

TEST(S4_ExternalStreamTest, AQueueOfAnotherContextIsRefused) {
  const std::string_view name = Device::get(0).value().driver();
  const auto entries = hal::built_in_drivers();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const hal::DriverEntry& each) { return name == each.name; });
  ASSERT_NE(entry, entries.end());
  const auto driver = entry->create();
  ASSERT_THAT(driver->enumerate(), Succeeds());
  const auto device = driver->open_device(0).value();
  const auto queue = device->create_queue({}).value();
  EXPECT_THAT(Stream::from_external(queue->native_handle(), 0),
              refuses_queue("External SYCL queue must be created with the same context as the PyTorch XPU used."));
}

TEST(S4_ExternalStreamTest, AQueueOfAnotherDeviceIsRefused) {
  constexpr const char* kSentence = "External SYCL queue doesn't match the given device index.";
  EXPECT_THAT(Stream::from_external(new_queue(1)->native_handle(), 0), refuses_queue(kSentence));
  EXPECT_THAT(Stream::from_external(new_queue(0)->native_handle(), 1), refuses_queue(kSentence));
  const auto queue = new_queue(1);
  const DeviceGuard guard = DeviceGuard::make(0).value();
  EXPECT_THAT(Stream::from_external(queue->native_handle(), -1), refuses_queue(kSentence));
}

TEST(S4_ExternalStreamTest, APointerThatIsNoQueueIsRefused) {
  alignas(64) std::byte no_queue[256]{};
  EXPECT_THAT(Stream::from_external(no_queue, 0), FailsWith(ErrorCode::invalid_argument, HasSubstr("queue")));
}

TEST(S4_ExternalStreamTest, TheSameQueueGivesTheSameStreamAndAnotherQueueAnother) {
  const auto queue = new_queue(0), other_queue = new_queue(0);
  const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
  const ExternalStream again = ExternalStream::wrap(queue->native_handle(), 0).value();
  const ExternalStream other = ExternalStream::wrap(other_queue->native_handle(), 0).value();
  EXPECT_EQ(external.stream(), again.stream());
  EXPECT_NE(external.stream(), other.stream());
}

TEST(S4_SynchronizeTest, ADeviceIsSynchronisedWithItsPoolStreamsAndItsExternalOnes) {
  using namespace std::chrono_literals;
  for (int device = 0; device < kDevices; ++device) {
    const auto queue = new_queue(device);
    const ExternalStream external = ExternalStream::wrap(queue->native_handle(), device).value();
    const Stream stream = Stream::from_pool(1, device).value();
    const Buffer values = zeros(2, device);
    std::int32_t* const places = values_of(values);
    // Each in turn is the last to end, so that one that is forgotten shows.
    for (const auto& [pool_time, external_time] : {std::pair(0ms, 200ms), std::pair(200ms, 0ms)}) {
      places[0] = places[1] = 0;
      store_late(stream, places, 7, pool_time);
      store_late(external.stream(), places + 1, 7, external_time);
      EXPECT_THAT(Device::get(device).value().synchronize(), Succeeds());
      EXPECT_THAT(std::vector<std::int32_t>(places, places + 2), ::testing::Each(7)) << "device " << device;
      EXPECT_THAT(stream.query(), Gives(true));
      EXPECT_THAT(external.stream().query(), Gives(true));
    }
  }
}

TEST(S4_SynchronizeTest, ADeviceIsSynchronisedWithQueuesThatTheRuntimeWasNeverToldOf) {
  const auto queue = new_queue(0);
  const Buffer values = zeros(1);
  struct Late {
    std::int32_t* place;
    bool is_slow;
  } late{values_of(values), runs_by_itself()};
  const hal::HostFunction function{[](void* user) -> Result<> {
                                     const Late& stored = *static_cast<Late*>(user);
                                     if (stored.is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(200));
                                     *stored.place = 7;
                                     return {};
                                   },
                                   nullptr, &late};
  EXPECT_THAT(queue->host_function(function, {}), Succeeds());
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_EQ(values_of(values)[0], 7);
}

TEST(S4_SynchronizeTest, ADeviceReturnsTheErrorOfAnExternalQueueOnce) {
  const auto queue = new_queue(0);
  const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
  const auto fail = [] { return Result<>(Error{ErrorCode::internal, "this function fails"}); };
  EXPECT_THAT(external.stream().run({}, fail), Succeeds());
  EXPECT_THAT(synchronize(0), FailsWith(ErrorCode::internal, HasSubstr("this function fails")));
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(external.stream().synchronize(), Succeeds());
}

TEST(S4_SynchronizeTest, AnErrorAfterTheEndOfABufferIsReturnedByTheNextSynchronisationOfTheDevice) {
  const Stream stream = Stream::from_pool().value();
  {
    const Buffer buffer = zeros(1);
    EXPECT_THAT(stream.run({}, [] { return Result<>(Error{ErrorCode::internal, "this function fails"}); }), Succeeds());
  }
  EXPECT_THAT(synchronize(0), FailsWith(ErrorCode::internal, HasSubstr("this function fails")));
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
}

TEST(S4_SynchronizeTest, PoolStreamsAndExternalOnesWaitForEachOther) {
  const auto queue = new_queue(0);
  const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
  const Stream stream = Stream::from_pool().value();
  const Buffer values = zeros(2);
  std::int32_t* const places = values_of(values);
  store_late(stream, places, 1);
  EXPECT_THAT(external.stream().wait(stream), Succeeds());
  EXPECT_THAT(external.stream().copy(places + 1, places, sizeof *places), Succeeds());
  EXPECT_THAT(external.stream().synchronize(), Succeeds());
  EXPECT_EQ(places[1], 1);
  store_late(external.stream(), places, 2);
  EXPECT_THAT(stream.wait(external.stream()), Succeeds());
  EXPECT_THAT(stream.copy(places + 1, places, sizeof *places), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_EQ(places[1], 2);
}

TEST(S4_ReleaseTest, AStreamThatWasLetGoIsRefusedByEveryCall) {
  const auto queue = new_queue(0);
  const Buffer values = zeros(4);
  const Stream other = Stream::from_pool().value();
  const Kernel kernel = add_kernel();
  Event event, never_recorded;
  ASSERT_THAT(event.record(other), Succeeds());
  auto external = std::make_unique<ExternalStream>(ExternalStream::wrap(queue->native_handle(), 0).value());
  const Stream stream = external->stream();
  external.reset();

  const auto is_refused = FailsWith(ErrorCode::failed_precondition, AllOf(HasSubstr("external stream 0x"), HasSubstr("released")));
  EXPECT_THAT(stream.query(), is_refused);
  EXPECT_THAT(stream.synchronize(), is_refused);
  EXPECT_THAT(stream.launch(kernel, items(4), values_of(values), 1), is_refused);
  EXPECT_THAT(stream.copy(values_of(values), values_of(values) + 1, 4), is_refused);
  EXPECT_THAT(stream.copy_blocking(values_of(values), values_of(values) + 1, 4), is_refused);
  EXPECT_THAT(stream.fill(values_of(values), 1, 4), is_refused);
  EXPECT_THAT(stream.run({}, [] {}), is_refused);
  EXPECT_THAT(stream.run_blocking({}, [] {}), is_refused);
  EXPECT_THAT(stream.wait(event), is_refused);
  EXPECT_THAT(stream.wait(other), is_refused);
  EXPECT_THAT(other.wait(stream), is_refused);
  EXPECT_THAT(event.record(stream), is_refused);
  EXPECT_THAT(never_recorded.record(stream), is_refused);
  EXPECT_FALSE(never_recorded.is_created());
  EXPECT_EQ(never_recorded.device(), -1);
  EXPECT_THAT(stream.make_current(), is_refused);
  EXPECT_NE(Stream::current().value(), stream);
  EXPECT_THAT(Stream::from_id(stream.id(), 0), FailsWith(ErrorCode::invalid_argument, HasSubstr("Unrecognized stream ")));
  EXPECT_THAT(synchronize(0), Succeeds());
}

TEST(S4_ReleaseTest, ThreadsThatUseAStreamWhileItIsLetGoAreRefusedAndLoseNothing) {
  const auto queue = new_queue(0);
  for (int round = 0; round < 20; ++round) {
    auto external = std::make_unique<ExternalStream>(ExternalStream::wrap(queue->native_handle(), 0).value());
    const Stream stream = external->stream();
    std::atomic<int> submitted{0}, run{0};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      while (stream.run({}, [&] { ++run; })) ++submitted;
    });
    threads.emplace_back([&] {
      while (stream.run_blocking({}, [&] { ++run; })) ++submitted;
    });
    threads.emplace_back([&] {
      while (stream.synchronize()) {
      }
    });
    threads.emplace_back([&] {
      // The end of a buffer waits for every stream of the device.
      while (stream.query()) zeros(1);
    });
    EXPECT_TRUE(eventually([&] { return submitted >= 10; }));
    external.reset();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(run, submitted);
  }
}

TEST(S4_ReleaseTest, AStreamIsLetGoByTheLastOfItsHolders) {
  const auto queue = new_queue(0);
  auto first = std::make_unique<ExternalStream>(ExternalStream::wrap(queue->native_handle(), 0).value());
  auto second = std::make_unique<ExternalStream>(ExternalStream::wrap(queue->native_handle(), 0).value());
  const Stream stream = first->stream();
  first.reset();
  EXPECT_THAT(stream.synchronize(), Succeeds());
  second.reset();
  EXPECT_THAT(stream.synchronize(), FailsWith(ErrorCode::failed_precondition, HasSubstr("released")));
}

TEST(S4_ReleaseTest, AStreamOfFromExternalIsNeverLetGo) {
  static const auto& queue = *new std::unique_ptr<hal::Queue>(new_queue(0));  // as the stream
  const Stream stream = Stream::from_external(queue->native_handle(), 0).value();
  {
    const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
  }
  EXPECT_THAT(stream.synchronize(), Succeeds());
}

TEST(S4_ReleaseTest, TheWorkIsDoneWhenTheStreamHasBeenLetGoAndTheQueueStays) {
  const auto queue = new_queue(0);
  const Buffer values = zeros(2);
  std::int32_t* const places = values_of(values);
  {
    const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
    store_late(external.stream(), places, 3);
  }
  EXPECT_EQ(places[0], 3);
  const std::int32_t pattern = 4;
  EXPECT_THAT(queue->fill(places, std::as_bytes(std::span(&pattern, 1)), sizeof pattern, {}), Succeeds());
  EXPECT_THAT(queue->synchronize_blocking(), Succeeds());
  EXPECT_EQ(places[0], 4);
  const ExternalStream again = ExternalStream::wrap(queue->native_handle(), 0).value();
  EXPECT_THAT(again.stream().fill(places + 1, 5, 1), Succeeds());
  EXPECT_THAT(again.stream().synchronize(), Succeeds());
  EXPECT_EQ(places[1], 5);
}

}  // namespace
}  // namespace xpu::acceptance
