#include <thread>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// S2: streams of every priority and the stream of id 0 work. S5: the default stream, external streams as objects, capture.

namespace xpu::acceptance {
namespace {

/// Uses everything that a stream offers.
void expect_works(const Stream& stream) {
  SCOPED_TRACE(::testing::Message() << "stream " << stream.id() << " of device " << stream.device());
  const Buffer values = zeros(8, stream.device());
  const std::int32_t source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  Event event(EventOptions{.timing = true});
  bool has_run = false;
  EXPECT_THAT(stream.copy(values_of(values), source, sizeof source), Succeeds());
  EXPECT_THAT(stream.launch(add_kernel(stream.device()), items(8), values_of(values), 10), Succeeds());
  EXPECT_THAT(stream.fill(values_of(values) + 6, 99, 2), Succeeds());
  EXPECT_THAT(stream.run({}, [&] { has_run = values_of(values)[7] == 99; }), Succeeds());
  EXPECT_THAT(event.record(stream), Succeeds());
  EXPECT_THAT(stream.wait(event), Succeeds());
  EXPECT_THAT(stream.wait(Stream::default_stream(stream.device()).value()), Succeeds());
  EXPECT_THAT(stream.synchronize(), Succeeds());
  EXPECT_THAT(stream.query(), Gives(true));
  EXPECT_THAT(event.query(), Gives(true));
  EXPECT_TRUE(has_run);
  EXPECT_THAT(std::vector<std::int32_t>(values_of(values), values_of(values) + 8), ::testing::ElementsAre(11, 12, 13, 14, 15, 16, 99, 99));
}

TEST(S2_StreamUseTest, ALowPriorityStreamWorks) {
  for (int device = 0; device < kDevices; ++device) {
    const Stream low = Stream::from_pool(1, device).value();
    EXPECT_EQ(low.priority(), 1);
    EXPECT_NE(low.native_handle(), nullptr);
    expect_works(low);
  }
}

TEST(S2_StreamUseTest, StreamsOfTheOtherPrioritiesWork) {
  for (const int priority : {0, -1}) expect_works(Stream::from_pool(priority).value());
}

TEST(S2_StreamUseTest, TheStreamOfId0IsTheDefaultStreamAndWorks) {
  for (int device = 0; device < kDevices; ++device) {
    const Stream zero = Stream::from_id(0, device).value();
    EXPECT_EQ(zero, Stream::default_stream(device).value());
    EXPECT_EQ(zero.id(), 499);
    EXPECT_EQ(zero.priority(), 0);
    EXPECT_EQ(zero.device(), device);
    expect_works(zero);
  }
}

TEST(S2_StreamUseTest, AStreamOfId1IsTheFirstOfLowPriorityAndNotTheDefaultStream) {
  const Stream one = Stream::from_id(1, 0).value();
  EXPECT_EQ(one.priority(), 1);
  EXPECT_NE(one, Stream::from_id(0, 0).value());
  expect_works(one);
}

OWN_PROCESS_TEST(S2_StreamUseTest, TheStreamOfId0OfANegativeDeviceIsThatOfTheCurrentOne) {
  const DeviceGuard guard = DeviceGuard::make(1).value();
  EXPECT_EQ(Stream::from_id(0, -1).value(), Stream::default_stream(1).value());
}

TEST(S5_DefaultStreamTest, TheDefaultStreamIsTheInitialCurrentStreamOfEveryThread) {
  std::thread other([] {
    for (int device = 0; device < kDevices; ++device) {
      EXPECT_EQ(Stream::current(device).value(), Stream::default_stream(device).value());
      EXPECT_EQ(Stream::default_stream(device).value().device(), device);
    }
  });
  other.join();
}

TEST(S5_DefaultStreamTest, TheDefaultStreamStaysWhenAnotherBecomesCurrent) {
  const Stream before = Stream::default_stream().value();
  const StreamGuard guard = StreamGuard::make(Stream::from_pool().value()).value();
  EXPECT_EQ(Stream::default_stream().value(), before);
  EXPECT_NE(Stream::current().value(), before);
}

TEST(S5_DefaultStreamTest, NoStreamIsCapturing) {
  const auto queue = Device::get(0).value().native().value()->create_queue({}).value();
  const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
  for (const Stream& stream : {Stream::default_stream().value(), Stream::from_pool().value(), external.stream()}) {
    EXPECT_FALSE(stream.is_capturing());
  }
}

TEST(S5_ExternalStreamTest, AnExternalStreamWorks) {
  for (int device = 0; device < kDevices; ++device) {
    const auto queue = Device::get(device).value().native().value()->create_queue({}).value();
    const ExternalStream external = ExternalStream::wrap(queue->native_handle(), device).value();
    EXPECT_TRUE(external.stream().is_external());
    expect_works(external.stream());
  }
}

TEST(S5_ExternalStreamTest, AnExternalStreamHasTheHandleAsItsIdAndIsFoundByIt) {
  const auto queue = Device::get(1).value().native().value()->create_queue({}).value();
  const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 1).value();
  EXPECT_EQ(external.stream().native_handle(), queue->native_handle());
  EXPECT_EQ(external.stream().id(), static_cast<StreamId>(reinterpret_cast<std::uintptr_t>(queue->native_handle())));
  EXPECT_EQ(external.stream().id() % 2, 0);
  EXPECT_EQ(external.stream().device(), 1);
  EXPECT_THAT(Stream::from_id(external.stream().id(), 1), Gives(external.stream()));
}

TEST(S5_ExternalStreamTest, AnExternalStreamHasThePriorityOfItsQueue) {
  for (const auto priority : {hal::QueuePriority::high, hal::QueuePriority::normal, hal::QueuePriority::low}) {
    const auto queue = Device::get(0).value().native().value()->create_queue({.priority = priority}).value();
    EXPECT_EQ(ExternalStream::wrap(queue->native_handle(), 0).value().stream().priority(), static_cast<int>(priority));
  }
}

TEST(S5_ExternalStreamTest, AnExternalStreamMayBecomeCurrent) {
  const auto queue = Device::get(0).value().native().value()->create_queue({}).value();
  const ExternalStream external = ExternalStream::wrap(queue->native_handle(), 0).value();
  const StreamGuard guard = StreamGuard::make(external.stream()).value();
  EXPECT_EQ(Stream::current().value(), external.stream());
  expect_works(Stream::current().value());
}

TEST(S5_ExternalStreamTest, AMovedExternalStreamIsLetGoOnce) {
  const auto queue = Device::get(0).value().native().value()->create_queue({}).value();
  auto first = std::make_unique<ExternalStream>(ExternalStream::wrap(queue->native_handle(), 0).value());
  const ExternalStream second = std::move(*first);
  first.reset();
  expect_works(second.stream());
}

}  // namespace
}  // namespace xpu::acceptance
