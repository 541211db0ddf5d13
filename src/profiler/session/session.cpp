#include "xpu/profiler/session.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "base/probe.hpp"
#include "profiler/expression.hpp"
#include "profiler/session/filtering_sink.hpp"
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
Session::Session(Config config) : config_(std::move(config)), api_(std::make_unique<ActivityApi>()), source_(*api_) {}
Session::~Session() = default;

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
  const std::lock_guard lock(mutex_);
  return prepare_locked();
}

void Session::discard_warm_up() {
  const std::lock_guard lock(mutex_);
  if (state_ == SessionState::warmup) api_->drop_recorded();
}

Result<> Session::start() {
  const std::lock_guard lock(mutex_);
  if (state_ == SessionState::created) XPU_TRY(prepare_locked());
  XPU_TRY(expect(SessionState::warmup, "start"));
  api_->discard();
  state_ = SessionState::collecting;
  return {};
}

void Session::toggle(bool collect) noexcept {
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
}

Result<> Session::stop() {
  const std::lock_guard lock(mutex_);
  XPU_TRY(expect(SessionState::collecting, "stop"));
  api_->stop();
  state_ = SessionState::stopped;
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
  const std::lock_guard lock(mutex_);
  if (!api_) return;
  api_->disable();
  api_->forget();
  state_ = SessionState::cancelled;
}

SessionState Session::state() const noexcept {
  const std::lock_guard lock(mutex_);
  return state_;
}

// ---- linking

Result<> Session::collect_if_live() {
  if (!api_ || state() == SessionState::collected) return {};
  return collect();
}

Result<LinkSummary> Session::run(std::vector<Sink*> sinks) {
  XPU_TRY(collect_if_live());
  running_ = std::move(sinks);
  linker_ = std::make_unique<Linker>(source_);
  if (config_.filter.is_empty()) return linker_->run(*this);
  FilteringSink filtering(*this, config_.filter, wanted_kernels_.get());
  XPU_TRY_ASSIGN(LinkSummary summary, linker_->run(filtering));
  summary.left_out = filtering.left_out();
  return summary;
}

void Session::begin(const SessionInfo& info) {
  for (Sink* sink : running_) sink->begin(info);
}

/// No command may point to a call that is not part of the profile.
template <typename DeviceKind>
void Session::hand_over(void (Sink::*handle)(const DeviceKind&), const DeviceKind& activity) {
  if (activity.ends_late && !config_.keeps_late_commands) return;
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

Result<> Session::end(const LinkSummary& summary) {
  Result<> first;
  for (Sink* sink : running_) {
    Result<> result = sink->end(summary);
    if (!result && first) first = std::move(result);
  }
  return first;
}

}  // namespace xpu::profiler
