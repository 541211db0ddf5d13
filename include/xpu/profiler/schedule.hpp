#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/profiler/config.hpp"

namespace xpu::profiler {

enum class ScheduleState : std::uint8_t {
  waiting,     ///< For its warm-up, or for its start where there is none.
  warmup,      ///< Records flow and are thrown away, so that the first ones that count are not the slow ones.
  collecting,  ///< What happens now is the profile.
  ended,       ///< All of it was collected.
  cancelled,
};
XPU_EXPORT std::string_view to_string(ScheduleState state) noexcept;

/// When a profile warms up, collects and ends, by time or by the iterations of a program. Has no clock and no thread of its own: it is told
/// what time it is and when an iteration begins, so that a test can be a year. One owner at a time.
///
/// Warm-up and collection that are counted in iterations change at the begin of one; those of a length in time change when
/// `advance` says so. A state is never left out: a late `advance` goes through all of them, and `collecting` begins when it is said, not
/// when it should have been, so that the profile has its whole length.
class XPU_EXPORT Schedule {
 public:
  /// Times of any one clock that only goes forward, in milliseconds.
  struct Now {
    std::int64_t ms = 0;
    std::int64_t unix_ms = 0;  ///< At the same moment, for `Config::start_time_unix_ms`.
    /// Iterations that have begun; nothing when the program never said that one does.
    std::optional<std::uint64_t> iterations = {};
  };

  /// Errors: what `check_config` and `check_start_time` refuse; failed_precondition when it is to start at an iteration and the program
  /// does not count any. A profile of some iterations in such a program has a length in time instead, which `remarks` says.
  static Result<Schedule> plan(const Config& config, const Now& now);

  ScheduleState state() const noexcept { return state_; }
  /// The time is that, which must not go back; returns the state.
  ScheduleState advance(std::int64_t ms);
  /// An iteration begins: the number `iterations` of `Now`, one more each time.
  ScheduleState step(std::int64_t ms);
  /// For good, with a reason for whoever asked for the profile. Nothing after the end.
  void cancel(std::string reason);

  /// When `advance` changes the state, so that nobody has to ask before; nothing when only an iteration does.
  std::optional<std::int64_t> next_change_ms() const noexcept;
  /// Sentences about what is not as it was asked for: a start that was late, an iteration that was past, why it was cancelled.
  const std::vector<std::string>& remarks() const noexcept { return remarks_; }
  /// The first iteration that is collected, where it starts by iterations.
  std::optional<std::uint64_t> start_iteration() const noexcept { return start_iteration_; }

 private:
  Schedule() = default;
  void plan_iterations(const Config& config, std::uint64_t begun);
  void plan_time(const Config& config, const Now& now);
  bool is_due(std::int64_t ms) const noexcept;
  ScheduleState change_as_due(std::int64_t ms);
  bool starts_by_iteration() const noexcept { return start_iteration_.has_value(); }

  ScheduleState state_ = ScheduleState::waiting;
  std::uint64_t iteration_ = 0;  // that has begun
  std::optional<std::uint64_t> start_iteration_;
  std::uint64_t warmup_iterations_ = 0;
  std::int64_t warmup_ms_ = 0, start_ms_ = 0;  // when they begin, where it starts by time
  bool has_warmup_ = false;
  std::uint64_t iterations_ = 0;  // to collect; 0: by duration
  std::int64_t duration_ms_ = 0;
  std::uint64_t end_iteration_ = 0;  // known once it collects
  std::int64_t end_ms_ = 0;
  std::vector<std::string> remarks_;
};

}  // namespace xpu::profiler
