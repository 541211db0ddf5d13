#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/suite.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Counting devices and what is said of them. Nothing here opens a device.
class EnumerationTest : public ConformanceTest {
 protected:
  std::vector<DeviceProperties> enumerate() const { return new_driver()->enumerate().value(); }
};
XPU_CONFORMANCE_SUITE(EnumerationTest);

std::size_t thread_count() {
  std::size_t count = 0;
  DIR* const folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count;
}

bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char letter) { return static_cast<unsigned char>(letter) < 0x20; });
}

/// Runs something on the first device of a new instance, and tells whether it worked.
bool works_in_this_process(const hal::DriverEntry& entry) {
  const std::unique_ptr<hal::Driver> driver = entry.create();
  Result<std::unique_ptr<hal::Device>> device = driver->open_device(0);
  if (!device) return false;
  Result<std::unique_ptr<hal::Queue>> queue = (*device)->create_queue({});
  if (!queue) return false;
  std::atomic<bool> has_run{false};
  if (!submit_action(**queue, [&has_run] { has_run = true; })) return false;
  return (*queue)->synchronize_blocking() && has_run;
}

/// For a process of a death test: forks and ends with 0 when the child could use the driver.
[[noreturn]] void fork_and_work_in_the_child(const hal::DriverEntry& entry) {
  if (!entry.create()->enumerate()) std::_Exit(2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::_Exit(works_in_this_process(entry) ? 0 : 3);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) std::_Exit(4);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
}

TEST_P(EnumerationTest, FindsADevice) { EXPECT_FALSE(enumerate().empty()); }

TEST_P(EnumerationTest, TheDriverHasTheNameOfItsTableEntry) { EXPECT_STREQ(new_driver()->name(), entry().name); }

TEST_P(EnumerationTest, TwoCallsGiveTheSameDevicesInTheSameOrder) {
  const std::unique_ptr<hal::Driver> driver = new_driver();
  EXPECT_EQ(driver->enumerate().value(), driver->enumerate().value());
}

TEST_P(EnumerationTest, TwoInstancesGiveTheSameDevicesInTheSameOrder) { EXPECT_EQ(enumerate(), enumerate()); }

TEST_P(EnumerationTest, TheDevicesAreTheSameAfterOneWasOpened) {
  const std::vector<DeviceProperties> before = enumerate();
  static_cast<void>(device());
  EXPECT_EQ(shared().driver().enumerate().value(), before);
}

TEST_P(EnumerationTest, FourThreadsGetTheSameAnswer) {
  const std::unique_ptr<hal::Driver> driver = new_driver();
  const std::vector<DeviceProperties> expected = driver->enumerate().value();
  on_threads(4, [&](int) { EXPECT_EQ(driver->enumerate().value(), expected); });
}

TEST_P(EnumerationTest, StartsNoThread) {
  const std::size_t before = thread_count();
  const std::unique_ptr<hal::Driver> driver = new_driver();
  ASSERT_TRUE(is_ok(driver->enumerate()));
  EXPECT_EQ(thread_count(), before);
}

TEST_P(EnumerationTest, AChildThatIsForkedAfterwardsCanUseTheDevices) {
  EXPECT_EXIT(fork_and_work_in_the_child(entry()), ::testing::ExitedWithCode(0), "");
}

TEST_P(EnumerationTest, UuidsAreDistinct) {
  std::set<std::string> uuids;
  const std::vector<DeviceProperties> devices = enumerate();
  for (const DeviceProperties& properties : devices) uuids.insert(to_string(properties.uuid));
  EXPECT_EQ(uuids.size(), devices.size());
}

TEST_P(EnumerationTest, NoUuidIsEmpty) {
  for (const DeviceProperties& properties : enumerate()) EXPECT_NE(properties.uuid, Uuid{}) << properties.name;
}

TEST_P(EnumerationTest, UuidsAreTheSameInAnotherProcess) {
  std::string expected;
  for (const DeviceProperties& properties : enumerate()) expected += to_string(properties.uuid) + "\n";
  const hal::DriverEntry& tested = entry();
  // The statement runs in a new process, which prints what it sees; the pattern is what this process sees.
  EXPECT_EXIT(
      {
        for (const DeviceProperties& properties : tested.create()->enumerate().value()) std::cerr << to_string(properties.uuid) << "\n";
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), expected);
}

TEST_P(EnumerationTest, NamesAreLinesOfText) {
  for (const DeviceProperties& properties : enumerate()) {
    EXPECT_FALSE(properties.name.empty());
    EXPECT_FALSE(properties.vendor.empty());
    EXPECT_FALSE(properties.platform_name.empty());
    EXPECT_FALSE(properties.driver_version.empty());
    for (const std::string& text :
         {properties.name, properties.vendor, properties.platform_name, properties.driver_version, properties.version}) {
      EXPECT_TRUE(is_one_line(text)) << text;
    }
  }
}

TEST_P(EnumerationTest, ThereAreComputeUnitsAndWorkGroups) {
  for (const DeviceProperties& properties : enumerate()) {
    EXPECT_GE(properties.max_compute_units, 1u);
    EXPECT_GE(properties.max_work_group_size, 1u);
    EXPECT_GE(properties.max_work_item_dimensions, 1u);
    EXPECT_LE(properties.max_work_item_dimensions, 3u);
  }
}

TEST_P(EnumerationTest, AWorkGroupFitsIntoEachOfItsDimensions) {
  for (const DeviceProperties& properties : enumerate()) {
    for (std::uint32_t dimension = 0; dimension < properties.max_work_item_dimensions; ++dimension) {
      EXPECT_GE(properties.max_work_item_sizes[dimension], 1u) << dimension;
      EXPECT_LE(properties.max_work_item_sizes[dimension], properties.max_work_group_size) << dimension;
      EXPECT_GE(properties.max_group_count[dimension], 1u) << dimension;
    }
  }
}

TEST_P(EnumerationTest, AnAllocationIsNoLargerThanTheMemory) {
  for (const DeviceProperties& properties : enumerate()) {
    EXPECT_GT(properties.total_memory_bytes, 0u);
    EXPECT_GT(properties.max_allocation_bytes, 0u);
    EXPECT_LE(properties.max_allocation_bytes, properties.total_memory_bytes);
  }
}

TEST_P(EnumerationTest, AlignmentsAndLinesArePowersOfTwo) {
  for (const DeviceProperties& properties : enumerate()) {
    EXPECT_TRUE(std::has_single_bit(properties.memory_alignment_bytes)) << properties.memory_alignment_bytes;
    if (properties.cache_line_bytes != 0) {
      EXPECT_TRUE(std::has_single_bit(properties.cache_line_bytes)) << properties.cache_line_bytes;
    }
  }
}

TEST_P(EnumerationTest, SubGroupSizesAscendAndFitIntoAGroup) {
  for (const DeviceProperties& properties : enumerate()) {
    EXPECT_TRUE(std::is_sorted(properties.sub_group_sizes.begin(), properties.sub_group_sizes.end()));
    for (const std::uint32_t size : properties.sub_group_sizes) {
      EXPECT_GE(size, 1u);
      EXPECT_LE(size, properties.max_work_group_size);
    }
  }
}

TEST_P(EnumerationTest, ATimestampHasAResolution) {
  for (const DeviceProperties& properties : enumerate()) EXPECT_GE(properties.timer_resolution_ns, 1u);
}

TEST_P(EnumerationTest, AddressesHaveThirtyTwoOrSixtyFourBits) {
  for (const DeviceProperties& properties : enumerate()) {
    EXPECT_TRUE(properties.address_bits == 32 || properties.address_bits == 64) << properties.address_bits;
  }
}

TEST_P(EnumerationTest, AKernelMayHaveArguments) {
  for (const DeviceProperties& properties : enumerate()) EXPECT_GE(properties.max_parameter_bytes, 256u);
}

TEST_P(EnumerationTest, VectorWidthsOfFloatingTypesAgreeWithWhatTheDeviceHas) {
  constexpr std::size_t kDouble = 5;
  constexpr std::size_t kHalf = 6;
  for (const DeviceProperties& properties : enumerate()) {
    for (const auto& widths : {properties.native_vector_widths, properties.preferred_vector_widths}) {
      EXPECT_EQ(widths[kDouble] != 0, properties.has_fp64);
      EXPECT_EQ(widths[kHalf] != 0, properties.has_fp16);
    }
  }
}

}  // namespace
}  // namespace xpu::conformance
