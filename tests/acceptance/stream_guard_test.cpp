#include <stdexcept>
#include <thread>
#include <type_traits>

#include "tests/acceptance/support.hpp"

// S3: a guard of streams puts back the streams of both devices and the device.

namespace xpu::acceptance {
namespace {

static_assert(!std::is_copy_constructible_v<StreamGuard> && std::is_nothrow_move_constructible_v<StreamGuard>);

/// Streams that are current on devices 0 and 1 while a test runs; device 0 is current.
class S3_StreamGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Device::current(), 0);
    ASSERT_THAT(there_.make_current(), Succeeds());
    ASSERT_THAT(here_.make_current(), Succeeds());
    expect_current(0, here_, there_);
  }
  void TearDown() override {
    for (int device = kDevices - 1; device >= 0; --device) {
      ASSERT_THAT(Stream::default_stream(device).value().make_current(), Succeeds());
    }
  }
  static void expect_current(int device, const Stream& here, const Stream& there) {
    EXPECT_EQ(Device::current(), device);
    EXPECT_EQ(Stream::current(0).value(), here);
    EXPECT_EQ(Stream::current(1).value(), there);
  }

  const Stream here_ = Stream::from_pool(0, 0).value(), there_ = Stream::from_pool(0, 1).value();
  const Stream other_here_ = Stream::from_pool(-1, 0).value(), other_there_ = Stream::from_pool(-1, 1).value();
};

TEST_F(S3_StreamGuardTest, AGuardOnAnotherDeviceChangesThatDeviceAndPutsBothBack) {
  {
    const StreamGuard guard = StreamGuard::make(other_there_).value();
    expect_current(1, here_, other_there_);
    EXPECT_EQ(guard.original_stream(), there_);
    EXPECT_EQ(guard.original_device(), 0);
  }
  expect_current(0, here_, there_);
}

TEST_F(S3_StreamGuardTest, AGuardOnTheCurrentDeviceChangesItsStreamOnly) {
  {
    const StreamGuard guard = StreamGuard::make(other_here_).value();
    expect_current(0, other_here_, there_);
    EXPECT_EQ(guard.original_stream(), here_);
  }
  expect_current(0, here_, there_);
}

TEST_F(S3_StreamGuardTest, GuardsNestOverDevices) {
  {
    const StreamGuard outer = StreamGuard::make(other_there_).value();
    {
      const StreamGuard middle = StreamGuard::make(other_here_).value();
      expect_current(0, other_here_, other_there_);
      {
        const StreamGuard inner = StreamGuard::make(there_).value();
        expect_current(1, other_here_, there_);
      }
      expect_current(0, other_here_, other_there_);
    }
    expect_current(1, here_, other_there_);
  }
  expect_current(0, here_, there_);
}

TEST_F(S3_StreamGuardTest, AGuardPutsBackWhenAnExceptionPasses) {
  EXPECT_THROW(
      {
        const StreamGuard guard = StreamGuard::make(other_there_).value();
        throw std::runtime_error("out");
      },
      std::runtime_error);
  expect_current(0, here_, there_);
}

TEST_F(S3_StreamGuardTest, AGuardPutsBackThoughDeviceAndStreamWereChangedWithinIt) {
  {
    const StreamGuard guard = StreamGuard::make(other_there_).value();
    EXPECT_THAT(there_.make_current(), Succeeds());
    EXPECT_THAT(Device::set_current(0), Succeeds());
  }
  expect_current(0, here_, there_);
}

TEST_F(S3_StreamGuardTest, AMovedGuardPutsBackOnce) {
  {
    StreamGuard first = StreamGuard::make(other_there_).value();
    {
      const StreamGuard second = std::move(first);
      EXPECT_EQ(second.original_stream(), there_);
    }
    expect_current(0, here_, there_);
    EXPECT_THAT(other_there_.make_current(), Succeeds());
  }
  expect_current(1, here_, other_there_);
}

TEST_F(S3_StreamGuardTest, AGuardIsOfItsThread) {
  const StreamGuard guard = StreamGuard::make(other_there_).value();
  std::thread other([this] {
    expect_current(0, Stream::default_stream(0).value(), Stream::default_stream(1).value());
    const StreamGuard of_other = StreamGuard::make(there_).value();
    expect_current(1, Stream::default_stream(0).value(), there_);
  });
  other.join();
  expect_current(1, here_, other_there_);
}

TEST_F(S3_StreamGuardTest, ADeviceGuardLeavesTheStreamsAlone) {
  const DeviceGuard guard = DeviceGuard::make(1).value();
  expect_current(1, here_, there_);
}

TEST_F(S3_StreamGuardTest, AWorkItemWithoutAStreamGoesToTheStreamOfTheGuard) {
  const Buffer value = zeros(1, 1);
  Event event;
  {
    const StreamGuard guard = StreamGuard::make(other_there_).value();
    store_late(Stream::current().value(), values_of(value), 5);
    EXPECT_THAT(event.record(), Succeeds());
  }
  EXPECT_EQ(event.device(), 1);
  EXPECT_THAT(event.synchronize(), Succeeds());
  EXPECT_EQ(values_of(value)[0], 5);
}

}  // namespace
}  // namespace xpu::acceptance
