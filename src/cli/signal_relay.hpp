#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "xpu/base/result.hpp"

struct signalfd_siginfo;  // NOLINT(readability-identifier-naming): the kernel's name

namespace xpu::cli {

/// Stands between the signals that reach this process and the program that it runs. Needs all signals blocked
/// (InheritedSignals::take_over).
///
/// What the kernel sends because of a terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a changed window size, a hang-up) reaches the whole foreground
/// group, the program included, and is left to it. What somebody sent to this process is passed on to the program.
class SignalRelay {
 public:
  static Result<std::unique_ptr<SignalRelay>> create();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;
  ~SignalRelay();

  void set_program(pid_t program) { program_ = program; }
  /// SIGUSR2 is then counted in `toggles` and not passed on.
  void take_user_signal() { user_signal_is_ours_ = true; }

  /// Waits until a signal comes or until `deadline_ns` of the monotonic clock, then acts on all that came.
  void wait_until(std::uint64_t deadline_ns);

  bool ended() const { return ended_; }
  /// As waitpid gave it.
  int wait_status() const { return wait_status_; }
  /// How often SIGUSR2 came since the last call.
  unsigned take_toggles();

 private:
  explicit SignalRelay(int descriptor) : descriptor_(descriptor) {}
  void handle(const signalfd_siginfo& info);
  void reap();
  void stop_as_the_program_did(int signal);

  int descriptor_;
  pid_t program_ = -1;
  bool user_signal_is_ours_ = false;
  bool ended_ = false;
  bool stopped_ = false;
  int wait_status_ = 0;
  unsigned toggles_ = 0;
};

}  // namespace xpu::cli
