#include <string>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// X1: a process ends, with its exit code and in time, whatever it holds and does.

namespace xpu::acceptance {
namespace {

constexpr int kExpectedCode = 7;
/// What runs at exit may go on for a second; the rest is for a machine that is busy.
constexpr int kExitLimitSeconds = 20;

void expect_ends(const char* mode, int limit_s) {
  const Ended ended = run_mode(mode, {}, limit_s);
  EXPECT_FALSE(ended.was_killed_at_limit) << ended;
  EXPECT_EQ(ended.exit_code, kExpectedCode) << ended;
  EXPECT_EQ(ended.output + ended.complaints, "") << ended;
}

class X1_ExitTest : public ::testing::TestWithParam<const char*> {};

TEST_P(X1_ExitTest, TheProcessEndsInTimeWithItsExitCodeAndSaysNothing) { expect_ends(GetParam(), kExitLimitSeconds); }

TEST(X1_CompiledKernelTest, TheProcessEndsThoughAKernelOfItsSourceTextNeverDoes) {
  expect_ends("compile_a_kernel_that_never_ends", kChildLimitSeconds);
  expect_ends("exit_with_a_compiled_kernel_that_never_ends", kExitLimitSeconds);
}

TEST(X1_BufferTest, TheProcessEndsThoughAKernelStillUsesWhatItsEndFrees) {
  // Elsewhere the kernel runs when somebody asks whether it has ended.
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  expect_ends("exit_with_buffers_of_after_and_a_kernel_that_never_ends", kExitLimitSeconds);
}

INSTANTIATE_TEST_SUITE_P(Modes, X1_ExitTest,
                         ::testing::Values("exit_after_initialising", "exit_with_statics_of_before",
                                           "exit_with_statics_of_before_and_work_in_flight", "exit_with_statics_of_after",
                                           "exit_with_statics_of_after_and_work_in_flight", "exit_with_thread_locals_and_work_in_flight",
                                           "exit_with_a_kernel_that_never_ends", "exit_with_a_function_that_never_ends",
                                           "exit_with_a_kernel_that_never_ends_and_much_behind_it", "quick_exit_with_work_in_flight",
                                           "quick_exit_with_a_kernel_that_never_ends", "immediate_exit_with_work_in_flight",
                                           "exit_in_a_function", "exit_in_a_short_function", "exit_while_threads_submit",
                                           "exit_while_a_thread_waits", "use_the_runtime_after_its_end", "exit_with_callbacks"),
                         [](const ::testing::TestParamInfo<const char*>& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace xpu::acceptance
