#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/expectations.hpp"
#include "xpu/hal/driver.hpp"

/// The frame of the suite: which drivers are tested, what a test may ask for, and when it is skipped.
///
/// Helpers throw BadResult (`Result::value()`) where the driver refuses: GoogleTest reports that as the failure of the test, with the
/// error's sentence.
namespace xpu::conformance {

/// The parameter of every test. Named after the driver, so that `--gtest_filter=*/host` selects one driver's tests.
struct TestedDriver {
  const hal::DriverEntry* entry;
};
std::ostream& operator<<(std::ostream& stream, const TestedDriver& driver);

/// Every built-in driver.
std::vector<TestedDriver> tested_drivers();

/// What a test may need of a driver. All but the last three are answered by `Capabilities` or by a null where an object could be.
enum class Need : std::uint8_t {
  concurrent_operations,
  virtual_memory,
  host_memory_access,
  timed_events,
  timed_operations,
  blocking_events,
  native_queues,
  priorities,
  device_memory,
  host_memory,
  shared_memory,
  registered_modules,
  function_modules,
  machine_code_modules,
  source_cpp_modules,
  host_clock,  ///< The device's clock is the host's clock of the readings.
  two_devices,
  peer_access,        ///< Device 0 reaches the memory of device 1.
  pending_operations  ///< Something is still pending when a submission has returned: see `Hold`.
};
inline constexpr int kNeedCount = static_cast<int>(Need::pending_operations) + 1;
const char* to_string(Need need);

/// A driver and those of its devices that were opened.
class OpenDriver {
 public:
  explicit OpenDriver(const hal::DriverEntry& entry) : driver_(entry.create()) {}
  hal::Driver& driver() { return *driver_; }
  /// Opened at the first call.
  hal::Device& device(std::uint32_t ordinal);
  std::uint32_t device_count();
  const std::map<std::uint32_t, std::unique_ptr<hal::Device>>& opened() const { return devices_; }

 private:
  std::unique_ptr<hal::Driver> driver_;
  std::map<std::uint32_t, std::unique_ptr<hal::Device>> devices_;
};

/// Closes what the tests shared; the last call of the program.
void close_shared_drivers();

/// What the tests had to say, for the counts at the end.
struct Counts {
  int run = 0, passed = 0, failed = 0, unsupported = 0, expected_failures = 0;
};
std::map<std::string, Counts>& counts();

/// Base of all suites. A test that only needs the driver's table entry starts no thread and opens no device.
class ConformanceTest : public ::testing::TestWithParam<TestedDriver> {
 protected:
  void SetUp() override;
  void TearDown() override;

  const hal::DriverEntry& entry() const { return *GetParam().entry; }
  /// A new instance, beside the shared one.
  std::unique_ptr<hal::Driver> new_driver() const { return entry().create(); }
  /// One instance for all tests of the program.
  OpenDriver& shared() const;
  hal::Device& device(std::uint32_t ordinal = 0) const { return shared().device(ordinal); }

  /// Why the test cannot run, with the driver's own answer; nothing when it can. A need that the driver lacks and its expectations do not
  /// list fails the test, where there are expectations.
  std::optional<std::string> refusal_of(Need need);

 private:
  std::string test_name() const;

  ::testing::TestPartResultArray expected_problems_;
  std::unique_ptr<::testing::ScopedFakeTestPartResultReporter> problem_catcher_;
};

/// Whether the driver's own answer is that it offers this.
bool offers(OpenDriver& driver, Need need);

/// `EXPECT_TRUE(is_ok(queue->record(*event)));` says the error's sentence when it is none.
template <typename T>
::testing::AssertionResult is_ok(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}
/// `EXPECT_TRUE(fails_with(ErrorCode::unsupported, memory->reserve(bytes)));` The message must be a sentence too.
::testing::AssertionResult is_sentence(const Error& error);
template <typename T>
::testing::AssertionResult fails_with(ErrorCode code, const Result<T>& result) {
  if (result) return ::testing::AssertionFailure() << "succeeded where " << to_string(code) << " is right";
  if (result.error().code != code)
    return ::testing::AssertionFailure() << "not " << to_string(code) << " but " << to_string(result.error());
  return is_sentence(result.error());
}

}  // namespace xpu::conformance

/// Runs the suite's tests on every driver.
#define XPU_CONFORMANCE_SUITE(Suite_) \
  INSTANTIATE_TEST_SUITE_P(Suite, Suite_, ::testing::ValuesIn(::xpu::conformance::tested_drivers()), ::testing::PrintToStringParamName())

/// Skips the test where the driver does not offer this: `XPU_NEEDS(virtual_memory);`
#define XPU_NEEDS(need) \
  if (const auto xpu_refusal = this->refusal_of(::xpu::conformance::Need::need)) GTEST_SKIP() << *xpu_refusal
