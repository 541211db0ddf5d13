#include "xpu/profiler/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/probe.hpp"
#include "profiler/expression.hpp"
#include "profiler/link/device_annotations.hpp"
#include "profiler/session/filtering_sink.hpp"
#include "profiler/session/participants.hpp"
#include "profiler/session/session_stream.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::profiler {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};

/// A mark on the row of the thread that toggles, so that a gap in a trace has a reason.
void mark_in_trace(std::string_view text) noexcept {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr || (listener->wanted.load(std::memory_order_relaxed) & probe::kAnnotations) == 0) return;
  listener->annotate({.time_ns = now_ns(probe::clock_domain()), .range = 0, .type = probe::AnnotationType::mark, .text = text, .value = 0});
}

}  // namespace

std::string_view to_string(SessionState state) noexcept {
  switch (state) {
    case SessionState::created: return "created";
    case SessionState::warmup: return "warming up";
    case SessionState::collecting: return "collecting";
    case SessionState::stopped: return "stopped";
    case SessionState::collected: return "collected";
    case SessionState::cancelled: return "cancelled";
  }
  return "unknown";
}

Session::Session(const RecordSource& source) : source_(source) {}
Session::Session(Config config)
    : config_(std::move(config)), api_(std::make_unique<ActivityApi>()), source_(*api_), participants_(std::make_unique<Participants>()) {}
Session::~Session() {
  if (participants_) participants_->stop(*this);
}

// ---- the life cycle

Result<> Session::expect(SessionState wanted, std::string_view step) const {
  if (!api_) return Error{ErrorCode::failed_precondition, fmt::format("a session over a recording cannot {}", step)};
  if (state_ == wanted) return {};
  return Error{ErrorCode::failed_precondition,
               fmt::format("the session cannot {}: it is {}, and must be {}", step, to_string(state_), to_string(wanted))};
}

Result<> Session::prepare_locked() {
  XPU_TRY(expect(SessionState::created, "prepare"));
  if (!config_.filter.kernels.empty()) {
    XPU_TRY_ASSIGN(wanted_kernels_, Expression::compile(config_.filter.kernels));
  }
  XPU_TRY(api_->enable(config_.kinds, config_.with_memory, config_.max_buffer_mib << 20, config_.filter));
  state_ = SessionState::warmup;
  return {};
}

Result<> Session::prepare() {
  {
    const std::lock_guard lock(mutex_);
    XPU_TRY(prepare_locked());
  }
  participants_->prepare(config_);
  return {};
}

void Session::discard_warm_up() {
  const std::lock_guard lock(mutex_);
  if (state_ == SessionState::warmup) api_->drop_recorded();
}

Result<> Session::start() {
  if (api_ && state() == SessionState::created) XPU_TRY(prepare());
  {
    const std::lock_guard lock(mutex_);
    XPU_TRY(expect(SessionState::warmup, "start"));
    api_->discard();
    started_ns_ = now_ns(probe::clock_domain());
    state_ = SessionState::collecting;
  }
  participants_->start();
  return {};
}

void Session::toggle(bool collect) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != SessionState::collecting || is_paused_ == !collect) return;
    is_paused_ = !collect;
    if (collect) {
      api_->resume();
      mark_in_trace("xpu: collection resumed");
    } else {
      mark_in_trace("xpu: collection paused");
      api_->pause();
    }
    participants_->want_collection(collect);
  }
  participants_->tell_collection();
}

Result<> Session::stop() {
  {
    const std::lock_guard lock(mutex_);
    XPU_TRY(expect(SessionState::collecting, "stop"));
    api_->stop();
    stopped_ns_ = now_ns(probe::clock_domain());
    state_ = SessionState::stopped;
  }
  participants_->stop(*this);
  return {};
}

Result<> Session::collect(std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    XPU_TRY(expect(SessionState::stopped, "collect"));
  }
  // Without the lock: nobody else touches what has stopped, and who toggles must not wait for a device.
  const auto deadline = std::chrono::steady_clock::now() + patience;
  api_->flush();
  while (api_->unfinished() != 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLookAgain);
    api_->flush();
  }
  api_->disable();
  const std::lock_guard lock(mutex_);
  state_ = SessionState::collected;
  return {};
}

void Session::cancel() {
  if (!api_) return;
  {
    const std::lock_guard lock(mutex_);
    api_->disable();
    api_->forget();
    cpu_traces_.clear();
    state_ = SessionState::cancelled;
  }
  participants_->stop(*this);
}

SessionState Session::state() const noexcept {
  const std::lock_guard lock(mutex_);
  return state_;
}

// ---- what a framework recorded of itself

Result<> Session::transfer_cpu_trace(CpuTrace trace) {
  const std::lock_guard lock(mutex_);
  const bool is_there = api_ ? state_ == SessionState::collecting || state_ == SessionState::stopped || state_ == SessionState::collected
                             : !source_.processes().empty();
  if (!is_there || has_run_ || stream_) {
    ++cpu_trace_counts_.discarded_traces;
    cpu_trace_counts_.discarded_operations += trace.operations.size();
    return Error{ErrorCode::failed_precondition,
                 fmt::format("a CPU trace of {} operations is discarded: {}", trace.operations.size(),
                             stream_    ? "the session is handed over while it goes on, and device work has been linked already"
                             : has_run_ ? "what was collected has been linked already"
                             : api_     ? fmt::format("the session is {}, and must have been started", to_string(state_))
                                        : std::string("the recording has no process"))};
  }
  keep(std::move(trace));
  return {};
}

/// Under the lock.
void Session::keep(CpuTrace trace) {
  const auto is_of_no_host = [](const CpuOperation& operation) {
    constexpr ActivityKinds kHostKinds = {ActivityKind::cpu_op, ActivityKind::user_annotation, ActivityKind::cpu_instant_event,
                                          ActivityKind::python_function};
    return !kHostKinds.contains(operation.kind);
  };
  cpu_trace_counts_.discarded_operations += std::erase_if(trace.operations, is_of_no_host);
  ++cpu_trace_counts_.traces;
  cpu_trace_counts_.operations += trace.operations.size();
  cpu_traces_.push_back(std::move(trace));
}

Result<> Session::set_client(ProfilerClient* client) {
  const std::lock_guard lock(mutex_);
  XPU_TRY(expect(SessionState::created, "take a client"));
  participants_->set_client(client);
  return {};
}

std::vector<ParticipantReport> Session::participants() const {
  return participants_ ? participants_->reports() : std::vector<ParticipantReport>();
}

void Session::ask_participants() {
  if (!participants_) return;
  std::vector<CpuTrace> traces = participants_->process({static_cast<std::int64_t>(started_ns_), static_cast<std::int64_t>(stopped_ns_)});
  const std::lock_guard lock(mutex_);
  for (CpuTrace& trace : traces) {
    if (!stream_) {
      keep(std::move(trace));
      continue;
    }
    ++cpu_trace_counts_.discarded_traces;  // the device work was linked while the session went on
    cpu_trace_counts_.discarded_operations += trace.operations.size();
  }
}

CpuTraceCounts Session::cpu_trace_counts() const noexcept {
  const std::lock_guard lock(mutex_);
  return cpu_trace_counts_;
}

ClockDomain Session::clock_domain() const noexcept {
  if (api_) return probe::clock_domain();
  return source_.processes().empty() ? ClockDomain::monotonic : source_.processes().front().domain;
}

/// Where an operation ends that had not ended: at the stop, or with the recorded program. Where that is not known, with the last operation.
std::int64_t Session::window_end_ns() const {
  if (stopped_ns_ != 0) return static_cast<std::int64_t>(stopped_ns_);
  const trace::Manifest& manifest = source_.manifest();
  if (manifest.end.known) return static_cast<std::int64_t>(manifest.start_monotonic_ns + manifest.end.wall_ns);
  std::int64_t last_ns = 0;
  for (const CpuTrace& trace : cpu_traces_) {
    for (const CpuOperation& operation : trace.operations) last_ns = std::max({last_ns, operation.start_ns, operation.end_ns.value_or(0)});
  }
  return last_ns;
}

LinkSummary Session::with_cpu_trace_counts(LinkSummary summary) const {
  const CpuTraceCounts counts = cpu_trace_counts();
  summary.discarded_cpu_traces = counts.discarded_traces;
  summary.discarded_cpu_operations = counts.discarded_operations;
  return summary;
}

// ---- linking

Result<> Session::collect_if_live() {
  if (!api_ || state() == SessionState::collected) return {};
  return collect();
}

Result<LinkSummary> Session::run(std::vector<Sink*> sinks) {
  if (stream_ && sinks != sinks_)
    return Error{ErrorCode::failed_precondition, "the session was handed over while it went on, and keeps nothing for other sinks"};
  XPU_TRY(collect_if_live());
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = !std::exchange(has_run_, true);
  }
  if (is_first) ask_participants();
  participant_reports_ = participants();
  if (stream_) {
    XPU_TRY_ASSIGN(LinkSummary summary, stream_->finish(filtered_sink()));
    if (filtering_) summary.left_out = filtering_->left_out();
    return with_cpu_trace_counts(summary);
  }
  running_ = std::move(sinks);
  linker_ = std::make_unique<Linker>(source_);
  if (!cpu_traces_.empty()) linker_->set_cpu_traces(cpu_traces_, api_ ? config_.kinds : default_activity_kinds(), window_end_ns());
  device_annotations_ = wants(ActivityKind::gpu_user_annotation) ? std::make_unique<DeviceAnnotations>() : nullptr;
  if (config_.filter.is_empty()) {
    XPU_TRY_ASSIGN(const LinkSummary summary, linker_->run(*this));
    return with_cpu_trace_counts(summary);
  }
  FilteringSink filtering(*this, config_.filter, wanted_kernels_.get());
  XPU_TRY_ASSIGN(LinkSummary summary, linker_->run(filtering));
  summary.left_out = filtering.left_out();
  return with_cpu_trace_counts(summary);
}

Result<> Session::advance() {
  {
    const std::lock_guard lock(mutex_);
    if (!api_) return Error{ErrorCode::failed_precondition, "a session over a recording cannot advance"};
    if (state_ != SessionState::stopped) XPU_TRY(expect(SessionState::collecting, "advance"));
  }
  // Without the lock: who toggles must not wait for a device or a disk.
  if (!stream_) {
    stream_ = std::make_unique<SessionStream>(*api_);
    running_ = sinks_;
    if (!config_.filter.is_empty()) filtering_ = std::make_unique<FilteringSink>(*this, config_.filter, wanted_kernels_.get());
  }
  return stream_->advance(filtered_sink());
}

Sink& Session::filtered_sink() noexcept {
  if (filtering_) return *filtering_;
  return *this;
}

std::uint64_t Session::fetch() {
  if (!api_) return 0;
  api_->fetch();
  return api_->recorded_bytes();
}

StreamCounts Session::stream_counts() const noexcept { return stream_ ? stream_->counts() : StreamCounts{}; }

Result<trace::Conservation> Session::take_stream_books() {
  if (!stream_) return Error{ErrorCode::failed_precondition, "the session was not advanced"};
  return stream_->take_books();
}

const Definitions& Session::definitions() const noexcept { return stream_ ? stream_->definitions() : linker_->definitions(); }

void Session::begin(const SessionInfo& linked) {
  SessionInfo info = linked;
  if (distributed_info_) info.distributed = &*distributed_info_;
  info.participants = participant_reports_;
  for (Sink* sink : running_) sink->begin(info);
}

/// No command may point to a call that is not part of the profile.
template <typename DeviceKind>
void Session::hand_over(void (Sink::*handle)(const DeviceKind&), const DeviceKind& activity) {
  if (activity.ends_late && !config_.keeps_late_commands) return;
  if (device_annotations_) device_annotations_->add(activity);
  if (shows_last_call_) {
    for (Sink* sink : running_) (sink->*handle)(activity);
    return;
  }
  DeviceKind alone = activity;
  alone.call = nullptr;
  for (Sink* sink : running_) (sink->*handle)(alone);
}

void Session::handle_runtime_activity(const RuntimeActivity& activity) {
  shows_last_call_ = wants(ActivityKind::xpu_runtime);
  if (!shows_last_call_) return;
  for (Sink* sink : running_) sink->handle_runtime_activity(activity);
}
void Session::handle_driver_activity(const DriverActivity& activity) {
  shows_last_call_ = wants(ActivityKind::xpu_driver);
  if (!shows_last_call_) return;
  for (Sink* sink : running_) sink->handle_driver_activity(activity);
}
void Session::handle_external_correlation_activity(const ExternalCorrelationActivity& activity) {
  if (!wants(ActivityKind::external_correlation)) return;
  for (Sink* sink : running_) sink->handle_external_correlation_activity(activity);
}
void Session::handle_kernel_activity(const KernelActivity& activity) {
  if (wants(ActivityKind::kernel)) hand_over(&Sink::handle_kernel_activity, activity);
}
void Session::handle_memcpy_activity(const MemcpyActivity& activity) {
  if (wants(ActivityKind::gpu_memcpy)) hand_over(&Sink::handle_memcpy_activity, activity);
}
void Session::handle_peer_memcpy_activity(const PeerMemcpyActivity& activity) {
  if (wants(ActivityKind::gpu_memcpy)) hand_over(&Sink::handle_peer_memcpy_activity, activity);
}
void Session::handle_memset_activity(const MemsetActivity& activity) {
  if (wants(ActivityKind::gpu_memset)) hand_over(&Sink::handle_memset_activity, activity);
}
void Session::handle_command_activity(const CommandActivity& activity) { hand_over(&Sink::handle_command_activity, activity); }
void Session::handle_synchronization_activity(const SynchronizationActivity& activity) {
  if (!wants(ActivityKind::xpu_sync) || (!config_.shows_stream_waits && activity.type == WaitType::stream_on_event)) return;
  for (Sink* sink : running_) sink->handle_synchronization_activity(activity);
}
void Session::handle_overhead_activity(const OverheadActivity& activity) {
  if (!wants(ActivityKind::overhead)) return;
  for (Sink* sink : running_) sink->handle_overhead_activity(activity);
}
void Session::handle_communication_activity(const CommunicationActivity& activity) {
  if (!wants(ActivityKind::collective_comm)) return;
  for (Sink* sink : running_) sink->handle_communication_activity(activity);
}
void Session::handle_memory_activity(const MemoryActivity& activity) {
  if (api_ && !config_.with_memory) return;
  for (Sink* sink : running_) sink->handle_memory_activity(activity);
}
void Session::handle_annotation_activity(const AnnotationActivity& activity) {
  if (!wants(ActivityKind::user_annotation)) return;
  for (Sink* sink : running_) sink->handle_annotation_activity(activity);
}
void Session::handle_loss_activity(const LossActivity& activity) {
  for (Sink* sink : running_) sink->handle_loss_activity(activity);
}

Result<> Session::flush(const LinkSummary& so_far) {
  Result<> first;
  for (Sink* sink : running_) {
    Result<> result = sink->flush(so_far);
    if (!result && first) first = std::move(result);
  }
  return first;
}

void Session::handle_cpu_operation_activity(const CpuOperationActivity& activity) {
  for (Sink* sink : running_) sink->handle_cpu_operation_activity(activity);
}

void Session::hand_over_device_annotations() {
  if (!device_annotations_) return;
  device_annotations_->hand_over([&](const DeviceAnnotationActivity& activity) {
    for (Sink* sink : running_) sink->handle_device_annotation_activity(activity);
  });
  device_annotations_.reset();
}

Result<> Session::end(const LinkSummary& linked) {
  hand_over_device_annotations();
  const LinkSummary summary = with_cpu_trace_counts(linked);
  Result<> first;
  for (Sink* sink : running_) {
    Result<> result = sink->end(summary);
    if (!result && first) first = std::move(result);
  }
  return first;
}

}  // namespace xpu::profiler
