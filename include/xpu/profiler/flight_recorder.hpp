#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity_kind.hpp"
#include "xpu/profiler/export.hpp"

namespace xpu::profiler {

/// What one queue is doing: plain data.
struct FlightQueue {
  std::uint32_t id = 0;  ///< In this process, from 1.
  std::string name;      ///< As the program named it, or empty.
  std::string device;
  bool out_of_order = false;
  std::uint64_t pending = 0;  ///< Commands that were submitted and have not ended.
  std::uint64_t ended = 0;    ///< Since the recorder began.
  /// When the end of the newest command was read, which is up to 50 ms after it; empty when none has ended.
  std::optional<std::uint64_t> since_last_end_ns;

  /// The command that was submitted first of those that are pending; what follows says nothing when there is none.
  std::string oldest;               ///< Kernel, or kind of the command.
  std::uint64_t oldest_ns = 0;      ///< When its call began, on the clock of this process's records (`FlightState::now_ns`).
  std::uint64_t pending_ns = 0;     ///< For how long it has been.
  std::uint32_t oldest_thread = 0;  ///< Of the operating system, that called; 0 = unknown.
  std::string oldest_api;           ///< What it called.

  /// One sentence, such as "queue 3 of Arc B580: test_kernel, submitted by thread 4711 through clEnqueueNDRangeKernel, has been pending for
  /// 12.104 s, and 2 commands after it".
  XPU_EXPORT std::string text() const;
};

struct FlightState {
  std::uint64_t now_ns = 0;
  std::vector<FlightQueue> queues;  ///< By id.
  std::uint64_t untracked = 0;      ///< Commands that nobody followed, because more than 65,536 were pending.
  /// A line for each queue, ending in a newline; one that says so when there is none.
  XPU_EXPORT std::string text() const;
};

/// A queue in which nothing moves.
struct FlightHang {
  FlightQueue queue;
  /// Where the ring was written to, unless that failed: then why is in `error`. Both empty: as many as are kept had been written before.
  std::string path, error;
};

struct FlightRecorderOptions {
  std::chrono::milliseconds kept{30'000};  ///< What is older is dropped.
  /// Memory for records, at least 2 MiB: a quarter of it (at least 1 MiB) for what threads write between two looks, the rest for what is
  /// kept. What describes things that live (kernels, queues, threads) comes on top.
  std::uint64_t max_bytes = std::uint64_t{64} << 20;
  ActivityKinds kinds = default_activity_kinds();
  bool with_memory = false;
  /// Where hangs and crashes are written to. Must exist.
  std::string folder = ".";

  /// Nothing: hangs are not looked for. A queue hangs when its oldest command has been pending for so long and, where it runs commands in
  /// order, nothing has ended in it for so long either. Written once for each command that hangs, at most 16 times, to
  /// xpu_flight_PID_hang.json.gz, then ..._hang_2.json.gz and so on.
  std::optional<std::chrono::milliseconds> hang_after = {};
  /// Called by the recorder's thread after the file was written, under no lock. It must not stop the recorder.
  std::function<void(const FlightHang&)> on_hang = {};

  /// Handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, where these are not ignored: the first such signal writes
  /// xpu_flight_PID_crash.json.gz, then it is delivered again to whoever had it before, so that exit status, core dump and other handlers
  /// are the program's own. Not for programs that use these signals in their normal work. One recorder of a process at a time.
  bool dump_on_crash = false;
  /// For how long a thread that crashes waits for the file.
  std::chrono::milliseconds crash_patience{2'000};
};

/// Keeps the last seconds of this process, always, so that they can be written when something turns out to be worth a look.
///
///     XPU_TRY_ASSIGN(const auto recorder, FlightRecorder::start({.folder = "/var/tmp", .hang_after = 30s, .dump_on_crash = true}));
///     ...
///     XPU_TRY(recorder->dump("slow_step.json.gz"));
///     fmt::print("{}", recorder->state().text());
///
/// One thread with low priority, `xpu-flight`, looks every 50 ms; the program's signals are not for it. Publishers never wait for it: what
/// finds no room is dropped and counted. Any thread may call anything, but who destroys it must be the last to use it. A forked child has
/// no recorder: there `dump` is an error, `state` is empty, and everything else does nothing.
class XPU_EXPORT FlightRecorder {
 public:
  /// Errors: invalid_argument (a sentence names the option), not_found (no such folder), failed_precondition (somebody else listens, or
  /// another recorder waits for crashes), unavailable, out_of_host_memory.
  static Result<std::unique_ptr<FlightRecorder>> start(const FlightRecorderOptions& options = {});
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// Writes what is in the ring now: a Chrome trace (.json, .json.gz) or one of Perfetto (.pftrace, .pftrace.gz). A row "xpu flight
  /// recorder" says what each queue was doing. One at a time, others wait. Commands whose end was dropped or is to come have a call and no
  /// slice. Errors: invalid_argument (another suffix), unavailable (the sentence names the file and the reason; also in a forked child).
  Result<ExportSummary> dump(const std::string& path);
  /// Asks publishers for what has ended, then tells what is pending.
  FlightState state();

  struct Counts {
    std::uint64_t submitted = 0;  ///< Commands that were recorded, ever.
    std::uint64_t dropped = 0;    ///< Of these, submissions that are not in the ring any more.
    std::uint64_t dropped_bytes = 0, dropped_for_room_bytes = 0;
    std::uint64_t lost = 0;               ///< Records that found no room between two looks.
    std::uint64_t kept_bytes = 0;         ///< At most `max_bytes`.
    std::uint64_t description_bytes = 0;  ///< Beside them.
    std::uint64_t kept_ns = 0;            ///< How far the ring reaches back.
    std::uint64_t hangs = 0;              ///< Found so far.
  };
  Counts counts() const;
  /// The newest hangs, at most 16, the oldest first.
  std::vector<FlightHang> hangs() const;

  /// Nothing more is recorded; the thread is gone when it returns, and the handlers are what they were. What is in the ring can still be
  /// written. Not from `on_hang`. Nothing to do the second time.
  void stop();

  struct Impl;

 private:
  explicit FlightRecorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::profiler
