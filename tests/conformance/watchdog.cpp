#include "tests/conformance/watchdog.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace xpu::conformance {
namespace {

class Watchdog final : public ::testing::EmptyTestEventListener {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void OnTestStart(const ::testing::TestInfo& info) override { begin(std::string(info.test_suite_name()) + "." + info.name()); }
  void OnTestEnd(const ::testing::TestInfo&) override { begin(""); }

 private:
  void begin(const std::string& test) {
    const std::lock_guard lock(mutex_);
    test_ = test;
    ++sequence_;
    changed_.notify_all();
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      const std::uint64_t watched = sequence_;
      const bool is_over_in_time =
          changed_.wait_for(lock, std::chrono::seconds(kTestLimitSeconds), [&] { return is_over_ || sequence_ != watched; });
      if (is_over_in_time || test_.empty()) continue;
      fmt::print(stderr, "\n{} hangs: it takes longer than {} s\n", test_, kTestLimitSeconds);
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_;            // empty between tests
  std::uint64_t sequence_ = 0;  // raised with each change of test_
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace

void start_watchdog(bool is_death_test_process) {
  if (is_death_test_process) {
    alarm(kTestLimitSeconds);
  } else {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
  }
}

}  // namespace xpu::conformance
