#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

/// Tests about whole processes: the program runs itself again, with a mode or with one test.
namespace xpu::acceptance {

/// How a child process ended.
struct Ended {
  int exit_code = -1;  ///< -1 when a signal ended it.
  int signal = 0;
  bool was_killed_at_limit = false;  ///< It, or something that it started, was still there.
  double seconds = 0;
  std::string output, complaints;  ///< Standard output and standard error.
};
std::ostream& operator<<(std::ostream& stream, const Ended& ended);

using Variables = std::vector<std::pair<std::string, std::string>>;

inline constexpr int kChildLimitSeconds = 60;

/// Runs this program again in the mode of this name, with these variables on top of the environment of this process. The child leads a
/// process group of its own, which is killed at the limit.
Ended run_mode(std::string_view mode, const Variables& environment = {}, int limit_s = kChildLimitSeconds);

/// A mode: what the program does instead of running tests. Its result is the exit code.
class Mode {
 public:
  Mode(const char* name, int (*run)());
};
#define XPU_CHILD_MODE(name)                                     \
  static int name();                                             \
  static const ::xpu::acceptance::Mode mode_##name{#name, name}; \
  static int name()

/// Runs `body` in a forked child of this process, which ends by `exit` with its result; returns how that ended.
template <typename Body>
Ended in_forked_child(Body&& body);

/// Whether this process was started for one test by OWN_PROCESS_TEST.
bool is_own_process();
/// Runs the test in a process of its own and makes its outcome that of the running test.
void run_in_own_process(const char* full_name);

/// A test in a process of its own: nothing is initialised when it begins, and what it leaves behind disturbs no other test.
#define OWN_PROCESS_TEST(suite, name)                                 \
  static void suite##_##name();                                       \
  TEST(suite, name) {                                                 \
    if (::xpu::acceptance::is_own_process()) return suite##_##name(); \
    ::xpu::acceptance::run_in_own_process(#suite "." #name);          \
  }                                                                   \
  static void suite##_##name()

/// What the program's main function does with its arguments.
int run_program(int argument_count, char** arguments);

/// Waits for a child that was forked by `fork_child`; kills it at the limit.
Ended wait_for_child(int process_id, int limit_s = kChildLimitSeconds);
/// Flushes what is buffered and forks: 0 in the child, which is ended after a limit.
int fork_child();

template <typename Body>
Ended in_forked_child(Body&& body) {
  const int process_id = fork_child();
  if (process_id == 0) std::exit(body());
  return wait_for_child(process_id);
}

}  // namespace xpu::acceptance
