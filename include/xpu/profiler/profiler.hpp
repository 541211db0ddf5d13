#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/error.hpp"
#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/client.hpp"
#include "xpu/profiler/config.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/schedule.hpp"

namespace xpu::profiler {

/// What a profile is going through; one after the other, but for those that it has none of.
enum class ProfileStage : std::uint8_t { warm_up, collection, post_processing, cancellation };
/// "Warm Up", "Collection", "Post Processing", "Cancellation".
XPU_EXPORT std::string_view to_string(ProfileStage stage) noexcept;

/// How a profile came out.
struct ProfileResult {
  bool is_written = false;
  std::string path = {};     ///< Of the trace or the memory snapshot, where one was written.
  ExportSummary trace = {};  ///< Of the trace.
  std::string problem = {};  ///< Why there is none, in a sentence: it was cancelled, or could not be recorded or written. Else empty.
  std::vector<std::string> remarks = {};  ///< Sentences about what is not as it was asked for; `Schedule::remarks`.
};

/// Told of profiles as they go. Called by the profiler's thread, or by who calls `schedule`, `advance`, `step` or `cancel`; no lock is
/// held, so it may call the profiler, but must not `wait`. While it is told of the end, the profile is still being written.
class XPU_EXPORT ProfilerObserver {
 public:
  virtual ~ProfilerObserver();
  virtual void stage_began(ProfileStage) {}
  virtual void profile_ended(const ProfileResult&) {}
};

/// Makes profiles of this process when they are due, and writes their traces, while the program goes on: nothing here waits for a trace
/// but `wait`. One profile at a time; sessions of others do not disturb it. Thread-safe.
///
/// With `Config::takes_memory_snapshot` a profile is of memory and no trace: for `memory_snapshot_duration`, without warm-up, it is noted
/// what the caching allocators of libxpu's runtime do (`with_stack`: for whom), then their state is written (`memory_snapshot_path`) and
/// everything is as before. Where nobody has used the runtime when that begins, there is nothing to be noted: the profile is cancelled.
class XPU_EXPORT Profiler {
 public:
  struct Options {
    std::string folder = ".";              ///< Of traces whose configuration names none, or a relative one.
    bool is_confined = false;              ///< Configurations come from outside: traces go nowhere else than into `folder`.
    ProfilerObserver* observer = nullptr;  ///< Outlives the profiler.
    ProfilerClient* client = nullptr;      ///< Of every session; outlives the profiler. Told by who tells the observer.
    /// False: nothing happens by itself, `advance` does everything that is due.
    bool has_thread = true;
    /// What time it is; the system's when empty. `iterations` is the profiler's own.
    std::function<Schedule::Now()> now = {};
  };
  explicit Profiler(Options options);
  /// Cancels what is not collected yet, and waits for a trace that is being written.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Plans a profile. Errors: what `check_config` and `Schedule::plan` refuse; invalid_argument for a trace that must not go where it is
  /// to; failed_precondition when another profile is planned or under way, which stays as it is, or when `is_enabled` is false; unavailable
  /// in a forked child, and where the system gave no thread.
  Result<> schedule(const Config& config);
  /// An iteration of the program begins.
  void step();
  /// Does what is due. Only needed where `has_thread` is false; then it writes the trace, too.
  void advance();
  /// Ends a profile without a trace. Nothing to do when there is none, or when its trace is being written already.
  void cancel(std::string reason);
  /// Whether a profile is planned, under way, or being written.
  bool is_busy() const;
  /// Until it is not, and how the last profile came out. Without a thread it does not wait.
  ProfileResult wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::profiler
