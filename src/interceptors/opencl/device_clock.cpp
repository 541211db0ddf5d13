#include "interceptors/opencl/device_clock.hpp"

#include <algorithm>
#include <limits>

#include "interceptors/opencl/layer_state.hpp"

namespace xpu::interceptors::opencl {
namespace {

constexpr std::uint32_t kTimerChecks = 4;  // commands that must agree with the driver's timer before it is believed for good

}  // namespace

void DeviceClock::open(cl_device_id device, probe::Id id, bool has_timer, std::uint64_t tick_ns) noexcept {
  const base::MutexLock lock(mutex_);
  device_ = device;
  id_ = id;
  has_timer_ = has_timer;
  tick_ns_ = std::max<std::uint64_t>(tick_ns, 1);
  search_ = HostClockSearch(tick_ns_);
}

void DeviceClock::read() noexcept {
  const base::MutexLock lock(mutex_);
  read_now();
}

void DeviceClock::read_unless_locked() noexcept {
  if (!mutex_.try_lock()) return;
  read_now();
  mutex_.unlock();
}

void DeviceClock::read_now() noexcept {
  last_read_ns_.store(now_ns(), std::memory_order_relaxed);
  switch (method_) {
    case Method::undecided:
    case Method::timer:
      if (read_timer().after_ns != 0) {
        method_ = Method::timer;
        break;
      }
      if (method_ == Method::timer) break;  // it worked before: the driver may be half torn down
      method_ = Method::searching;
      keep_moment();
      break;
    case Method::searching: keep_moment(); break;
    case Method::host_clock: read_host_clock(); break;
    case Method::commands: break;
  }
}

void DeviceClock::observe(const WatchedCommand& command, std::uint64_t queued_ticks, std::uint64_t end_ticks) noexcept {
  const base::MutexLock lock(mutex_);
  switch (method_) {
    case Method::undecided: break;
    case Method::timer: check_timer(command, queued_ticks, end_ticks); break;
    case Method::searching:
    case Method::host_clock: search(command, queued_ticks, end_ticks); break;
    case Method::commands: publish(command.enter.before_ns, queued_ticks, command.exit_ns, probe::ClockMethod::command_bracket); break;
  }
}

DeviceClock::Bracket DeviceClock::read_timer() noexcept {
  if (!has_timer_) return {};
  Bracket best{0, 0, ~std::uint64_t{0}};
  for (int attempt = 0; attempt < kTries; ++attempt) {
    cl_ulong device_ticks = 0, host_ticks = 0;
    const std::uint64_t before_ns = now_ns();
    const cl_int result = target().clGetDeviceAndHostTimer(device_, &device_ticks, &host_ticks);
    const std::uint64_t after_ns = now_ns();
    if (result != CL_SUCCESS) return {};
    if (after_ns - before_ns < best.after_ns - best.before_ns) best = {before_ns, device_ticks, after_ns};
  }
  publish(best.before_ns, best.ticks, best.after_ns, probe::ClockMethod::device_timer);
  return best;
}

// By the specification the timer is the clock that events are stamped from. A driver for which that is not so would have every command in
// the wrong place, so the first commands are compared with a reading made right after them.
void DeviceClock::check_timer(const WatchedCommand& command, std::uint64_t queued_ticks, std::uint64_t end_ticks) noexcept {
  if (timer_checks_ >= kTimerChecks) return;
  ++timer_checks_;
  const Bracket now = read_timer();
  if (now.after_ns == 0) return;
  const std::uint64_t passed_ns = now.after_ns - command.enter.before_ns;
  const std::uint64_t slack_ns = (now.after_ns - now.before_ns) + passed_ns / 1000;
  const bool ended_before_now = end_ticks <= now.ticks + slack_ns;
  const bool queued_after_enter = now.ticks - std::min(queued_ticks, now.ticks) <= passed_ns + slack_ns;
  if (ended_before_now && queued_after_enter) return;
  ++timer_failures_;
  if (timer_failures_ < 2) return;
  method_ = Method::searching;
  search(command, queued_ticks, end_ticks);
}

void DeviceClock::search(const WatchedCommand& command, std::uint64_t queued_ticks, std::uint64_t end_ticks) noexcept {
  const bool still_fits = search_.observe({command.enter, HostMoment::now(), queued_ticks, end_ticks});
  if (search_.is_hopeless()) {
    keep_bracket(command, queued_ticks);
    use_commands();
    return;
  }
  if (method_ == Method::searching || !still_fits) {
    use_host_clock();
    return;
  }
  // In case the clock that fits now does not for ever.
  keep_bracket(command, queued_ticks);
}

void DeviceClock::use_host_clock() noexcept {
  method_ = Method::host_clock;
  domain_.store(search_.found(), std::memory_order_relaxed);
  const std::size_t index = search_.index_found();
  for (std::size_t kept = 0; kept < moments_.count; ++kept) {
    const HostMoment& moment = moments_.elements[kept];
    const std::uint64_t doubt_ns = search_.ambiguity_ns(moment);
    publish(moment.before_ns - doubt_ns, moment.shown_ns[index], moment.after_ns + doubt_ns, probe::ClockMethod::host_clock);
  }
  read_host_clock();
}

void DeviceClock::read_host_clock() noexcept {
  const ClockDomain clock = search_.found();
  Bracket best{0, 0, ~std::uint64_t{0}};
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::uint64_t before_ns = now_ns();
    const std::uint64_t ticks = now_ns(clock);
    const std::uint64_t after_ns = now_ns();
    if (after_ns - before_ns < best.after_ns - best.before_ns) best = {before_ns, ticks, after_ns};
  }
  const std::uint64_t doubt_ns = search_.ambiguity_ns(HostMoment::now());
  publish(best.before_ns - doubt_ns, best.ticks, best.after_ns + doubt_ns, probe::ClockMethod::host_clock);
}

void DeviceClock::use_commands() noexcept {
  method_ = Method::commands;
  domain_.store(ClockDomain::unknown, std::memory_order_relaxed);
  for (std::size_t kept = 0; kept < brackets_.count; ++kept) {
    const Bracket& bracket = brackets_.elements[kept];
    publish(bracket.before_ns, bracket.ticks, bracket.after_ns, probe::ClockMethod::command_bracket);
  }
  moments_.count = 0;
  brackets_.count = 0;
}

void DeviceClock::keep_moment() noexcept { moments_.add(HostMoment::now(kTries)); }

void DeviceClock::keep_bracket(const WatchedCommand& command, std::uint64_t queued_ticks) noexcept {
  brackets_.add({command.enter.before_ns, queued_ticks, command.exit_ns});
}

void DeviceClock::publish(std::uint64_t before_ns, std::uint64_t ticks, std::uint64_t after_ns, probe::ClockMethod method) noexcept {
  const probe::Subscriber* listener = listener_or_null();
  if (listener == nullptr) return;
  // OpenCL's stamps are nanoseconds, but of a counter that may move in steps: both this reading and the stamps to be mapped with it are
  // rounded down to a step, so they may differ by almost one.
  const std::uint64_t step_error_ps = std::min<std::uint64_t>((tick_ns_ - 1) * 1000, std::numeric_limits<std::uint32_t>::max());
  listener->clock({.host_before_ns = before_ns,
                   .host_after_ns = after_ns,
                   .device_ticks = ticks,
                   .device = id_,
                   .method = method,
                   .error_ps = static_cast<std::uint32_t>(step_error_ps)});
}

}  // namespace xpu::interceptors::opencl
