#include "tests/conformance/suite.hpp"

#include <fmt/format.h>

#include <array>

#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

constexpr std::array<const char*, kNeedCount> kNeedNames = {
    "concurrent_operations", "virtual_memory",       "host_memory_access", "timed_events", "timed_operations", "blocking_events",
    "native_queues",         "priorities",           "device_memory",      "host_memory",  "shared_memory",    "registered_modules",
    "function_modules",      "machine_code_modules", "source_cpp_modules", "host_clock",   "two_devices",      "peer_access",
    "pending_operations"};

std::map<std::string, std::unique_ptr<OpenDriver>>& shared_drivers() {
  static std::map<std::string, std::unique_ptr<OpenDriver>> drivers;
  return drivers;
}

bool has_format(const hal::Device& device, hal::ModuleFormat format) {
  return (device.capabilities().module_formats >> static_cast<unsigned>(format) & 1) != 0;
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const TestedDriver& driver) { return stream << driver.entry->name; }

std::vector<TestedDriver> tested_drivers() {
  std::vector<TestedDriver> drivers;
  for (const hal::DriverEntry& entry : hal::built_in_drivers()) drivers.push_back({&entry});
  return drivers;
}

const char* to_string(Need need) { return kNeedNames[static_cast<std::size_t>(need)]; }

hal::Device& OpenDriver::device(std::uint32_t ordinal) {
  std::unique_ptr<hal::Device>& device = devices_[ordinal];
  if (device == nullptr) device = driver_->open_device(ordinal).value();
  return *device;
}

std::uint32_t OpenDriver::device_count() { return static_cast<std::uint32_t>(driver_->enumerate().value().size()); }

void close_shared_drivers() { shared_drivers().clear(); }

std::map<std::string, Counts>& counts() {
  static std::map<std::string, Counts> counts;
  return counts;
}

bool offers(OpenDriver& driver, Need need) {
  if (need == Need::two_devices) return driver.device_count() >= 2;
  hal::Device& device = driver.device(0);
  const hal::Capabilities& capabilities = device.capabilities();
  switch (need) {
    case Need::concurrent_operations: return capabilities.concurrent_operations;
    case Need::virtual_memory: return capabilities.virtual_memory;
    case Need::host_memory_access: return capabilities.host_memory_access;
    case Need::timed_events: return capabilities.timed_events;
    case Need::timed_operations: return capabilities.timed_operations;
    case Need::blocking_events: return capabilities.blocking_events;
    case Need::native_queues: return capabilities.native_queues;
    case Need::priorities: return capabilities.priority_levels == 3;
    case Need::device_memory: return device.memory(hal::MemoryKind::device) != nullptr;
    case Need::host_memory: return device.memory(hal::MemoryKind::host) != nullptr;
    case Need::shared_memory: return device.memory(hal::MemoryKind::shared) != nullptr;
    case Need::registered_modules: return has_format(device, hal::ModuleFormat::registered);
    case Need::function_modules: return has_format(device, hal::ModuleFormat::functions);
    case Need::machine_code_modules: return has_format(device, hal::ModuleFormat::machine_code);
    case Need::source_cpp_modules: return has_format(device, hal::ModuleFormat::source_cpp);
    case Need::host_clock: return device.clock().same_as == device.clock().host_domain;
    case Need::two_devices: break;
    case Need::peer_access: return driver.device_count() >= 2 && device.can_access_peer(driver.device(1));
    case Need::pending_operations: return capabilities.concurrent_operations || leaves_operations_pending(device);
  }
  return false;
}

OpenDriver& ConformanceTest::shared() const {
  std::unique_ptr<OpenDriver>& driver = shared_drivers()[entry().name];
  if (driver == nullptr) driver = std::make_unique<OpenDriver>(entry());
  return *driver;
}

std::string ConformanceTest::test_name() const {
  const ::testing::TestInfo& info = *::testing::UnitTest::GetInstance()->current_test_info();
  const std::string suite = info.test_suite_name();
  const std::string test = info.name();
  return fmt::format("{}.{}", suite.substr(suite.find('/') + 1), test.substr(0, test.find('/')));
}

void ConformanceTest::SetUp() {
  if (expectations_of(entry().name).expected_failures.contains(test_name())) {
    problem_catcher_ = std::make_unique<::testing::ScopedFakeTestPartResultReporter>(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &expected_problems_);
  }
}

void ConformanceTest::TearDown() {
  if (problem_catcher_ == nullptr) return;
  problem_catcher_.reset();
  const std::string& reason = expectations_of(entry().name).expected_failures.at(test_name());
  int failed_count = 0;
  for (int index = 0; index < expected_problems_.size(); ++index) {
    if (expected_problems_.GetTestPartResult(index).failed()) ++failed_count;
  }
  if (failed_count == 0) {
    ADD_FAILURE() << "passed, but expectations/" << entry().name << ".txt says that it fails: " << reason;
    return;
  }
  ++counts()[entry().name].expected_failures;
  fmt::print("expected failure: {}\n", reason);
}

std::optional<std::string> ConformanceTest::refusal_of(Need need) {
  if (offers(shared(), need)) return std::nullopt;
  const Expectations& expectations = expectations_of(entry().name);
  const auto listed = expectations.unsupported.find(to_string(need));
  const std::string answer = fmt::format("{} answers that it has no {}", entry().name, to_string(need));
  if (listed != expectations.unsupported.end()) return fmt::format("{}: {}", answer, listed->second);
  if (expectations.is_listed) ADD_FAILURE() << answer << ", which expectations/" << entry().name << ".txt does not list as unsupported";
  return answer;
}

::testing::AssertionResult is_sentence(const Error& error) {
  if (error.message.empty()) return ::testing::AssertionFailure() << to_string(error.code) << " has no message";
  if (error.message.back() == '\n' || error.message.back() == ' ')
    return ::testing::AssertionFailure() << "'" << error.message << "' ends with white space";
  if (error.message.find(' ') == std::string::npos) return ::testing::AssertionFailure() << "'" << error.message << "' is no sentence";
  return ::testing::AssertionSuccess();
}

}  // namespace xpu::conformance
