#include "base/process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace xpu::base {
namespace {

TEST(ProcessTest, AnOrdinaryProcessHasNoRaisedPrivileges) { EXPECT_FALSE(has_raised_privileges()); }

TEST(ProcessTest, IsNotExitingBeforeExit) {
  watch_process_exit();
  EXPECT_FALSE(process_is_exiting());
}

// In a child, because only exit() tells. Registered later means run earlier.
TEST(ProcessDeathTest, IsExitingOnceTheHandlerRanAndNotForHandlersRegisteredLater) {
  EXPECT_EXIT(
      {
        std::atexit([] { _exit(process_is_exiting() ? 10 : 11); });  // runs after ours
        watch_process_exit();
        watch_process_exit();
        std::atexit([] {
          if (process_is_exiting()) _exit(12);  // runs before ours
        });
        std::exit(0);
      },
      testing::ExitedWithCode(10), "");
}

}  // namespace
}  // namespace xpu::base
