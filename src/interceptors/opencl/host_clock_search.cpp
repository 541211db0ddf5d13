#include "interceptors/opencl/host_clock_search.hpp"

#include <algorithm>

namespace xpu::interceptors::opencl {

HostMoment HostMoment::now(int tries) noexcept {
  HostMoment best;
  for (int attempt = 0; attempt < tries; ++attempt) {
    HostMoment moment;
    moment.before_ns = now_ns(ClockDomain::monotonic);
    moment.shown_ns[0] = moment.before_ns;
    for (std::size_t index = 1; index < kHostClocks.size(); ++index) moment.shown_ns[index] = now_ns(kHostClocks[index]);
    moment.after_ns = now_ns(ClockDomain::monotonic);
    if (attempt == 0 || moment.after_ns - moment.before_ns < best.after_ns - best.before_ns) best = moment;
  }
  return best;
}

bool HostClockSearch::observe(const CommandObservation& observation) noexcept {
  const ClockDomain before = found();
  for (std::size_t index = 0; index < kHostClocks.size(); ++index) {
    // `seen` was shown at its beginning or later, so its end is what the stamp cannot be behind.
    const std::uint64_t reading_took_ns = observation.seen.after_ns - observation.seen.before_ns;
    const bool queued_in_time = observation.enter.shown_ns[index] <= observation.queued_ticks + tick_ns_;
    const bool ended_in_time = observation.end_ticks <= observation.seen.shown_ns[index] + reading_took_ns;
    if (!queued_in_time || !ended_in_time) possible_ &= ~(1u << index);
  }
  has_observed_ = true;
  return before == ClockDomain::unknown || before == found();
}

ClockDomain HostClockSearch::found() const noexcept {
  if (!has_observed_) return ClockDomain::unknown;
  const std::size_t index = index_found();
  return index < kHostClocks.size() ? kHostClocks[index] : ClockDomain::unknown;
}

std::size_t HostClockSearch::index_found() const noexcept {
  std::size_t index = 0;
  while (index < kHostClocks.size() && !is_possible(index)) ++index;
  return index;
}

std::uint64_t HostClockSearch::ambiguity_ns(const HostMoment& moment) const noexcept {
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (std::size_t index = 0; index < kHostClocks.size(); ++index) {
    if (!is_possible(index)) continue;
    least = std::min(least, moment.shown_ns[index]);
    most = std::max(most, moment.shown_ns[index]);
  }
  if (least >= most) return 0;
  // Clocks that differ by less than it took to read them are the same as far as anybody can tell.
  const std::uint64_t took_ns = moment.after_ns - moment.before_ns;
  return most - least > took_ns ? most - least : 0;
}

}  // namespace xpu::interceptors::opencl
