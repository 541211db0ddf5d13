#include "hal/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

namespace xpu::hal {
namespace {

using Clock = std::chrono::steady_clock;

// A compiler that complains without end must not fill the memory; the end of such an output repeats what its begin says.
constexpr std::size_t kMostOutputBytes = std::size_t{1} << 20;

class CommandPipe {
 public:
  CommandPipe() noexcept : open_(pipe2(ends_, O_CLOEXEC) == 0) {}
  ~CommandPipe() {
    if (open_) ::close(ends_[0]);
    close_write_end();
  }
  CommandPipe(const CommandPipe&) = delete;
  CommandPipe& operator=(const CommandPipe&) = delete;

  bool is_open() const noexcept { return open_; }
  int read_end() const noexcept { return ends_[0]; }
  int write_end() const noexcept { return ends_[1]; }
  void close_write_end() noexcept {
    if (open_ && ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
  const bool open_;
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Error cannot_start(const Command& command, int native_code) {
  return Error{ErrorCode::unavailable, fmt::format("cannot start '{}': {}", command.arguments.front(), std::strerror(native_code)),
               native_code};
}

/// The process's id.
Result<pid_t> spawn(const Command& command, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  // What the program blocks or ignores is its own affair: a compiler expects neither.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  pid_t process = 0;
  const int code = posix_spawn(&process, command.arguments.front().c_str(), &actions, &attributes, pointers_to(command.arguments).data(),
                               pointers_to(command.environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return cannot_start(command, code);
  return process;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

/// Until everybody who could write has closed the other end; false when that took too long.
bool read_all(int pipe, Clock::time_point deadline, std::string& text) {
  char buffer[4096];
  std::size_t dropped_bytes = 0;
  while (true) {
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t bytes = read(pipe, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    const std::size_t kept = std::min(static_cast<std::size_t>(bytes), kMostOutputBytes - text.size());
    text.append(buffer, kept);
    dropped_bytes += static_cast<std::size_t>(bytes) - kept;
  }
  if (dropped_bytes != 0) text += fmt::format("\n({} more bytes)\n", dropped_bytes);
  return true;
}

enum class Ending { well, badly, too_late };

/// The output is closed, so this is all but over: there is nothing to wait for that could be waited for with a limit.
Ending wait_for_end(pid_t process, Clock::time_point deadline) {
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(process, &status, WNOHANG);
    if (ended == process) return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Ending::well : Ending::badly;
    if (ended < 0 && errno == ECHILD) return Ending::well;  // SIGCHLD is ignored, or somebody else waited: what it wrote must tell
    if (Clock::now() >= deadline) return Ending::too_late;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Result<CommandResult> run_command(const Command& command, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  CommandPipe pipe;
  if (!pipe.is_open()) return cannot_start(command, errno);
  XPU_TRY_ASSIGN(const pid_t process, spawn(command, pipe.write_end()));
  pipe.close_write_end();
  CommandResult result;
  const Ending ending = read_all(pipe.read_end(), deadline, result.output) ? wait_for_end(process, deadline) : Ending::too_late;
  if (ending == Ending::too_late) {
    kill(-process, SIGKILL);
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
    return Error{ErrorCode::timeout, fmt::format("'{}' did not end within {} ms and was killed", command.arguments.front(), limit.count())};
  }
  result.ended_well = ending == Ending::well;
  return result;
}

std::string find_program(const std::string& name, const std::string& path) {
  const auto is_executable = [](const std::string& file) {
    struct stat status{};
    return access(file.c_str(), X_OK) == 0 && stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  };
  if (name.find('/') != std::string::npos) return is_executable(name) ? name : std::string();
  std::string_view folders = path;
  while (!name.empty() && !folders.empty()) {
    const std::size_t colon = std::min(folders.find(':'), folders.size());
    const std::string file = fmt::format("{}/{}", folders.substr(0, colon), name);
    if (file.front() == '/' && colon != 0 && is_executable(file)) return file;
    folders.remove_prefix(std::min(colon + 1, folders.size()));
  }
  return {};
}

}  // namespace xpu::hal
