#include "drivers/host/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "drivers/host/driver.hpp"

namespace xpu::drivers::host {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::map<std::string, std::string> g_variables;

Result<Options> read(std::map<std::string, std::string> variables) {
  g_variables = std::move(variables);
  return read_options([](const char* name) -> const char* {
    const auto found = g_variables.find(name);
    return found == g_variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(HostOptionsTest, NothingSetAndEmptyAreTheDefaults) {
  for (const auto& variables : {std::map<std::string, std::string>{}, {{"XPU_HOST_DEVICES", ""}, {"XPU_HOST_EXECUTOR", ""}}}) {
    const Options options = read(variables).value();
    EXPECT_EQ(options.devices, 1u);
    EXPECT_EQ(options.executor, Executor::adaptive);
    EXPECT_EQ(options.memory_bytes, 0u);
    EXPECT_EQ(options.threads, 0u);
  }
}

TEST(HostOptionsTest, EveryVariableIsUnderstood) {
  const Options options =
      read({{"XPU_HOST_DEVICES", "64"}, {"XPU_HOST_EXECUTOR", "inline"}, {"XPU_HOST_MEMORY", "3M"}, {"XPU_HOST_THREADS", "7"}}).value();
  EXPECT_EQ(options.devices, 64u);
  EXPECT_EQ(options.executor, Executor::caller);
  EXPECT_EQ(options.memory_bytes, std::uint64_t{3} << 20);
  EXPECT_EQ(options.threads, 7u);
  EXPECT_EQ(read({{"XPU_HOST_EXECUTOR", "pool"}}).value().executor, Executor::pool);
  EXPECT_EQ(read({{"XPU_HOST_EXECUTOR", "adaptive"}}).value().executor, Executor::adaptive);
  EXPECT_EQ(read({{"XPU_HOST_MEMORY", "1048577"}}).value().memory_bytes, 1048577u);
  EXPECT_EQ(read({{"XPU_HOST_MEMORY", "2048K"}}).value().memory_bytes, std::uint64_t{2} << 20);
  EXPECT_EQ(read({{"XPU_HOST_MEMORY", "2g"}}).value().memory_bytes, std::uint64_t{2} << 30);
}

TEST(HostOptionsTest, ABadValueIsAnErrorThatNamesVariableValueAndWhatIsAllowed) {
  struct Case {
    const char* variable;
    const char* value;
    const char* allowed;
  };
  for (const Case& bad : {Case{"XPU_HOST_DEVICES", "0", "from 1 to 64"}, Case{"XPU_HOST_DEVICES", "65", "from 1 to 64"},
                          Case{"XPU_HOST_DEVICES", "two", "from 1 to 64"}, Case{"XPU_HOST_DEVICES", "1x", "from 1 to 64"},
                          Case{"XPU_HOST_EXECUTOR", "Pool", "adaptive, pool or inline"}, Case{"XPU_HOST_MEMORY", "1T", "K, M or G"},
                          Case{"XPU_HOST_MEMORY", "12", "at least 1M"}, Case{"XPU_HOST_MEMORY", "-1M", "K, M or G"},
                          Case{"XPU_HOST_MEMORY", "99999999999G", "K, M or G"}, Case{"XPU_HOST_MEMORY", "M", "K, M or G"},
                          Case{"XPU_HOST_THREADS", "0", "from 1 to 1024"}}) {
    const Result<Options> options = read({{bad.variable, bad.value}});
    ASSERT_FALSE(options) << bad.variable << "=" << bad.value;
    EXPECT_EQ(options.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(options.error().message, AllOf(HasSubstr(std::string(bad.variable) + "=" + bad.value), HasSubstr(bad.allowed)));
  }
}

TEST(HostOptionsTest, DefaultsOfTheMachineAreFilledIn) {
  Options options;
  options.devices = 3;
  const Options filled = with_defaults(options);
  EXPECT_GE(filled.processors, 1u);
  EXPECT_GE(filled.threads, 4u);
  EXPECT_GE(filled.threads, filled.processors);
  EXPECT_GE(filled.memory_bytes, std::uint64_t{1} << 20);

  options.threads = 1;
  options.memory_bytes = 4096;
  EXPECT_EQ(with_defaults(options).threads, 1u);
  EXPECT_EQ(with_defaults(options).memory_bytes, 4096u);
}

TEST(HostOptionsTest, ADriverReportsABadEnvironmentWhenItIsAsked) {
  setenv("XPU_HOST_DEVICES", "many", 1);
  const std::unique_ptr<hal::Driver> driver = create_driver();
  unsetenv("XPU_HOST_DEVICES");
  const auto devices = driver->enumerate();
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("XPU_HOST_DEVICES=many"));
  EXPECT_FALSE(driver->open_device(0));
  driver->prepare_for_exit(0);
}

}  // namespace
}  // namespace xpu::drivers::host
