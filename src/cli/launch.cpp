#include "cli/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace xpu::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

InheritedSignals InheritedSignals::take_over() {
  InheritedSignals inherited;
  sigset_t all;
  sigfillset(&all);
  // Blocked, these would hide a crash of ours or, for an endless loop of them, hang.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, fault);
  sigprocmask(SIG_SETMASK, &all, &inherited.mask_);
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &inherited.child_action_);
  return inherited;
}

void InheritedSignals::restore() const {
  sigaction(SIGCHLD, &child_action_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

Result<Launched> launch(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                        const InheritedSignals& inherited) {
  const std::vector<char*> arguments = pointers(argv);
  const std::vector<char*> variables = pointers(environment);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0)
    return Error{ErrorCode::unavailable, fmt::format("cannot make a pipe: {}", std::strerror(errno)), errno};

  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(report[0]);
    close(report[1]);
    return Error{ErrorCode::unavailable, fmt::format("cannot start a process: {}", std::strerror(error)), error};
  }
  if (pid == 0) {
    inherited.restore();
    execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    static_cast<void>(!write(report[1], &error, sizeof error));
    _exit(127);
  }

  close(report[1]);
  Launched launched{pid, 0};
  ssize_t got = 0;
  do {
    got = read(report[0], &launched.exec_errno, sizeof launched.exec_errno);
  } while (got < 0 && errno == EINTR);
  close(report[0]);
  if (got != static_cast<ssize_t>(sizeof launched.exec_errno)) {
    launched.exec_errno = 0;
  } else {
    waitpid(pid, nullptr, 0);
  }
  return launched;
}

int die_by_signal(int signal) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // A core handler that is a pipe does not ask for the limit.
  prctl(PR_SET_DUMPABLE, 0);
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  return 128 + signal;
}

}  // namespace xpu::cli
