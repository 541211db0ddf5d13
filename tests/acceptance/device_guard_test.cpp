#include <stdexcept>
#include <thread>
#include <type_traits>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// A5: the current device and its guards.

namespace xpu::acceptance {
namespace {

using ::testing::StrEq;

static_assert(!std::is_copy_constructible_v<DeviceGuard> && std::is_nothrow_move_constructible_v<DeviceGuard>);

TEST(A5_DeviceGuardTest, GuardsNestAndEachPutsBackWhatItFound) {
  ASSERT_EQ(Device::current(), 0);
  {
    const DeviceGuard outer = DeviceGuard::make(1).value();
    EXPECT_EQ(outer.original(), 0);
    EXPECT_EQ(Device::current(), 1);
    {
      const DeviceGuard inner = DeviceGuard::make(0).value();
      EXPECT_EQ(inner.original(), 1);
      EXPECT_EQ(Device::current(), 0);
      const DeviceGuard same = DeviceGuard::make(0).value();
      EXPECT_EQ(same.original(), 0);
    }
    EXPECT_EQ(Device::current(), 1);
  }
  EXPECT_EQ(Device::current(), 0);
}

Result<int> return_early(bool early) {
  XPU_TRY_ASSIGN(const DeviceGuard guard, DeviceGuard::make(1));
  if (early) return Device::current();
  return Error{ErrorCode::internal, "late"};
}

TEST(A5_DeviceGuardTest, AGuardPutsBackOnAnEarlyReturnAndOnAnException) {
  EXPECT_THAT(return_early(true), Gives(1));
  EXPECT_EQ(Device::current(), 0);
  EXPECT_THAT(return_early(false), FailsWith(ErrorCode::internal, StrEq("late")));
  EXPECT_EQ(Device::current(), 0);
  try {
    const DeviceGuard guard = DeviceGuard::make(1).value();
    throw std::runtime_error("on device " + std::to_string(Device::current()));
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "on device 1");
  }
  EXPECT_EQ(Device::current(), 0);
}

TEST(A5_DeviceGuardTest, AGuardPutsBackWhatItFoundThoughTheDeviceWasChangedWithinIt) {
  {
    const DeviceGuard guard = DeviceGuard::make(0).value();
    EXPECT_THAT(Device::set_current(1), Succeeds());
  }
  EXPECT_EQ(Device::current(), 0);
}

TEST(A5_DeviceGuardTest, AMovedGuardPutsBackOnce) {
  {
    DeviceGuard first = DeviceGuard::make(1).value();
    {
      const DeviceGuard second = std::move(first);
      EXPECT_EQ(second.original(), 0);
    }
    EXPECT_EQ(Device::current(), 0);
    EXPECT_THAT(Device::set_current(1), Succeeds());
  }
  EXPECT_EQ(Device::current(), 1);
  EXPECT_THAT(Device::set_current(0), Succeeds());
}

TEST(A5_DeviceGuardTest, TheCurrentDeviceIsOfTheThread) {
  const DeviceGuard guard = DeviceGuard::make(1).value();
  std::thread other([] {
    EXPECT_EQ(Device::current(), 0);
    EXPECT_THAT(Device::set_current(1), Succeeds());
    const DeviceGuard of_other = DeviceGuard::make(0).value();
    EXPECT_EQ(of_other.original(), 1);
    EXPECT_EQ(Device::current(), 0);
  });
  other.join();
  EXPECT_EQ(Device::current(), 1);
}

TEST(A5_DeviceGuardTest, ExchangeGivesTheDeviceBefore) {
  EXPECT_THAT(Device::exchange_current(1), Gives(0));
  EXPECT_THAT(Device::exchange_current(1), Gives(1));
  EXPECT_THAT(Device::exchange_current(-1), Gives(-1));
  EXPECT_THAT(Device::exchange_current(0), Gives(1));
  EXPECT_EQ(Device::current(), 0);
}

TEST(A5_DeviceGuardTest, CallsWithoutADeviceUseTheCurrentOne) {
  const DeviceGuard guard = DeviceGuard::make(1).value();
  EXPECT_EQ(Buffer::allocate(64).value().device(), 1);
  EXPECT_EQ(Stream::current().value().device(), 1);
  EXPECT_EQ(Stream::from_pool().value().device(), 1);
  EXPECT_EQ(Stream::default_stream().value().device(), 1);
  EXPECT_EQ(add_kernel().device(), 1);
}

OWN_PROCESS_TEST(A5_DeviceGuardTest, ANegativeIndexChangesNothingAndInitialisesNothing) {
  EXPECT_THAT(Device::set_current(-1), Succeeds());
  EXPECT_THAT(Device::exchange_current(-5), Gives(-1));
  {
    const DeviceGuard guard = DeviceGuard::make(-1).value();
    EXPECT_EQ(guard.original(), -1);
  }
  EXPECT_EQ(Device::current(), 0);
  EXPECT_FALSE(is_initialized());
  {
    // It puts back nothing either.
    const DeviceGuard guard = DeviceGuard::make(-1).value();
    EXPECT_THAT(Device::set_current(1), Succeeds());
  }
  EXPECT_EQ(Device::current(), 1);
}

TEST(A5_DeviceGuardTest, AnIndexOutOfRangeIsNamedAndChangesNothing) {
  const auto out_of_range = [](int index) {
    return FailsWith(ErrorCode::invalid_argument,
                     StrEq("The device index is out of range. It must be in [0, 2), but got " + std::to_string(index) + "."));
  };
  EXPECT_THAT(Device::set_current(2), out_of_range(2));
  EXPECT_THAT(Device::exchange_current(1'000), out_of_range(1'000));
  EXPECT_THAT(DeviceGuard::make(2), out_of_range(2));
  EXPECT_THAT(Device::get(2), out_of_range(2));
  EXPECT_THAT(Device::get(-1), out_of_range(-1));
  EXPECT_THAT(Stream::current(7), out_of_range(7));
  EXPECT_THAT(Stream::from_pool(0, 7), out_of_range(7));
  EXPECT_THAT(Buffer::allocate(1, MemoryKind::device, 2), out_of_range(2));
  EXPECT_THAT(synchronize(2), out_of_range(2));
  EXPECT_EQ(Device::current(), 0);
}

}  // namespace
}  // namespace xpu::acceptance
