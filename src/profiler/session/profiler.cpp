#include "xpu/profiler/profiler.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/service_thread.hpp"
#include "profiler/session/memory_recording.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/profiler/outputs.hpp"
#include "xpu/profiler/session.hpp"

namespace xpu::profiler {
namespace {

/// How often what a warm-up recorded is thrown away.
constexpr std::chrono::milliseconds kWarmUpRound{50};

Schedule::Now system_now() {
  return {static_cast<std::int64_t>(now_ns(ClockDomain::monotonic) / 1'000'000),
          static_cast<std::int64_t>(now_ns(ClockDomain::realtime) / 1'000'000),
          {}};
}

Result<ExportSummary> write_trace(Session& session, const Config& config, const std::string& path) {
  ExportOptions options;
  options.path = path;
  if (!config.trace_id.empty()) options.metadata.emplace_back("trace_id", config.trace_id);
  if (!config.group_trace_id.empty()) options.metadata.emplace_back("group_trace_id", config.group_trace_id);
  return export_as_named(session, options);
}

/// When to begin is the same for memory, how long is not, and there is nothing to warm up.
Config schedule_of(const Config& config) {
  if (!config.takes_memory_snapshot) return config;
  Config plan = config;
  plan.duration = config.memory_snapshot_duration;
  plan.iterations = 0;
  plan.warmup_duration = std::chrono::seconds(0);
  plan.warmup_iterations = 0;
  return plan;
}

}  // namespace

std::string_view to_string(ProfileStage stage) noexcept {
  switch (stage) {
    case ProfileStage::warm_up: return "Warm Up";
    case ProfileStage::collection: return "Collection";
    case ProfileStage::post_processing: return "Post Processing";
    case ProfileStage::cancellation: return "Cancellation";
  }
  return "unknown";
}

ProfilerObserver::~ProfilerObserver() = default;

struct Profiler::Impl {
  explicit Impl(Options profiler_options) : options(std::move(profiler_options)) {
    if (!options.now) options.now = system_now;
  }

  /// One profile, from the plan to its trace.
  struct Profile {
    Config config;
    std::string path;
    Schedule schedule;
    std::unique_ptr<Session> session;         // made when it begins to record
    std::unique_ptr<MemoryRecording> memory;  // of a memory snapshot, likewise
    std::string problem;
    bool is_being_written = false;
    bool is_stepping = false;  // its session calls others: nobody holds the lock
  };
  using Lock = std::unique_lock<std::mutex>;

  Schedule::Now now() const {
    Schedule::Now present = options.now();
    if (has_stepped) present.iterations = iterations;
    return present;
  }
  Result<std::string> path_of(const Config& config) const {
    if (config.takes_memory_snapshot) return memory_snapshot_path(config, options.folder, options.is_confined, getpid());
    if (options.is_confined) return confined_trace_path(config, options.folder, getpid());
    std::string path = trace_path(config, options.folder, getpid());
    XPU_TRY(check_output(path));
    return path;
  }

  void follow_schedule(Lock& lock);
  bool take_step(Lock& lock, Result<> (Session::*action)());
  bool follow_once(Lock& lock);
  void begin_memory(Lock& lock);
  static ProfileResult write(Profile& ended);
  void tell_stage(Lock& lock, ProfileStage stage);
  void end_profile(Lock& lock);
  void throw_warm_up_away();
  void run();
  std::chrono::milliseconds until_next_change() const;

  Options options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t iterations = 0;
  bool has_stepped = false;
  std::optional<Profile> profile;
  ProfileResult last;
  bool quits = false;
  std::thread thread;
  Result<> thread_started;
  const pid_t process = getpid();
};

/// Brings the session to where the schedule is. The lock is let go while the session takes a step, of which it tells others, while the
/// observer is told and while the trace is written.
void Profiler::Impl::follow_schedule(Lock& lock) {
  // The schedule may have gone on meanwhile.
  while (profile && !profile->is_being_written && !profile->is_stepping && follow_once(lock)) {
  }
}

bool Profiler::Impl::take_step(Lock& lock, Result<> (Session::*action)()) {
  profile->is_stepping = true;
  Session& session = *profile->session;
  lock.unlock();
  const Result<> result = (session.*action)();
  lock.lock();
  profile->is_stepping = false;
  changed.notify_all();
  if (result) return true;
  profile->problem = result.error().message;
  profile->schedule.cancel(profile->problem);
  return false;
}

/// True when there may be more to do.
bool Profiler::Impl::follow_once(Lock& lock) {
  if (profile->config.takes_memory_snapshot) {
    begin_memory(lock);
    return false;
  }
  const ScheduleState state = profile->schedule.state();
  const auto session_is = [&](SessionState wanted) { return profile->session && profile->session->state() == wanted; };
  if (!profile->session && (state == ScheduleState::warmup || state == ScheduleState::collecting)) {
    profile->session = std::make_unique<Session>(profile->config);
    static_cast<void>(profile->session->set_client(options.client));  // it was made just now
  }
  if (state == ScheduleState::warmup && session_is(SessionState::created)) {
    if (take_step(lock, &Session::prepare)) tell_stage(lock, ProfileStage::warm_up);
    return true;
  }
  if (state == ScheduleState::collecting && (session_is(SessionState::created) || session_is(SessionState::warmup))) {
    if (take_step(lock, &Session::start)) tell_stage(lock, ProfileStage::collection);
    return true;
  }
  if (state == ScheduleState::ended && session_is(SessionState::collecting)) {
    static_cast<void>(take_step(lock, &Session::stop));
    return true;
  }
  if (state == ScheduleState::cancelled && !options.has_thread) end_profile(lock);
  return false;
}

/// Of a memory snapshot there is only the begin to follow: its end is its file.
void Profiler::Impl::begin_memory(Lock& lock) {
  if (profile->schedule.state() == ScheduleState::collecting && profile->memory == nullptr) {
    Result<std::unique_ptr<MemoryRecording>> recording = MemoryRecording::begin(profile->config.with_stack);
    if (recording) {
      profile->memory = *std::move(recording);
      return tell_stage(lock, ProfileStage::collection);
    }
    profile->problem = recording.error().message;
    profile->schedule.cancel(profile->problem);
  }
  if (profile->schedule.state() == ScheduleState::cancelled && !options.has_thread) end_profile(lock);
}

ProfileResult Profiler::Impl::write(Profile& ended) {
  ProfileResult result;
  const auto came_out = [&](const auto& written) {
    result.is_written = static_cast<bool>(written);
    if (!written) result.problem = written.error().message;
    return result.is_written;
  };
  if (ended.memory != nullptr) {
    if (came_out(ended.memory->write(ended.path))) result.path = ended.path;
    return result;
  }
  Result<ExportSummary> written = write_trace(*ended.session, ended.config, ended.path);
  if (came_out(written)) {
    result.path = written->path;
    result.trace = std::move(*written);
  }
  return result;
}

void Profiler::Impl::tell_stage(Lock& lock, ProfileStage stage) {
  if (options.observer == nullptr) return;
  lock.unlock();
  options.observer->stage_began(stage);
  lock.lock();
}

/// Writes the trace of a profile that has ended, or gives it up.
void Profiler::Impl::end_profile(Lock& lock) {
  if (!profile || profile->is_being_written || profile->is_stepping) return;
  const ScheduleState state = profile->schedule.state();
  if (state != ScheduleState::ended && state != ScheduleState::cancelled) return;
  profile->is_being_written = true;
  Profile& ended = *profile;  // nobody else touches it now
  lock.unlock();

  ProfileResult result;
  const bool has_something = ended.session != nullptr || ended.memory != nullptr;
  if (state == ScheduleState::ended && has_something && ended.problem.empty()) {
    if (options.observer != nullptr) options.observer->stage_began(ProfileStage::post_processing);
    result = write(ended);
  } else {
    if (options.observer != nullptr) options.observer->stage_began(ProfileStage::cancellation);
    if (ended.session) ended.session->cancel();
    result.problem = ended.problem;
  }
  result.remarks = ended.schedule.remarks();
  if (ended.session) {
    for (const ParticipantReport& participant : ended.session->participants()) {
      for (const std::string& error : participant.errors) result.remarks.push_back(participant.name + ": " + error);
    }
  }
  ended.session.reset();
  ended.memory.reset();
  if (options.observer != nullptr) options.observer->profile_ended(result);

  lock.lock();
  last = std::move(result);
  profile.reset();
  changed.notify_all();
}

void Profiler::Impl::throw_warm_up_away() {
  if (profile && profile->session && profile->session->state() == SessionState::warmup) profile->session->discard_warm_up();
}

std::chrono::milliseconds Profiler::Impl::until_next_change() const {
  std::chrono::milliseconds wait{1'000};
  if (!profile) return wait;
  if (profile->schedule.state() == ScheduleState::warmup) wait = kWarmUpRound;
  if (const auto next = profile->schedule.next_change_ms()) {
    wait = std::min(wait, std::chrono::milliseconds(std::max<std::int64_t>(*next - options.now().ms, 0)));
  }
  return wait;
}

void Profiler::Impl::run() {
  Lock lock(mutex);
  while (!quits) {
    if (profile && !profile->is_being_written) {
      profile->schedule.advance(options.now().ms);
      follow_schedule(lock);
      throw_warm_up_away();
      end_profile(lock);
    }
    if (quits) break;
    changed.wait_for(lock, until_next_change());
  }
  if (profile) {
    if (profile->problem.empty()) profile->problem = "the profiler ended";
    profile->schedule.cancel(profile->problem);
    end_profile(lock);
  }
}

Profiler::Profiler(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {
  if (!impl_->options.has_thread) return;
  Result<std::thread> started = base::start_service_thread("xpu-profiler", [impl = impl_.get()] { impl->run(); });
  if (started) {
    impl_->thread = *std::move(started);
  } else {
    impl_->thread_started = started.error();
  }
}

Profiler::~Profiler() {
  if (impl_->process != getpid()) {
    static_cast<void>(impl_.release());  // a forked child: the thread, and who held the lock, are the parent's
    return;
  }
  if (!impl_->thread.joinable()) {
    cancel("the profiler ended");
    return;
  }
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->quits = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

Result<> Profiler::schedule(const Config& config) {
  if (!config.is_enabled) return Error{ErrorCode::failed_precondition, "the configuration says ACTIVITIES_ENABLED=false"};
  if (impl_->process != getpid())
    return Error{ErrorCode::unavailable, "the profiler is that of the process from which this one was forked; make one here"};
  XPU_TRY(impl_->thread_started);
  XPU_TRY_ASSIGN(std::string path, impl_->path_of(config));
  Impl::Lock lock(impl_->mutex);
  if (impl_->profile) {
    return Error{ErrorCode::failed_precondition,
                 fmt::format("another profile is {}",
                             impl_->profile->is_being_written ? "being written" : to_string(impl_->profile->schedule.state()))};
  }
  XPU_TRY(check_config(config));
  XPU_TRY_ASSIGN(Schedule schedule, Schedule::plan(schedule_of(config), impl_->now()));
  impl_->profile.emplace(Impl::Profile{config, std::move(path), std::move(schedule), nullptr, nullptr, {}, false, false});
  impl_->follow_schedule(lock);
  impl_->changed.notify_all();
  return {};
}

void Profiler::step() {
  Impl::Lock lock(impl_->mutex);
  impl_->has_stepped = true;
  ++impl_->iterations;
  if (!impl_->profile || impl_->profile->is_being_written) return;
  const ScheduleState before = impl_->profile->schedule.state();
  if (impl_->profile->schedule.step(impl_->options.now().ms) == before) return;
  impl_->follow_schedule(lock);
  impl_->changed.notify_all();
}

void Profiler::advance() {
  Impl::Lock lock(impl_->mutex);
  if (!impl_->profile || impl_->profile->is_being_written) return;
  impl_->profile->schedule.advance(impl_->options.now().ms);
  impl_->follow_schedule(lock);
  if (impl_->options.has_thread) {
    impl_->changed.notify_all();
  } else {
    impl_->throw_warm_up_away();
    impl_->end_profile(lock);
  }
}

void Profiler::cancel(std::string reason) {
  Impl::Lock lock(impl_->mutex);
  if (!impl_->profile || impl_->profile->is_being_written || impl_->profile->schedule.state() == ScheduleState::ended) return;
  impl_->profile->problem = reason;
  impl_->profile->schedule.cancel(std::move(reason));
  if (impl_->options.has_thread) {
    impl_->changed.notify_all();
  } else {
    impl_->end_profile(lock);
  }
}

bool Profiler::is_busy() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->profile.has_value();
}

ProfileResult Profiler::wait() {
  Impl::Lock lock(impl_->mutex);
  if (impl_->options.has_thread) impl_->changed.wait(lock, [&] { return !impl_->profile; });
  return impl_->last;
}

}  // namespace xpu::profiler
