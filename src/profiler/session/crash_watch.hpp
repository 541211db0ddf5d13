#pragma once

#include <chrono>
#include <memory>

#include "xpu/base/result.hpp"

namespace xpu::profiler {

/// Handlers for the signals by which a process crashes. The thread that crashes asks another one to do what is to be done, because it may
/// neither allocate nor lock: it writes to a file, sleeps until it is told that all is done, and lets the signal go on to whoever had it
/// before. At most one at a time.
class CrashWatch {
 public:
  /// `wake_file`: an eventfd that the thread that calls this waits for. The crashes of that thread itself are passed on at once, and so are
  /// those in a forked child. Errors: failed_precondition when there is one.
  static Result<std::unique_ptr<CrashWatch>> install(int wake_file, std::chrono::milliseconds patience);
  /// Puts back what was there before, where nobody else has put something there since.
  ~CrashWatch();
  CrashWatch(const CrashWatch&) = delete;
  CrashWatch& operator=(const CrashWatch&) = delete;

  /// Whose crashes are not waited for: the thread that serves them.
  static void set_server_thread() noexcept;
  /// The signal of a thread that waits; 0 = none does.
  static int requested() noexcept;
  /// Whoever waits may go on, and nobody will wait again.
  static void done() noexcept;

 private:
  CrashWatch() = default;
};

}  // namespace xpu::profiler
