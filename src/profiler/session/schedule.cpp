#include "xpu/profiler/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace xpu::profiler {

std::string_view to_string(ScheduleState state) noexcept {
  switch (state) {
    case ScheduleState::waiting: return "waiting";
    case ScheduleState::warmup: return "warmup";
    case ScheduleState::collecting: return "collecting";
    case ScheduleState::ended: return "ended";
    case ScheduleState::cancelled: return "cancelled";
  }
  return "unknown";
}

Result<Schedule> Schedule::plan(const Config& config, const Now& now) {
  XPU_TRY(check_config(config));
  Schedule schedule;
  schedule.duration_ms_ = config.duration.count();
  schedule.iteration_ = now.iterations.value_or(0);
  const bool wants_iteration = config.start_iteration || config.iteration_multiple;
  if (wants_iteration && !now.iterations) {
    return Error{ErrorCode::failed_precondition,
                 "the profile is to start at an iteration, but the program never said that one begins; it must call step()"};
  }
  if (now.iterations) {
    schedule.iterations_ = config.iterations;
  } else if (config.iterations != 0) {
    if (schedule.duration_ms_ <= 0) schedule.duration_ms_ = Config().duration.count();
    schedule.remarks_.push_back(
        fmt::format("{} iterations were asked for, but the program never said that one begins: {} ms are collected instead",
                    config.iterations, schedule.duration_ms_));
  }
  if (wants_iteration || (schedule.iterations_ != 0 && !config.start_time_unix_ms)) {
    schedule.plan_iterations(config, *now.iterations);
  } else {
    XPU_TRY(check_start_time(config, now.unix_ms));
    schedule.plan_time(config, now);
  }
  schedule.change_as_due(now.ms);
  return schedule;
}

/// Iterations that have begun are past: the first that can be the start is the next one, behind the warm-up.
void Schedule::plan_iterations(const Config& config, std::uint64_t begun) {
  warmup_iterations_ = config.warmup_iterations;
  has_warmup_ = warmup_iterations_ != 0;
  const std::uint64_t earliest = begun + 1 + warmup_iterations_;
  std::uint64_t start = std::max<std::uint64_t>(config.start_iteration.value_or(0), earliest);
  if (const std::uint64_t multiple = config.iteration_multiple.value_or(0); multiple != 0) {
    start = (start + multiple - 1) / multiple * multiple;
  }
  start_iteration_ = start;
  if (config.start_iteration && *config.start_iteration < earliest) {
    remarks_.push_back(fmt::format("iteration {} is past, or too near for {} of warm-up: the profile starts at iteration {}",
                                   *config.start_iteration, warmup_iterations_, start));
  }
}

void Schedule::plan_time(const Config& config, const Now& now) {
  const std::int64_t warmup_ms = std::chrono::milliseconds(config.warmup_duration).count();
  start_ms_ = now.ms + warmup_ms;
  if (config.start_time_unix_ms) {
    const std::int64_t wait_ms = *config.start_time_unix_ms - now.unix_ms;
    start_ms_ = now.ms + std::max<std::int64_t>(wait_ms, 0);
    if (wait_ms < 0) {
      remarks_.push_back(fmt::format("the profile was to start {} ms ago: it starts at once and without warm-up", -wait_ms));
    } else if (wait_ms < warmup_ms) {
      remarks_.push_back(fmt::format("there are {} ms until the start for a warm-up of {}", wait_ms, warmup_ms));
    }
  }
  warmup_ms_ = std::max(start_ms_ - warmup_ms, now.ms);
  has_warmup_ = warmup_ms_ < start_ms_;
}

bool Schedule::is_due(std::int64_t ms) const noexcept {
  switch (state_) {
    case ScheduleState::waiting:
      if (!starts_by_iteration()) return ms >= (has_warmup_ ? warmup_ms_ : start_ms_);
      return iteration_ + (has_warmup_ ? warmup_iterations_ : 0) >= *start_iteration_;
    case ScheduleState::warmup: return starts_by_iteration() ? iteration_ >= *start_iteration_ : ms >= start_ms_;
    case ScheduleState::collecting: return iterations_ != 0 ? iteration_ >= end_iteration_ : ms >= end_ms_;
    case ScheduleState::ended:
    case ScheduleState::cancelled: break;
  }
  return false;
}

ScheduleState Schedule::change_as_due(std::int64_t ms) {
  while (is_due(ms)) {
    if (state_ == ScheduleState::collecting) {
      state_ = ScheduleState::ended;
    } else if (state_ == ScheduleState::waiting && has_warmup_) {
      state_ = ScheduleState::warmup;
    } else {
      state_ = ScheduleState::collecting;
      end_iteration_ = iteration_ + iterations_;
      end_ms_ = ms + duration_ms_;
    }
  }
  return state_;
}

ScheduleState Schedule::advance(std::int64_t ms) { return change_as_due(ms); }

ScheduleState Schedule::step(std::int64_t ms) {
  ++iteration_;
  return change_as_due(ms);
}

void Schedule::cancel(std::string reason) {
  if (state_ == ScheduleState::ended || state_ == ScheduleState::cancelled) return;
  remarks_.push_back(fmt::format("cancelled while {}: {}", to_string(state_), reason));
  state_ = ScheduleState::cancelled;
}

std::optional<std::int64_t> Schedule::next_change_ms() const noexcept {
  switch (state_) {
    case ScheduleState::waiting:
      if (!starts_by_iteration()) return has_warmup_ ? warmup_ms_ : start_ms_;
      break;
    case ScheduleState::warmup:
      if (!starts_by_iteration()) return start_ms_;
      break;
    case ScheduleState::collecting:
      if (iterations_ == 0) return end_ms_;
      break;
    case ScheduleState::ended:
    case ScheduleState::cancelled: break;
  }
  return std::nullopt;
}

}  // namespace xpu::profiler
