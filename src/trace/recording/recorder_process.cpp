#include "trace/recording/recorder_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace xpu::trace {
namespace {

// What /proc says about a process.
struct ProcessState {
  char state = '?';
  std::uint64_t start_ticks = 0;  // after boot
};

std::optional<ProcessState> read_state(pid_t pid) {
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t bytes = file ? ::read(file.get(), text, sizeof text) : -1;
  if (bytes <= 0) return std::nullopt;
  std::string_view rest(text, static_cast<std::size_t>(bytes));
  // The name in brackets may hold anything, brackets too.
  const std::size_t name_end = rest.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= rest.size()) return std::nullopt;
  rest.remove_prefix(name_end + 2);
  ProcessState state;
  state.state = rest[0];
  constexpr int kFieldsToStart = 19;  // from the state, field 3, to field 22
  for (int field = 0; field < kFieldsToStart; ++field) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  std::from_chars(rest.data(), rest.data() + rest.size(), state.start_ticks);
  return state;
}

std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

// True when a process that started at `start_ticks` cannot have been there at `seen_ns`.
bool started_after(std::uint64_t start_ticks, std::uint64_t seen_ns) noexcept {
  const long per_second = ::sysconf(_SC_CLK_TCK);
  if (per_second <= 0) return false;
  const std::uint64_t tick_ns = 1'000'000'000u / static_cast<std::uint64_t>(per_second);
  // /proc counts time asleep, CLOCK_MONOTONIC does not. Sleep after the start makes the difference too large, which errs on the safe side.
  const std::uint64_t asleep_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t earliest_ns = start_ticks * tick_ns;
  return earliest_ns > seen_ns + asleep_ns + 2 * tick_ns;
}

}  // namespace

ProcessWatch::ProcessWatch(std::uint64_t pid, std::uint64_t seen_ns) {
  if (pid == 0 || pid > static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max())) {
    ended_ = true;
    return;
  }
  pid_ = static_cast<pid_t>(pid);
  handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!handle_ && errno == ESRCH) {
    ended_ = true;
    return;
  }
  if (const std::optional<ProcessState> state = read_state(pid_)) {
    start_ticks_ = state->start_ticks;
    ended_ = started_after(start_ticks_, seen_ns);
  }
}

bool ProcessWatch::has_ended() {
  if (ended_) return true;
  if (handle_) {
    pollfd waiting{handle_.get(), POLLIN, 0};
    ended_ = ::poll(&waiting, 1, 0) == 1 && (waiting.revents & (POLLIN | POLLHUP)) != 0;
    return ended_;
  }
  if (::kill(pid_, 0) != 0 && errno == ESRCH) {
    ended_ = true;
  } else if (const std::optional<ProcessState> state = read_state(pid_)) {
    ended_ = state->state == 'Z' || state->state == 'X' || state->start_ticks != start_ticks_;
  }
  return ended_;
}

}  // namespace xpu::trace
