#include "base/service_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace xpu::base {
namespace {

TEST(ServiceThreadTest, HasItsNameAndNoSignal) {
  std::string name(16, '\0');
  bool blocks_all = false;
  Result<std::thread> started = start_service_thread("xpu-test", [&] {
    pthread_getname_np(pthread_self(), name.data(), name.size());
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    blocks_all = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGUSR1) == 1;
  });
  ASSERT_TRUE(started);
  started->join();
  EXPECT_STREQ(name.c_str(), "xpu-test");
  EXPECT_TRUE(blocks_all);
  sigset_t here;
  pthread_sigmask(SIG_BLOCK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGTERM), 0) << "the caller's signals are as they were";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ServiceThreadTest, WhereThereIsNoThreadItSaysSo) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // No room for a stack, but for those of threads that are gone, which are used again.
    const rlimit none = {1, 1};
    setrlimit(RLIMIT_AS, &none);
    Result<std::thread> refused = start_service_thread("xpu-test", [] { pause(); });
    for (int attempt = 0; refused && attempt < 64; ++attempt) {
      refused->detach();
      refused = start_service_thread("xpu-test", [] { pause(); });
    }
    sigset_t here;
    pthread_sigmask(SIG_BLOCK, nullptr, &here);
    _exit(!refused && refused.error().code == ErrorCode::unavailable && sigismember(&here, SIGTERM) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace xpu::base
