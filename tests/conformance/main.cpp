#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/suite.hpp"
#include "tests/conformance/watchdog.hpp"

namespace xpu::conformance {
namespace {

constexpr int kExitAbsent = 77;

/// Why the driver cannot be tested here; empty when it can.
std::string absence_of(const hal::DriverEntry& entry) {
  const Result<std::vector<DeviceProperties>> devices = entry.create()->enumerate();
  if (!devices) return to_string(devices.error());
  return devices->empty() ? "it has no device" : "";
}

bool is_listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t end = list.find(',');
    if (list.substr(0, end) == name) return true;
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return false;
}

class Counter final : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& info) override {
    if (info.value_param() == nullptr) return;  // a test of this program, not of a driver
    const std::string name = info.name();
    Counts& count = counts()[name.substr(name.find('/') + 1)];
    ++count.run;
    if (info.result()->Failed()) {
      ++count.failed;
    } else if (info.result()->Skipped()) {
      ++count.unsupported;
    }
  }
};

void print_counts() {
  for (auto& [driver, count] : counts()) {
    count.passed = count.run - count.failed - count.unsupported - count.expected_failures;
    fmt::print("{}: {} run, {} passed, {} unsupported, {} expected failures", driver, count.run, count.passed, count.unsupported,
               count.expected_failures);
    fmt::print("{}\n", count.failed == 0 ? "" : fmt::format(", {} failed", count.failed));
  }
}

/// The drivers whose tests the filter selects; all of them when it names none.
std::vector<const hal::DriverEntry*> selected_drivers() {
  std::vector<const hal::DriverEntry*> all;
  std::vector<const hal::DriverEntry*> named;
  for (const hal::DriverEntry& entry : hal::built_in_drivers()) {
    all.push_back(&entry);
    if (GTEST_FLAG_GET(filter).find(fmt::format("/{}", entry.name)) != std::string::npos) named.push_back(&entry);
  }
  return named.empty() ? all : named;
}

/// Takes the tests of absent drivers out. The exit code where there is nothing to run, else 0.
int leave_out_absent_drivers() {
  const char* const required_list = std::getenv("XPU_REQUIRE_DRIVERS");
  const std::string required = required_list != nullptr ? required_list : "";
  const std::vector<const hal::DriverEntry*> selected = selected_drivers();
  std::string absent_tests;
  std::size_t absent_count = 0;
  for (const hal::DriverEntry* entry : selected) {
    const std::string absence = absence_of(*entry);
    if (absence.empty()) continue;
    fmt::print(stderr, "{} is absent: {}\n", entry->name, absence);
    if (is_listed(required, entry->name)) return 1;
    absent_tests += fmt::format("{}*/{}", absent_tests.empty() ? "" : ":", entry->name);
    ++absent_count;
  }
  if (absent_count == selected.size()) return kExitAbsent;
  if (absent_count != 0) {
    const std::string& filter = GTEST_FLAG_GET(filter);
    GTEST_FLAG_SET(filter, filter + (filter.find('-') == std::string::npos ? "-" : ":") + absent_tests);
  }
  return 0;
}

int run(int argument_count, char** arguments) {
  const bool is_death_test_process = std::any_of(arguments, arguments + argument_count, [](std::string_view argument) {
    return argument.find("internal_run_death_test") != std::string_view::npos;
  });
  for (const hal::DriverEntry& entry : hal::built_in_drivers()) {
    for (const auto& [name, value] : expectations_of(entry.name).environment) setenv(name.c_str(), value.c_str(), 0);
  }
  ::testing::InitGoogleTest(&argument_count, arguments);
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process: the devices that are open here have threads
  if (!::testing::GTEST_FLAG(list_tests)) {
    const int exit_code = leave_out_absent_drivers();
    if (exit_code != 0) return exit_code;
    start_watchdog(is_death_test_process);
    ::testing::UnitTest::GetInstance()->listeners().Append(new Counter);
  }
  const int exit_code = RUN_ALL_TESTS();
  close_shared_drivers();
  print_counts();
  return exit_code;
}

}  // namespace
}  // namespace xpu::conformance

#if defined(__SANITIZE_THREAD__)
// The dynamic linker's own lock is not instrumented: what one thread allocates in dlopen and another frees in dlclose looks like a race.
extern "C" XPU_EXPORT const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:_dl_close_worker\n";
}
#endif

int main(int argument_count, char** arguments) { return xpu::conformance::run(argument_count, arguments); }
