#include "profiler/link/lanes.hpp"

#include <functional>
#include <limits>

namespace xpu::profiler {

Placement LaneAssigner::place(const Span& span) {
  while (!busy_.empty() && busy_.top().shown_end_ns <= span.start_ns) {
    free_.push(busy_.top().lane);
    busy_.pop();
  }

  Placement placement;
  bool nudged = false;
  if (!busy_.empty() && (free_.empty() || busy_.top().lane < free_.top())) {
    const Busy& earliest = busy_.top();
    const std::uint64_t nudge = static_cast<std::uint64_t>(earliest.shown_end_ns - span.start_ns);
    const std::int64_t overlap = earliest.end_ns - span.start_ns;
    const bool artefact = overlap <= 0 || static_cast<std::uint64_t>(overlap) <= earliest.tolerance_ns;
    nudged = artefact && nudge <= span.error_ns && nudge <= std::numeric_limits<std::uint32_t>::max();
    if (nudged) {
      placement = {earliest.lane, static_cast<std::uint32_t>(nudge)};
      busy_.pop();
    }
  }
  if (!nudged) {
    if (free_.empty()) {
      placement.lane = lanes_++;
    } else {
      placement.lane = free_.top();
      free_.pop();
    }
  }

  const std::int64_t end_ns = span.start_ns + static_cast<std::int64_t>(span.duration_ns);
  busy_.push({end_ns + placement.nudge_ns, placement.lane, end_ns, 2 + span.duration_ns / 1000});
  return placement;
}

}  // namespace xpu::profiler
