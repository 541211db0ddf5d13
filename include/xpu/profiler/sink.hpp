#pragma once

#include <cstdint>
#include <span>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity.hpp"
#include "xpu/profiler/child_profiler.hpp"
#include "xpu/profiler/definitions.hpp"
#include "xpu/profiler/distributed_info.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::profiler {

/// What was not as it should be, each in a number: 0 where all was. Nothing is left out for it.
struct ErrorStatistics {
  std::uint64_t unused_external_ids = 0;  ///< Numbers that the program gave operations that are not on record.
  std::uint64_t out_of_range = 0;         ///< Commands that surely ended after the profile was stopped: `DeviceActivity::ends_late`.
  std::uint64_t before_call = 0;          ///< Commands that surely began before the call that submitted them.
  std::uint64_t unnamed_calls = 0;        ///< Calls of a function that nothing names: they are called "unknown".
  std::uint64_t unexpected_records = 0;   ///< `orphans` and `duplicates` of the summary. What was under way at the start is of these.
  std::uint64_t dropped_for_room = 0;     ///< Records of any kind that found no memory: from the first on the profile is not whole.
  bool operator==(const ErrorStatistics&) const = default;
};

/// What linking saw, in numbers.
struct LinkSummary {
  std::uint64_t commands = 0;    ///< Submissions that the driver accepted.
  std::uint64_t refused = 0;     ///< Submissions that it refused.
  std::uint64_t linked = 0;      ///< Of `commands`: with their completion.
  std::uint64_t untimed = 0;     ///< Of `linked`: without usable times.
  std::uint64_t unplaced = 0;    ///< Of `linked`: timed, but no clock reading says when in host time.
  std::uint64_t pending = 0;     ///< Of `commands`: neither completed nor lost.
  std::uint64_t lost = 0;        ///< Of `commands`: the completion was dropped.
  std::uint64_t orphans = 0;     ///< Completions without a submission.
  std::uint64_t duplicates = 0;  ///< Records of an operation that already had one of the same kind; the first is used.
  std::uint64_t filtered = 0;    ///< Operations that no session wanted: not recorded, and in no other figure.
  std::uint64_t left_out = 0;    ///< Of `commands` and `refused`: recorded, and no sink of this session was told, because of its filter.
  ErrorStatistics errors = {};

  std::uint64_t cpu_operations = 0;            ///< Of the framework, that were handed out.
  std::uint64_t discarded_cpu_traces = 0;      ///< `CpuTraceCounts`.
  std::uint64_t discarded_cpu_operations = 0;  ///< Likewise.
  /// Ends of arrows between operations that are not shown: their number has no start or no end, a second start, or an end before it.
  std::uint64_t dangling_flow_ends = 0;
};

/// What is known before the first activity.
struct SessionInfo {
  const trace::Manifest* manifest = nullptr;
  const Definitions* definitions = nullptr;  ///< Lives as long as the session; devices, clocks and queues are complete, unless `goes_on`.
  std::uint64_t commands = 0;                ///< That are about to come, roughly: for a progress bar.
  /// Where a time axis begins: the program's start or, where that is not known, that of the first command.
  std::int64_t origin_ns = 0;
  /// Told while the program goes on (`StreamingExport`): devices, clocks and queues may still come, and `commands` is not known.
  bool goes_on = false;
  const DistributedInfo* distributed = nullptr;  ///< Or null; lives as long as the session.
  /// What the client and child profilers said; lives as long as the session.
  std::span<const ParticipantReport> participants = {};
};

/// Takes activities in the order in which they become known, not in that of time; a command comes right behind its call. One thread at a
/// time. A sink that fails remembers why and returns it from `end`.
class XPU_EXPORT Sink {
 public:
  virtual ~Sink();

  virtual void begin(const SessionInfo&) {}
  virtual void handle_runtime_activity(const RuntimeActivity&) {}
  /// A sink that does not tell them apart sees a runtime call.
  virtual void handle_driver_activity(const DriverActivity& activity) { handle_runtime_activity(activity); }
  /// Right before the call that it belongs to.
  virtual void handle_external_correlation_activity(const ExternalCorrelationActivity&) {}
  virtual void handle_kernel_activity(const KernelActivity&) {}
  virtual void handle_memcpy_activity(const MemcpyActivity&) {}
  /// A sink that does not tell them apart sees a copy.
  virtual void handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) { handle_memcpy_activity(activity); }
  virtual void handle_memset_activity(const MemsetActivity&) {}
  virtual void handle_command_activity(const CommandActivity&) {}
  virtual void handle_synchronization_activity(const SynchronizationActivity&) {}
  virtual void handle_overhead_activity(const OverheadActivity&) {}
  virtual void handle_communication_activity(const CommunicationActivity&) {}
  virtual void handle_memory_activity(const MemoryActivity&) {}
  virtual void handle_annotation_activity(const AnnotationActivity&) {}
  virtual void handle_loss_activity(const LossActivity&) {}
  /// Before everything that happened on devices; of each thread by their starts, the outer one first.
  virtual void handle_cpu_operation_activity(const CpuOperationActivity&) {}
  /// Behind everything else; of each queue by their starts, the outer one first.
  virtual void handle_device_annotation_activity(const DeviceAnnotationActivity&) {}
  /// Where what is told goes on: now and then, with the figures until now. What was told is whole, and may be all there will ever be: it
  /// should get to where it is safe.
  virtual Result<> flush(const LinkSummary&) { return {}; }
  virtual Result<> end(const LinkSummary&) { return {}; }
};

}  // namespace xpu::profiler
