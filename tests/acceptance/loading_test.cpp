#include <dirent.h>

#include <fstream>
#include <set>
#include <thread>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// A2: loading the library and asking what there is starts nothing.

namespace xpu::acceptance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  DIR* const opened = opendir(folder);
  if (opened == nullptr) return names;
  const std::string own = std::to_string(dirfd(opened));
  while (const dirent* entry = readdir(opened)) {
    if (entry->d_name[0] != '.' && entry->d_name != own) names.insert(entry->d_name);
  }
  closedir(opened);
  return names;
}

std::size_t thread_count() { return names_in("/proc/self/task").size(); }
std::set<std::string> open_files() { return names_in("/proc/self/fd"); }

std::string mapped_files() {
  std::ifstream maps("/proc/self/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

void expect_nothing_was_started() {
  EXPECT_FALSE(is_initialized());
  EXPECT_EQ(thread_count(), 1u);
  EXPECT_THAT(open_files(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(mapped_files(), Not(HasSubstr("libOpenCL")));
  EXPECT_THAT(mapped_files(), Not(HasSubstr("libze_loader")));
}

OWN_PROCESS_TEST(A2_LoadingTest, LoadingTheLibraryStartsNoThreadAndOpensNothing) {
  EXPECT_THAT(mapped_files(), HasSubstr("libxpu.so"));
  expect_nothing_was_started();
}

OWN_PROCESS_TEST(A2_LoadingTest, AskingForDevicesAndTheirPropertiesInitialisesNothing) {
  EXPECT_TRUE(is_available());
  EXPECT_THAT(Device::count(), Gives(kDevices));
  for (int index = 0; index < kDevices; ++index) {
    EXPECT_FALSE(Device::get(index).value().properties().name.empty());
    EXPECT_STRNE(Device::get(index).value().driver(), "");
  }
  EXPECT_EQ(describe_runtime().error, "");
  EXPECT_EQ(Device::current(), 0);
  EXPECT_FALSE(is_in_bad_fork());
  expect_nothing_was_started();
}

OWN_PROCESS_TEST(A2_LoadingTest, TheFirstUseOfADeviceInitialises) {
  EXPECT_FALSE(is_initialized());
  const Buffer buffer = zeros(1);
  EXPECT_TRUE(is_initialized());
  EXPECT_THAT(initialize(), Succeeds());
}

OWN_PROCESS_TEST(A2_LoadingTest, ManyThreadsMayBeTheFirst) {
  std::atomic<int> succeeded{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < 8; ++index) {
    threads.emplace_back([&] { succeeded += initialize() && Stream::current() && Stream::current().value().synchronize() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(succeeded, 8);
}

XPU_CHILD_MODE(say_what_is_available) {
  const auto count = Device::count();
  std::printf("%d|%s|%s\n", is_available() ? 1 : 0, count ? std::to_string(*count).c_str() : count.error().message.c_str(),
              initialize() ? "" : initialize().error().message.c_str());
  return is_initialized() ? 1 : 0;
}

TEST(A2_LoadingTest, IsAvailableIsFalseAndTheCountSaysWhyWhenTheDriverIsUnknown) {
  const Ended ended = run_mode("say_what_is_available", {{"XPU_DRIVER", "abacus"}});
  EXPECT_EQ(ended.exit_code, 0) << ended;
  EXPECT_THAT(ended.output, ::testing::StartsWith("0|XPU_DRIVER: ")) << ended;
  EXPECT_THAT(ended.output, HasSubstr("abacus"));
}

TEST(A2_LoadingTest, IsAvailableIsFalseAndTheCountSaysWhyWhenTheFilterIsInvalid) {
  const Ended ended = run_mode("say_what_is_available", {{"XPU_VISIBLE_DEVICES", "0,17"}});
  EXPECT_EQ(ended.exit_code, 0) << ended;
  EXPECT_THAT(ended.output, ::testing::StartsWith("0|XPU_VISIBLE_DEVICES: ")) << ended;
  EXPECT_THAT(ended.output, HasSubstr("17"));
}

TEST(A2_LoadingTest, AnEmptyFilterHidesEveryDeviceAndIsNoError) {
  const Ended ended = run_mode("say_what_is_available", {{"XPU_VISIBLE_DEVICES", ""}});
  EXPECT_EQ(ended.exit_code, 0) << ended;
  EXPECT_THAT(ended.output, ::testing::StartsWith("0|0|No XPU devices are available.")) << ended;
}

}  // namespace
}  // namespace xpu::acceptance
