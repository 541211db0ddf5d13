#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace xpu::cli {

/// When to record, from --delay, --duration and --start-paused. Pure: it is told the time and reads no clock.
///
/// With a delay or a paused start the recording starts paused. The duration counts from each resume, by the clock or by the signal.
class PauseSchedule {
 public:
  struct Options {
    std::uint64_t delay_ns = 0;
    std::optional<std::uint64_t> duration_ns;
    bool start_paused = false;  ///< Until `toggle`; excludes a delay.
  };

  PauseSchedule(const Options& options, std::uint64_t start_ns)
      : duration_ns_(options.duration_ns), paused_(options.start_paused || options.delay_ns > 0) {
    if (!paused_) {
      started(start_ns);
    } else if (!options.start_paused) {
      next_ns_ = start_ns + options.delay_ns;
    }
  }

  static bool starts_paused(const Options& options) { return options.start_paused || options.delay_ns > 0; }

  bool paused() const { return paused_; }
  /// When `advance` has something to do next; the largest number when it never has.
  std::uint64_t next_ns() const { return next_ns_; }

  /// True when `paused()` changed.
  bool advance(std::uint64_t time_ns) {
    if (time_ns < next_ns_) return false;
    set(!paused_, time_ns);
    return true;
  }

  void toggle(std::uint64_t time_ns) { set(!paused_, time_ns); }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  void started(std::uint64_t time_ns) { next_ns_ = duration_ns_ ? time_ns + *duration_ns_ : kNever; }
  void set(bool paused, std::uint64_t time_ns) {
    paused_ = paused;
    next_ns_ = kNever;
    if (!paused) started(time_ns);
  }

  std::optional<std::uint64_t> duration_ns_;
  bool paused_;
  std::uint64_t next_ns_ = kNever;
};

}  // namespace xpu::cli
