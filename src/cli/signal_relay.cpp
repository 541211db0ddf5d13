#include "cli/signal_relay.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "xpu/base/clock.hpp"

namespace xpu::cli {
namespace {

bool is_terminal_stop(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

}  // namespace

Result<std::unique_ptr<SignalRelay>> SignalRelay::create() {
  sigset_t all;
  sigfillset(&all);
  // Ours alone: a reader that went away, and the limit that the recorder meets when it grows a file.
  for (const int ours : {SIGPIPE, SIGXFSZ}) sigdelset(&all, ours);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, fault);
  const int descriptor = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) return Error{ErrorCode::unavailable, fmt::format("cannot listen for signals: {}", std::strerror(errno)), errno};
  return std::unique_ptr<SignalRelay>(new SignalRelay(descriptor));
}

SignalRelay::~SignalRelay() { close(descriptor_); }

void SignalRelay::wait_until(std::uint64_t deadline_ns) {
  const std::uint64_t now = now_ns();
  const std::uint64_t wait_ns = deadline_ns > now ? deadline_ns - now : 0;
  const timespec timeout{static_cast<time_t>(wait_ns / 1'000'000'000), static_cast<long>(wait_ns % 1'000'000'000)};
  pollfd entry{descriptor_, POLLIN, 0};
  if (ppoll(&entry, 1, &timeout, nullptr) <= 0) return;
  signalfd_siginfo info{};
  while (read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) handle(info);
  reap();
}

unsigned SignalRelay::take_toggles() {
  const unsigned toggles = toggles_;
  toggles_ = 0;
  return toggles;
}

void SignalRelay::handle(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD) return;
  // Codes above 0 are the kernel's. A program that signals its own group has had its signal already.
  const bool sent_by_somebody = info.ssi_code <= 0 && static_cast<pid_t>(info.ssi_pid) != program_;
  if (!sent_by_somebody) {
    // Ctrl-Z while the program had stopped itself: the shell waits for us to stop too.
    if (signal == SIGTSTP && stopped_) stop_as_the_program_did(signal);
    return;
  }
  if (signal == SIGUSR2 && user_signal_is_ours_) {
    ++toggles_;
    return;
  }
  reap();
  if (ended_) return;
  // A shell continues a whole group, and then the program runs already.
  if (signal == SIGCONT && !stopped_) return;
  if (info.ssi_code == SI_QUEUE) {
    sigval value{};
    value.sival_ptr = reinterpret_cast<void*>(info.ssi_ptr);
    sigqueue(program_, signal, value);
  } else {
    kill(program_, signal);
  }
}

void SignalRelay::reap() {
  int status = 0;
  while (!ended_ && waitpid(program_, &status, WNOHANG | WUNTRACED | WCONTINUED) == program_) {
    if (WIFSTOPPED(status)) {
      stopped_ = true;
      // A shell sees only us stop. What was stopped by a SIGSTOP to the program alone will be continued the same way.
      if (is_terminal_stop(WSTOPSIG(status))) stop_as_the_program_did(WSTOPSIG(status));
    } else if (WIFCONTINUED(status)) {
      stopped_ = false;
    } else {
      ended_ = true;
      wait_status_ = status;
    }
  }
}

// Where no shell watches (an orphaned group) the kernel makes this do nothing.
void SignalRelay::stop_as_the_program_did(int signal) {
  struct sigaction stop{};
  struct sigaction before{};
  stop.sa_handler = SIG_DFL;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigaction(signal, &stop, &before);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  sigprocmask(SIG_BLOCK, &only, nullptr);
  sigaction(signal, &before, nullptr);
}

}  // namespace xpu::cli
