#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/config.hpp"
#include "xpu/profiler/cpu_trace.hpp"

namespace xpu::profiler {

/// When a profile counted, in host time.
struct ProfileWindow {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// How a row of a child profiler is to be called.
struct ResourceInfo {
  std::uint32_t row = 0;  ///< `CpuOperation::thread` of what is on it.
  std::string name;
};

/// Another profiler that takes part in a session: a session has an object of its own from each factory. What it has to show appears on rows
/// of its own, under the name by which it was registered.
///
/// Functions are called one after the other in the order in which they stand here, but for `toggle`, `push_correlation_id` and
/// `pop_correlation_id`, which come from any thread at any time from `configure` to `stop`; one of them may still be under way then. No
/// lock of ours is held. An error or an exception is shown in the profile (`Session::participants`) and concerns nobody else; after one in
/// `configure` it takes no part.
class XPU_EXPORT ChildProfiler {
 public:
  virtual ~ChildProfiler();

  /// The session warms up, or begins without that.
  virtual Result<> configure(const Config& config) = 0;
  virtual Result<> start() { return {}; }
  /// Whether what begins now is part of the profile.
  virtual void toggle(bool collect) { static_cast<void>(collect); }
  /// This thread's work has this number from now on, as `ActivityApi::push_correlation_id` was told.
  virtual void push_correlation_id(const ExternalId& id) { static_cast<void>(id); }
  virtual void pop_correlation_id(CorrelationFamily family) { static_cast<void>(family); }
  /// Also where the session is cancelled, or ends without a stop; the object goes next.
  virtual Result<> stop() { return {}; }

  // Once, before the session is linked for the first time:
  /// What it saw, on rows of its own; operations of the kinds that a `CpuOperation` may have.
  virtual std::vector<CpuOperation> process(const ProfileWindow& window) = 0;
  virtual std::vector<ResourceInfo> resource_infos() { return {}; }
  /// What it saw on the threads of the program, if it is the one who records for a framework.
  virtual CpuTrace trace_buffer() { return {}; }
  /// Keys and texts for the head of a trace.
  virtual std::vector<std::pair<std::string, std::string>> metadata() { return {}; }
  /// A list of facts for each device that it knows.
  virtual std::vector<std::vector<CpuArgument>> device_properties() { return {}; }
  /// What went wrong, in sentences.
  virtual std::vector<std::string> errors() { return {}; }
};

using ChildProfilerFactory = std::function<std::unique_ptr<ChildProfiler>()>;

/// From the next session that prepares on, `factory` makes a child for each. Any thread. Errors: invalid_argument for no name or no
/// factory; failed_precondition where the name is taken.
XPU_EXPORT Result<> register_child_profiler(std::string name, ChildProfilerFactory factory);
/// Sessions that have a child of it keep it. False when there is none of that name.
XPU_EXPORT bool unregister_child_profiler(const std::string& name);

/// What a child profiler, or the client, said in a session.
struct ParticipantReport {
  std::string name;
  /// In sentences; at most 100, and how many more there were.
  std::vector<std::string> errors = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
  std::vector<std::vector<CpuArgument>> device_properties = {};
};

}  // namespace xpu::profiler
