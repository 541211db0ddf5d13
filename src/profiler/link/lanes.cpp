#include "profiler/link/lanes.hpp"

#include <limits>

namespace xpu::profiler {

Placement LaneAssigner::place(const Span& span) {
  if (span.start_ns < last_start_ns_) return place_late(span);
  last_start_ns_ = span.start_ns;
  while (!busy_.empty() && (busy_.top().shown_end_ns <= span.start_ns || is_outdated(busy_.top()))) {
    if (!is_outdated(busy_.top())) free(busy_.top().lane);
    busy_.pop();
  }
  // Taken by a late span since it became free: it comes back when that has ended.
  while (!free_.empty() && shown_ends_ns_[free_.top()] > span.start_ns) take_lowest_free();

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
      placement.lane = static_cast<std::uint32_t>(shown_ends_ns_.size());
    } else {
      placement.lane = free_.top();
      take_lowest_free();
    }
  }
  occupy(span, placement);
  return placement;
}

Placement LaneAssigner::place_late(const Span& span) {
  Placement placement;
  while (placement.lane < shown_ends_ns_.size() && shown_ends_ns_[placement.lane] > span.start_ns) ++placement.lane;
  occupy(span, placement);
  return placement;
}

void LaneAssigner::free(std::uint32_t lane) {
  if (!is_free_[lane]) free_.push(lane);
  is_free_[lane] = true;
}

void LaneAssigner::take_lowest_free() {
  is_free_[free_.top()] = false;
  free_.pop();
}

void LaneAssigner::occupy(const Span& span, const Placement& placement) {
  const std::int64_t end_ns = span.start_ns + static_cast<std::int64_t>(span.duration_ns);
  const std::int64_t shown_end_ns = end_ns + placement.nudge_ns;
  if (placement.lane == shown_ends_ns_.size()) {
    shown_ends_ns_.push_back(shown_end_ns);
    is_free_.push_back(false);
  }
  shown_ends_ns_[placement.lane] = shown_end_ns;
  busy_.push({shown_end_ns, placement.lane, end_ns, 2 + span.duration_ns / 1000});
}

}  // namespace xpu::profiler
