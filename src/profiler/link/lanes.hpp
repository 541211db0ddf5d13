#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace xpu::profiler {

/// One command on the time axis of its queue.
struct Span {
  std::int64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t error_ns = 0;  ///< How far off the start may be.
};

struct Placement {
  std::uint32_t lane = 0;
  std::uint32_t nudge_ns = 0;  ///< The start is to be drawn this much later.
};

/// Spreads the commands of one queue over lanes so that those on one lane do not overlap; viewers drop or misplace slices that do. The
/// lowest free lane is taken, so a queue whose commands ran one after the other has lane 0 only. One owner at a time.
///
/// Durations come from device ticks and starts from a map with a slope of its own, so two commands that ran back to back may seem to
/// overlap by the drift between the two clocks. An overlap of at most 0.1 % of the earlier command and 2 ns is taken for that: the later
/// command stays on the lane, nudged behind the earlier one, as long as the nudge is within its error. Everything else is a real overlap.
class LaneAssigner {
 public:
  /// Spans in the order of their starts. O(log lanes). One that comes too late, after one that starts later, gets a lane on which
  /// everything has ended before it; O(lanes).
  Placement place(const Span& span);

 private:
  struct Busy {
    std::int64_t shown_end_ns;
    std::uint32_t lane;
    std::int64_t end_ns;  // not nudged
    std::uint64_t tolerance_ns;
    bool operator>(const Busy& other) const {
      return shown_end_ns != other.shown_end_ns ? shown_end_ns > other.shown_end_ns : lane > other.lane;
    }
  };

  Placement place_late(const Span& span);
  void occupy(const Span& span, const Placement& placement);
  void free(std::uint32_t lane);
  void take_lowest_free();
  /// A late span took the lane, which the entry does not know.
  bool is_outdated(const Busy& entry) const { return entry.shown_end_ns != shown_ends_ns_[entry.lane]; }

  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::vector<std::int64_t> shown_ends_ns_;  // by lane
  std::vector<bool> is_free_;                // by lane: it stands in `free_`, perhaps wrongly, after a late span
  std::int64_t last_start_ns_ = INT64_MIN;
};

}  // namespace xpu::profiler
