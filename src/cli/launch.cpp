#include "cli/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace xpu::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// An ELF file, or a zero byte near the front.
bool has_binary_beginning(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return true;
  char begin[128];
  const ssize_t got = read(descriptor, begin, sizeof begin);
  close(descriptor);
  const std::string_view text(begin, got < 0 ? 0 : static_cast<std::size_t>(got));
  return text.starts_with(
             "\x7f"
             "ELF") ||
         text.find('\0') != std::string_view::npos;
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

FoundProgram find_program(const std::string& name, const char* search_path) {
  const auto error_of = [](const std::string& path) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) return errno == EACCES ? EACCES : ENOENT;
    return S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0 ? 0 : EACCES;
  };
  if (name.find('/') != std::string::npos) return {name, error_of(name)};
  FoundProgram result{name, ENOENT};
  std::string_view rest = search_path == nullptr ? "/bin:/usr/bin" : search_path;
  for (;;) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    const int error = error_of(path);
    if (error == 0) return {path, 0};
    if (error == EACCES) result = {path, EACCES};
    if (folder.size() == rest.size()) return result;
    rest.remove_prefix(folder.size() + 1);
  }
}

Result<Launched> launch(const std::string& path, const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                        const InheritedSignals& inherited) {
  const std::vector<char*> arguments = pointers(argv);
  const std::vector<char*> variables = pointers(environment);
  std::vector<std::string> shell_argv{"/bin/sh", path};
  shell_argv.insert(shell_argv.end(), argv.begin() + 1, argv.end());
  const std::vector<char*> shell_arguments = pointers(shell_argv);
  const bool is_text = !has_binary_beginning(path);
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
    execve(path.c_str(), arguments.data(), variables.data());
    if (errno == ENOEXEC && is_text) execve(shell_arguments[0], shell_arguments.data(), variables.data());
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
