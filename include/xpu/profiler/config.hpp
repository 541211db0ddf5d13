#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity_filter.hpp"
#include "xpu/profiler/activity_kind.hpp"

namespace xpu::profiler {

/// What one profile is to be: when, for how long, of what, and where it goes. Each field stands for the key of a configuration file that is
/// named behind it; they are those of PyTorch's profiler (Kineto), and beside these some of our own, which begin with XPU_.
struct Config {
  bool is_enabled = true;                          ///< ACTIVITIES_ENABLED
  ActivityKinds kinds = default_activity_kinds();  ///< ACTIVITY_TYPES
  std::string log_file = {};                       ///< ACTIVITIES_LOG_FILE; empty: see `trace_path`.

  /// ACTIVITIES_DURATION_MSECS, or _SECS. Not looked at when `iterations` says how long.
  std::chrono::milliseconds duration{500};
  std::chrono::seconds warmup_duration{5};               ///< ACTIVITIES_WARMUP_PERIOD_SECS
  std::uint32_t iterations = 0;                          ///< ACTIVITIES_ITERATIONS; 0: by `duration`.
  std::uint32_t warmup_iterations = 0;                   ///< ACTIVITIES_WARMUP_ITERATIONS
  std::optional<std::int64_t> start_time_unix_ms = {};   ///< PROFILE_START_TIME; 0 is nothing: as soon as possible.
  std::optional<std::uint32_t> start_iteration = {};     ///< PROFILE_START_ITERATION, before any time; -1 is nothing.
  std::optional<std::uint32_t> iteration_multiple = {};  ///< PROFILE_START_ITERATION_ROUNDUP: start at one of these; -1 and 0 are nothing.

  std::uint64_t max_buffer_mib = 128;  ///< ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB
  bool has_buffer_per_thread = false;  ///< CUPTI_PER_THREAD_BUFFER_ENABLED
  bool shows_stream_waits = true;      ///< ACTIVITIES_DISPLAY_CUDA_SYNC_WAIT_EVENTS

  /// XPU_KEEP_LATE_COMMANDS: whether sinks get commands that ended only after the stop, flagged. They are counted in any case.
  bool keeps_late_commands = true;
  /// XPU_FILTER_KERNELS, XPU_FILTER_LEAST_DURATION_NSECS, XPU_FILTER_QUEUES (a list of numbers): which commands it is about. What no
  /// session wants by its name or its queue is not recorded, and counted; the rest is left out of what sinks get.
  ActivityFilter filter = {};

  bool takes_memory_snapshot = false;                        ///< PROFILE_MEMORY: of memory and nothing else, see `Profiler`.
  std::chrono::milliseconds memory_snapshot_duration{1000};  ///< PROFILE_MEMORY_DURATION_MSECS

  // What the framework records of its operations.
  bool with_shapes = false;   ///< PROFILE_REPORT_INPUT_SHAPES, or CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION
  bool with_memory = false;   ///< PROFILE_PROFILE_MEMORY
  bool with_stack = false;    ///< PROFILE_WITH_STACK, or PYTHON_STACK_TRACE
  bool with_flops = false;    ///< PROFILE_WITH_FLOPS
  bool with_modules = false;  ///< PROFILE_WITH_MODULES

  std::string trace_id = {};        ///< REQUEST_TRACE_ID: for the trace's metadata.
  std::string group_trace_id = {};  ///< REQUEST_GROUP_TRACE_ID: of profiles that were asked for together.

  std::optional<bool> listens_to_daemon = {};           ///< ENABLE_IPC_FABRIC; nothing: where KINETO_USE_DAEMON is set.
  std::chrono::seconds daemon_interval{5};              ///< ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS, at least 1.
  std::optional<std::uint32_t> verbose_log_level = {};  ///< VERBOSE_LOG_LEVEL; -1 is nothing.
  std::vector<std::string> verbose_log_modules = {};    ///< VERBOSE_LOG_MODULES; empty: all.
  std::string custom = {};                              ///< CUSTOM_CONFIG: for whoever knows what it means.

  std::vector<std::string> scope_metrics = {};   ///< XPUPTI_PROFILER_METRICS
  bool scopes_are_kernels = false;               ///< XPUPTI_PROFILER_ENABLE_PER_KERNEL
  std::optional<std::uint32_t> max_scopes = {};  ///< XPUPTI_PROFILER_MAX_SCOPES

  bool operator==(const Config&) const = default;
};

struct ParsedConfig {
  Config config;
  /// A sentence for each line that has no effect, with its number: unknown keys, those of other devices, and what a later line overrides.
  std::vector<std::string> warnings = {};
};

/// Reads lines KEY=VALUE onto `base`. The first '=' ends the key, so that values may have more; '#' begins a comment; blanks round keys and
/// values are ignored. Booleans are y, yes, t, true, 1 and n, no, f, false, 0 in any case, lists have commas, numbers are at most 2^31 - 1.
///
/// All or nothing: error invalid_argument for the first line that is not understood, with its number, what it says and what is allowed, or
/// for what `check_config` refuses.
XPU_EXPORT Result<ParsedConfig> parse_config(std::string_view text, const Config& base = {});

/// Refuses values that contradict each other, or that no field may have: invalid_argument.
XPU_EXPORT Result<> check_config(const Config& config);

/// Refuses a start that is too long ago to be meant: more than 10 s before `now_unix_ms`. Error invalid_argument.
XPU_EXPORT Result<> check_start_time(const Config& config, std::int64_t now_unix_ms);

/// Where the trace of this process goes: `log_file`, or xpu_activities.json in `folder`, with _PID before ".pt.trace.json", else before
/// ".json", else at the end. "file://PATH" is PATH, any other name with a scheme stays as it is (`outputs.hpp`).
XPU_EXPORT std::string trace_path(const Config& config, const std::string& folder, std::int64_t pid);

/// The same for a configuration that comes from outside the process: the file must lie in `folder`. A relative `log_file` is one in it.
/// Error invalid_argument for any other place, for "..", and for a scheme.
XPU_EXPORT Result<std::string> confined_trace_path(const Config& config, const std::string& folder, std::int64_t pid);

/// Where a memory snapshot of this process goes: memory_snapshot_PID.pickle in the folder of `log_file`, or else in `folder`. It is a file
/// always: error invalid_argument for a scheme other than "file", and, when `is_confined`, for what `confined_trace_path` refuses.
XPU_EXPORT Result<std::string> memory_snapshot_path(const Config& config, const std::string& folder, bool is_confined, std::int64_t pid);

}  // namespace xpu::profiler
