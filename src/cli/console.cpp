#include "cli/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/text.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::cli {
namespace {

/// 0, or the errno of the write that failed.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void say_text(std::string_view line) { static_cast<void>(write_all(STDERR_FILENO, fmt::format("xpu: {}\n", printable(line)))); }

Result<> print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return {};
  return Error{ErrorCode::unavailable, fmt::format("cannot write to standard output: {}", std::strerror(error)), error};
}

int terminal_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1), next_ns_(now_ns() + 500'000'000) {}

void Progress::clear() {
  if (shown_) static_cast<void>(write_all(STDERR_FILENO, "\r\x1b[K"));
  shown_ = false;
}

void Progress::show(std::string_view text) {
  if (!terminal_) return;
  const std::uint64_t now = now_ns();
  if (now < next_ns_) return;
  next_ns_ = now + 100'000'000;
  shown_ = true;
  static_cast<void>(write_all(STDERR_FILENO, fmt::format("\r\x1b[Kxpu: {}", printable(text))));
}

}  // namespace xpu::cli
