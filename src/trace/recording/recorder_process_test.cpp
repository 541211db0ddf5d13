#include "trace/recording/recorder_process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "xpu/base/clock.hpp"

namespace xpu::trace {
namespace {

TEST(ProcessWatchTest, AZombieHasEnded) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) ::pause();
  }
  ProcessWatch watch(static_cast<std::uint64_t>(child), now_ns());
  EXPECT_FALSE(watch.has_ended());
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(watch.has_ended());
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(watch.has_ended());
  EXPECT_TRUE(ProcessWatch(static_cast<std::uint64_t>(child), now_ns()).has_ended());
}

TEST(ProcessWatchTest, AnotherProcessThatGotTheNumberLaterIsNotTheOneThatWasSeen) {
  EXPECT_FALSE(ProcessWatch(static_cast<std::uint64_t>(::getpid()), now_ns()).has_ended());
  EXPECT_TRUE(ProcessWatch(static_cast<std::uint64_t>(::getpid()), 1).has_ended()) << "this process was not there just after boot";
}

TEST(ProcessWatchTest, NumbersThatAreNoProcessHaveEnded) {
  EXPECT_TRUE(ProcessWatch(0, now_ns()).has_ended());
  EXPECT_TRUE(ProcessWatch(UINT64_MAX, now_ns()).has_ended());
}

}  // namespace
}  // namespace xpu::trace
