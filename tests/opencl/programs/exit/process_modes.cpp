#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "programs/exit/exit.hpp"

namespace xpu::opencl_programs::exits {
namespace {

/// Waits for a child; 0 if it ended with `expected`.
int wait_for_child(pid_t child, int expected) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == expected) return 0;
  std::fprintf(stderr, "xpu_test_exit: the child ended with status %d\n", status);
  return 1;
}

/// Replaces the process by this program in mode `return`.
[[noreturn]] void execute_again(const Options& options) {
  const std::string count = std::to_string(options.count);
  const std::string rounds = std::to_string(options.rounds);
  execl("/proc/self/exe", "xpu_test_exit", "return", count.c_str(), rounds.c_str(), static_cast<char*>(nullptr));
  _exit(126);
}

WorkInFlight& start(const Options& options) { return *new WorkInFlight("process", options.count, options.rounds); }

/// The parent goes on launching after the fork, so that both have work at the same time.
int finish_parent(WorkInFlight& work, const Options& options, pid_t child, int expected) {
  work.launch_and_print("parent", options.count);
  XPU_CL(clFinish(work.queue()));
  return wait_for_child(child, expected);
}

int child_exits(const Options& options) {
  WorkInFlight& work = start(options);
  const pid_t child = fork();
  if (child == 0) std::exit(5);
  return finish_parent(work, options, child, 5);
}

int child_exits_at_once(const Options& options) {
  WorkInFlight& work = start(options);
  const pid_t child = fork();
  if (child == 0) _exit(5);
  return finish_parent(work, options, child, 5);
}

/// The child works on with the parent's objects. Few drivers allow it; the null driver does.
int child_uses_opencl(const Options& options) {
  WorkInFlight& work = start(options);
  const pid_t child = fork();
  if (child == 0) {
    work.launch_and_print("child", options.count);
    XPU_CL(clFinish(work.queue()));
    std::exit(5);
  }
  return finish_parent(work, options, child, 5);
}

/// The child begins with OpenCL; the parent never used it.
int fork_before_use(const Options& options) {
  const pid_t child = fork();
  if (child == 0) {
    start(options);
    std::exit(5);
  }
  return wait_for_child(child, 5);
}

int fork_and_execute(const Options& options) {
  WorkInFlight& work = start(options);
  const pid_t child = fork();
  if (child == 0) execute_again(options);
  return finish_parent(work, options, child, 0);
}

int vfork_and_execute(const Options& options) {
  WorkInFlight& work = start(options);
  const std::string count = std::to_string(options.count);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/proc/self/exe", "xpu_test_exit", "return", count.c_str(), static_cast<char*>(nullptr));
    _exit(126);
  }
  return finish_parent(work, options, child, 0);
}

int execute_with_work(const Options& options) {
  start(options);
  execute_again(options);
}

/// The parent ends while the child goes on.
int parent_ends_first(const Options& options) {
  WorkInFlight& work = start(options);
  int gate[2];
  if (pipe(gate) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    close(gate[1]);
    char byte = 0;
    while (read(gate[0], &byte, 1) > 0) {
    }  // the end of the pipe is the end of the parent
    work.launch_and_print("child", options.count);
    XPU_CL(clFinish(work.queue()));
    std::exit(0);
  }
  close(gate[0]);
  return 0;
}

}  // namespace

const Mode kProcessModes[] = {
    {"fork_child_exits", "fork with work in flight, the child calls exit(5)", child_exits},
    {"fork_child_exits_now", "fork with work in flight, the child calls _exit(5)", child_exits_at_once},
    {"fork_child_uses", "fork with work in flight, the child goes on with the same queue (null driver)", child_uses_opencl},
    {"fork_before_use", "fork first, only the child uses OpenCL", fork_before_use},
    {"fork_exec", "fork with work in flight, the child executes this program again", fork_and_execute},
    {"vfork_exec", "the same with vfork", vfork_and_execute},
    {"exec", "the process with work in flight executes this program again", execute_with_work},
    {"parent_ends_first", "fork, the parent returns, then the child goes on (null driver)", parent_ends_first},
    {nullptr, nullptr, nullptr},
};

}  // namespace xpu::opencl_programs::exits
