#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/activity_api.hpp"
#include "xpu/profiler/child_profiler.hpp"
#include "xpu/profiler/client.hpp"
#include "xpu/profiler/config.hpp"
#include "xpu/profiler/cpu_trace.hpp"
#include "xpu/profiler/distributed_info.hpp"
#include "xpu/profiler/linker.hpp"
#include "xpu/profiler/record_source.hpp"
#include "xpu/profiler/sink.hpp"
#include "xpu/trace/conservation.hpp"

namespace xpu::profiler {

class DeviceAnnotations;
class Expression;
class FilteringSink;
class Participants;

enum class SessionState : std::uint8_t {
  created,
  warmup,      ///< Records flow and are thrown away.
  collecting,  ///< What happens now is the profile, but for what is paused.
  stopped,     ///< Nothing new begins; what began may still end.
  collected,   ///< All there is to come is there.
  cancelled,
};
XPU_EXPORT std::string_view to_string(SessionState state) noexcept;

class SessionStream;

/// What is in memory of a session that is handed over while it goes on (`Session::advance`).
struct StreamCounts {
  std::uint64_t rounds = 0;
  std::uint64_t fetched_bytes = 0;        ///< Records of all rounds.
  std::uint64_t largest_round_bytes = 0;  ///< Of the round with the most.
  std::uint64_t carried_operations = 0;   ///< Between the last round and the next: submitted, and not over.
  std::uint64_t carried_bytes = 0;        ///< Their records.
  std::uint64_t open_ranges = 0;
};

/// One look at a program: links the records of a source and hands each activity to every sink.
///
/// Over a recording it only has to `run`. Over this process it goes through a life of its own first:
///
///     Session session(config);
///     XPU_TRY(session.start());  ...  XPU_TRY(session.stop());
///     XPU_TRY(export_chrome(session, {.path = "trace.json.gz"}));
///
/// Steps out of order are failed_precondition with a sentence and change nothing; so are all of them over a recording. `toggle`, `stop` and
/// `state` are for any thread, the rest has one owner.
class XPU_EXPORT Session final : public Sink {
 public:
  /// Over records of somebody else. `source` must outlive the session.
  explicit Session(const RecordSource& source);
  /// Over what is to happen in this process, as far as `config.kinds` say so. Nothing is recorded yet. When, for how long and where to is
  /// the business of whoever starts and stops it (`Profiler` does).
  explicit Session(Config config);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Recording begins, for nothing as yet: the first records cost more than those that follow. Errors: those of `ActivityApi::enable`, and
  /// invalid_argument for a filter that is no expression.
  Result<> prepare();
  /// While it warms up: gives the memory of what was recorded so far back. Nothing to do in any other state.
  void discard_warm_up();
  /// From now on it counts. Without `prepare` it does that, too.
  Result<> start();
  /// While collecting: whether what begins now is part of it. The trace has a mark at each change. Nothing to do in any other state.
  void toggle(bool collect) noexcept;
  /// Returns at once: what was submitted may still run.
  Result<> stop();
  /// Waits until what began has ended, at most so long, and lets go of the tracer. What has no end then is pending in the profile. `run`
  /// does this when nobody did.
  Result<> collect(std::chrono::milliseconds patience = kDefaultPatience);
  /// Nothing is kept. From any state; of a session over a recording nothing.
  void cancel();
  SessionState state() const noexcept;
  static constexpr std::chrono::milliseconds kDefaultPatience{1'000};

  /// Takes what a framework recorded of itself: from `start` until the first `run`; over a recording, for its first process, until then.
  /// Any number of them, from any thread. At any other time it is discarded and counted: failed_precondition. Operations of a kind that
  /// none on the host has are discarded and counted, and the others taken.
  Result<> transfer_cpu_trace(CpuTrace trace);
  CpuTraceCounts cpu_trace_counts() const noexcept;
  /// Of which the times of a CPU trace must be.
  ClockDomain clock_domain() const noexcept;

  /// Of which distributed program this process is a part: for the head of traces. Before they are written.
  void set_distributed_info(DistributedInfo info) { distributed_info_ = std::move(info); }
  /// A framework that is to be told of the session's life; outlives the session. Before `prepare`, else failed_precondition.
  Result<> set_client(ProfilerClient* client);
  /// What the client and the children of this session (`register_child_profiler`) said until now, errors above all. Any thread.
  std::vector<ParticipantReport> participants() const;

  /// The sink must outlive the session.
  void add_sink(Sink& sink) { sinks_.push_back(&sink); }
  /// Links everything and tells the sinks, as often as wanted. The first error of the source or of a sink; every sink has seen `end` when
  /// the source could be read. Errors: also those of `collect` and, of a session that was cancelled, failed_precondition.
  Result<LinkSummary> run() { return run(sinks_); }
  /// The same for these sinks instead.
  Result<LinkSummary> run(std::vector<Sink*> sinks);
  /// For a session that goes on for long: what is over by now is handed to the sinks of `add_sink`, and forgotten, so that memory holds the
  /// records of one interval, what is not over, and what describes things. `run`, then once and for these sinks, hands over the rest; all
  /// calls together hand over what `run` alone would have, but for what a framework recorded of itself and what queues did for ranges,
  /// which can only be told behind everything else. Nothing else can be made of the session afterwards.
  ///
  /// While collecting or stopped; by the owner. Errors: failed_precondition, those of `Sink::flush`.
  Result<> advance();
  /// Of a session that was advanced.
  StreamCounts stream_counts() const noexcept;
  /// The same after `run`, once: submitted, recorded, lost and pending, which `make_report` says of other sessions.
  Result<trace::Conservation> take_stream_books();
  /// Between two rounds: takes over what was written, which otherwise takes room where records are written. Returns what waits for the next
  /// round, in bytes.
  std::uint64_t fetch();

  /// `collect`, unless that was done, or there is nothing to be done for it.
  Result<> collect_if_live();
  /// Of the last `run`, which must have been.
  const Definitions& definitions() const noexcept;
  const RecordSource& source() const noexcept { return source_; }

  void begin(const SessionInfo& info) override;
  void handle_runtime_activity(const RuntimeActivity& activity) override;
  void handle_driver_activity(const DriverActivity& activity) override;
  void handle_external_correlation_activity(const ExternalCorrelationActivity& activity) override;
  void handle_kernel_activity(const KernelActivity& activity) override;
  void handle_memcpy_activity(const MemcpyActivity& activity) override;
  void handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) override;
  void handle_memset_activity(const MemsetActivity& activity) override;
  void handle_command_activity(const CommandActivity& activity) override;
  void handle_synchronization_activity(const SynchronizationActivity& activity) override;
  void handle_overhead_activity(const OverheadActivity& activity) override;
  void handle_communication_activity(const CommunicationActivity& activity) override;
  void handle_memory_activity(const MemoryActivity& activity) override;
  void handle_annotation_activity(const AnnotationActivity& activity) override;
  void handle_loss_activity(const LossActivity& activity) override;
  void handle_cpu_operation_activity(const CpuOperationActivity& activity) override;
  Result<> flush(const LinkSummary& so_far) override;
  Result<> end(const LinkSummary& summary) override;

 private:
  Result<> prepare_locked();
  Sink& filtered_sink() noexcept;  // of a session that is handed over while it goes on
  Result<> expect(SessionState wanted, std::string_view step) const;
  void keep(CpuTrace trace);
  void ask_participants();
  std::int64_t window_end_ns() const;
  LinkSummary with_cpu_trace_counts(LinkSummary summary) const;
  void hand_over_device_annotations();
  bool wants(ActivityKind kind) const noexcept { return !api_ || config_.kinds.contains(kind); }
  template <typename DeviceKind>
  void hand_over(void (Sink::*handle)(const DeviceKind&), const DeviceKind& activity);

  const Config config_;
  const std::unique_ptr<ActivityApi> api_;  // null over a recording
  const RecordSource& source_;
  mutable std::mutex mutex_;
  SessionState state_ = SessionState::created;
  bool is_paused_ = false;
  bool has_run_ = false;
  std::uint64_t started_ns_ = 0, stopped_ns_ = 0;
  std::vector<CpuTrace> cpu_traces_;  // never changed once it has run
  CpuTraceCounts cpu_trace_counts_;
  std::optional<DistributedInfo> distributed_info_;
  const std::unique_ptr<Participants> participants_;    // null over a recording
  std::vector<ParticipantReport> participant_reports_;  // as they were at the beginning of the run
  std::unique_ptr<Expression> wanted_kernels_;          // of the filter, if it names any
  std::unique_ptr<FilteringSink> filtering_;            // of a session that is handed over while it goes on, where it has a filter
  std::unique_ptr<Linker> linker_;
  std::unique_ptr<SessionStream> stream_;  // once it was advanced
  std::vector<Sink*> sinks_;
  std::vector<Sink*> running_;                             // of the run that is under way
  bool shows_last_call_ = true;                            // a command comes right behind its call
  std::unique_ptr<DeviceAnnotations> device_annotations_;  // of the run that is under way, where they are wanted
};

}  // namespace xpu::profiler
