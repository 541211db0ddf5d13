#include "trace/view/device_clock.hpp"

#include <algorithm>
#include <optional>

#include "base/probe.hpp"

namespace xpu::trace::view {
namespace {

// Three minutes at the ten a second that publishers make. Of the older half every other one goes when they are exceeded, so a long run
// keeps readings of all its times, and a map of them is built in well under a millisecond.
constexpr std::size_t kMaxReadings = 2'048;
constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

/// Ticks from one stamp to a later one, over at most half a turn of the counter.
std::optional<std::uint64_t> ticks_between(std::uint64_t from, std::uint64_t to, std::uint32_t valid_bits) {
  const std::uint64_t mask = valid_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << valid_bits) - 1;
  const std::uint64_t ticks = (to - from) & mask;
  if (ticks > mask / 2) return std::nullopt;
  return ticks;
}

}  // namespace

void DeviceClock::describe(const DeviceRecord& record) noexcept {
  counts_ = record.tick_numerator != 0 && record.tick_denominator != 0 && record.valid_bits >= 1;
  if (counts_) unit_ = {record.tick_numerator, record.tick_denominator, std::min<std::uint32_t>(record.valid_bits, 64)};
  is_ours_ = record.clock_domain != 0 && static_cast<ClockDomain>(record.clock_domain) == host_clock_ && record.valid_bits >= 64 &&
             record.tick_numerator == record.tick_denominator;
  is_stale_ = true;
}

void DeviceClock::add(const ClockReadingRecord& reading) {
  if (reading.domain != 0 && static_cast<ClockDomain>(reading.domain) != host_clock_) return;
  if (points_.size() >= kMaxReadings) {
    std::size_t index = 0;
    std::erase_if(points_, [&](const ClockPoint&) { return index++ % 2 == 1 && index <= kMaxReadings / 2; });
  }
  points_.push_back({reading.host_before_ns, reading.host_after_ns, reading.device_ticks, reading.error_ps});
  all_native_ = all_native_ && reading.header.flags == static_cast<std::uint32_t>(probe::ClockMethod::native);
  is_stale_ = true;
}

void DeviceClock::rebuild() {
  if (!is_stale_) return;
  is_stale_ = false;
  // Where the driver says that its clock is ours there is nothing to map. What was only observed to be so is mapped as any other.
  if (!counts_ || points_.empty()) {
    map_ = ClockMap();
  } else if (is_ours_ && all_native_) {
    map_ = ClockMap::of_host_clock(points_.size());
  } else {
    map_ = ClockMap(points_, unit_);
  }
}

DeviceTimes DeviceClock::place(const OperationCompletedRecord& completed, std::uint64_t near_ns) {
  rebuild();
  DeviceTimes times;
  const bool wraps = unit_.valid_bits < 64;
  if (!map_.usable() || (wraps && near_ns == 0)) return times;
  const std::optional<std::uint64_t> run = ticks_between(completed.start, completed.end, unit_.valid_bits);
  if (!run) return times;
  const MappedTime start = map_.to_host(completed.start, near_ns);
  const std::uint64_t run_ns = map_.ticks_to_ns(*run);
  if (start.host_ns <= 0 || start.host_ns >= kLatestNs || run_ns >= static_cast<std::uint64_t>(kLatestNs)) return times;

  times.is_placed = true;
  times.error_ns = start.error_ns;
  times.start_ns = static_cast<std::uint64_t>(start.host_ns);
  times.end_ns = times.start_ns + run_ns;
  // Distances on the device's clock, so that the order of the stamps is that of the times.
  std::uint64_t latest_ns = times.start_ns, latest_tick = completed.start;
  const auto time_before = [&](std::uint64_t tick) -> std::uint64_t {
    if (tick == 0) return 0;
    const std::optional<std::uint64_t> from_latest = ticks_between(tick, latest_tick, unit_.valid_bits);
    const std::optional<std::uint64_t> from_start = ticks_between(tick, completed.start, unit_.valid_bits);
    if (!from_latest || !from_start) return 0;
    const std::uint64_t before_ns = map_.ticks_to_ns(*from_start);
    if (before_ns >= times.start_ns) return 0;
    latest_ns = std::min(latest_ns, times.start_ns - before_ns);
    latest_tick = tick;
    return latest_ns;
  };
  times.submit_ns = time_before(completed.submit);
  times.append_ns = time_before(completed.queued);
  return times;
}

}  // namespace xpu::trace::view
