#include "trace/live_options.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace xpu::trace {

Result<std::optional<OptionsBlock>> read_live_options(const std::string& live_path) {
  struct stat status{};
  if (lstat(live_path.c_str(), &status) != 0 && errno == ENOENT) return std::optional<OptionsBlock>{};

  const std::string path = live_path + "/options";
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) {
    const int number = errno;
    return Error{ErrorCode::unavailable, fmt::format("cannot open {}: {}", path, std::strerror(number)), number};
  }
  OptionsBlock options{};
  const bool ours = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
  const ssize_t bytes = ours ? read(file, &options, sizeof options) : 0;
  close(file);
  if (!ours) return Error{ErrorCode::invalid_argument, fmt::format("{} is not a regular file of this user", path)};
  // Any byte may stand there: the expression ends inside the block whatever it says.
  options.kernels[sizeof options.kernels - 1] = '\0';
  if (bytes != static_cast<ssize_t>(sizeof options) || options.magic != kOptionsMagic || options.format != kSegmentFormat) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} is not of format {}; was it made by another version?", path, kSegmentFormat)};
  }
  return std::optional<OptionsBlock>{options};
}

bool is_recorder_alive(const OptionsBlock& options) noexcept {
  const auto pid = static_cast<pid_t>(options.recorder_pid);
  return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

}  // namespace xpu::trace
