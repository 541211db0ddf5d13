#include "interceptors/opencl/program_threads.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace xpu::interceptors::opencl {
namespace {

constexpr int kNoThreads = 11, kStillThreads = 12;

/// Ends the child as soon as it sees no thread of the program, or after a second.
void* report(void* name) {
  pthread_setname_np(pthread_self(), static_cast<const char*>(name));
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (program_has_no_threads()) _exit(kNoThreads);
    usleep(10'000);
  }
  _exit(kStillThreads);
}

/// The exit code of a child whose main thread ends while a thread of that name goes on.
int run_child(const char* name) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): handed through a void pointer and only read
    if (pthread_create(&thread, nullptr, report, const_cast<char*>(name)) != 0) _exit(1);
    syscall(SYS_exit, 0);  // of this thread alone; pthread_exit would unwind through the test's own catch blocks
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProgramThreadsTest, AProgramWithItsMainThreadHasThreads) { EXPECT_FALSE(program_has_no_threads()); }

TEST(ProgramThreadsTest, AProgramWhoseLastThreadEndedHasNone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own in every process";
#endif
  EXPECT_EQ(run_child("xpu-harvest"), kNoThreads);
}

TEST(ProgramThreadsTest, AThreadOfTheProgramCountsAfterTheMainThreadEnded) { EXPECT_EQ(run_child("worker"), kStillThreads); }

}  // namespace
}  // namespace xpu::interceptors::opencl
