#pragma once

#include <mutex>
#include <string>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::profiler {

class Session;

/// A framework that records its own operations while others make profiles of its process: it is told when to. Called by who calls the
/// session or the profiler, one call at a time for each session; no lock of ours is held, so it may call both. An exception ends no
/// profile: it is shown in it (`Session::participants`).
class XPU_EXPORT ProfilerClient {
 public:
  /// What it is to record of its operations: the fields of the same names of `Config`.
  struct Options {
    bool with_shapes = false, with_memory = false, with_stack = false, with_flops = false, with_modules = false;
    bool operator==(const Options&) const = default;
  };

  virtual ~ProfilerClient();
  /// Calls `init` unless that was done. Any thread.
  void init_once();

  /// A profile warms up, or begins without that.
  virtual void prepare(const Options&) {}
  /// From now on it counts.
  virtual void start() {}
  /// It counts no more. What was recorded goes to `session.transfer_cpu_trace`, now or until the session is linked. Also called where a
  /// profile is cancelled; then the session takes nothing.
  virtual void stop(Session& session) { static_cast<void>(session); }

  // Profiles of memory.
  virtual void start_memory_profile() {}
  virtual void stop_memory_profile() {}
  /// Error: unsupported, unless it is overridden.
  virtual Result<> export_memory_profile(const std::string& path);

 protected:
  /// Before everything else.
  virtual void init() {}

 private:
  std::once_flag is_initialised_;
};

}  // namespace xpu::profiler
