#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

/// Runs a program of the build tree as a test's child.
namespace xpu::opencl_support {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Child {
  pid_t pid = -1;
  int output = -1;  // reads the child's standard output

  /// All further output up to the end of the last process that holds it.
  std::string rest_of_output() {
    std::string text;
    char bytes[4096];
    for (ssize_t got = 0; (got = read(output, bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(got));
    return text;
  }
  /// The exit code, or 128 + the signal, as a shell would say it.
  int wait() {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return -1;
    close(output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

/// Starts `arguments[0]` with the test's own environment and `variables` on top. The process id is -1 when it could not be started.
inline Child start_program(std::vector<std::string> arguments, const Variables& variables) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced = replaced || text.compare(0, name.size() + 1, name + "=") == 0;
    if (!replaced) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  Child child;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return child;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  if (posix_spawn(&child.pid, arguments[0].c_str(), &actions, nullptr, pointers(arguments).data(), pointers(environment).data()) != 0) {
    child.pid = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  child.output = pipe_ends[0];
  return child;
}

}  // namespace xpu::opencl_support
