#include "xpu/trace/clock_map.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace xpu::trace {
namespace {

// Products of two 63-bit numbers occur all over; a double has 53 bits and a nanosecond since the epoch needs 61.
__extension__ using Wide = __int128;

// Nothing real comes near it (146 years), and the product of two numbers below it fits into a Wide with room to add.
constexpr std::int64_t kLimit = std::int64_t{1} << 62;
constexpr std::int64_t kBillion = 1'000'000'000;

constexpr std::int64_t kDriftPpb = 100'000;      // change of rate within a span that is bridged
constexpr std::int64_t kNominalPpb = 600'000;    // deviation from the nominal rate, where no better is known
constexpr std::int64_t kHardPpb = 2'000'000;     // beyond it two readings contradict each other, whatever the others say
constexpr std::int64_t kGoodRatePpb = 20'000;    // a rate known this well need not be looked for further away
constexpr std::int64_t kReferencePpb = 100'000;  // a rate known worse than this is no reference for others
constexpr std::size_t kReferenceReach = 4;       // spans on either side that a span is compared with
constexpr std::uint64_t kRoundingNs = 2;         // of a time and of the two parts of its bound
constexpr std::size_t kMaxSteps = 64;

// The sum or difference of two clamped numbers is a number still.
std::int64_t clamp(Wide value) { return static_cast<std::int64_t>(std::clamp<Wide>(value, 1 - kLimit, kLimit - 1)); }

Wide divide_up(Wide value, Wide divisor) { return value / divisor + (value % divisor > 0 ? 1 : 0); }
Wide divide_nearest(Wide value, Wide divisor) { return (value >= 0 ? value + divisor / 2 : value - divisor / 2) / divisor; }

/// `ppb` of `length`, rounded up.
std::int64_t share(std::int64_t length, std::int64_t ppb) { return clamp(divide_up(Wide{std::abs(length)} * ppb, kBillion)); }

std::int64_t nominal_ns(std::int64_t ticks, const TickUnit& unit) {
  return clamp(divide_nearest(Wide{ticks} * unit.numerator, unit.denominator));
}

std::uint64_t mask_of(std::uint32_t valid_bits) { return valid_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << valid_bits) - 1; }

/// `ticks - base`, taken to be the difference nearest to `expected` modulo the counter's wrap.
Wide unwrapped_difference(std::uint64_t ticks, std::uint64_t base, std::int64_t expected, std::uint32_t valid_bits) {
  const std::uint64_t mask = mask_of(valid_bits);
  const std::uint64_t rest = (ticks - base - static_cast<std::uint64_t>(expected)) & mask;
  const std::uint64_t half = (mask >> 1) + 1;
  const Wide nearest = rest < half ? Wide{rest} : Wide{rest} - Wide{mask} - 1;
  return Wide{expected} + nearest;
}

MappedTime covering(std::int64_t low, std::int64_t high) {
  const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return {low + static_cast<std::int64_t>(width / 2), width / 2 + width % 2};
}
Wide low_of(const MappedTime& time) { return Wide{time.host_ns} - Wide{time.error_ns}; }
Wide high_of(const MappedTime& time) { return Wide{time.host_ns} + Wide{time.error_ns}; }

// A reading as an interval: whatever happened while the counter showed `offset` happened in [low, high].
struct Reading {
  std::int64_t offset = 0, low = 0, high = 0, middle = 0;
  std::int64_t error() const { return (high - low) / 2 + (high - low) % 2; }
};

// Between which numbers of nanoseconds the host went on from one reading to the next, and how many the device counted.
struct Span {
  std::int64_t least = 0, most = 0, nominal = 0;

  Span(const Reading& from, const Reading& to, const TickUnit& unit)
      : least(clamp(Wide{to.low} - from.high)), most(clamp(Wide{to.high} - from.low)), nominal(nominal_ns(to.offset - from.offset, unit)) {}

  /// Whether a rate within `tolerance` of `deviation` from the nominal one explains it.
  bool explained_by(std::int64_t deviation_ppb, std::int64_t tolerance_ppb) const {
    const Wide one = Wide{nominal} * (kBillion + deviation_ppb - tolerance_ppb),
               other = Wide{nominal} * (kBillion + deviation_ppb + tolerance_ppb);
    return std::min(one, other) <= Wide{most} * kBillion && std::max(one, other) >= Wide{least} * kBillion;
  }
  /// Deviation of the rate from the nominal one and its half-width; nothing where that is too wide to mean anything, or no rate but a step.
  std::optional<std::pair<std::int64_t, std::int64_t>> rate() const {
    if (nominal <= 0) return std::nullopt;
    const std::int64_t width = clamp(divide_up((Wide{most} - least) * kBillion, Wide{nominal} * 2));
    const std::int64_t deviation = clamp(((Wide{most} + least) / 2 - nominal) * kBillion / nominal);
    if (width > kReferencePpb || std::abs(deviation) > kHardPpb) return std::nullopt;
    return std::pair{deviation, width};
  }
};

// What the spans around one say about the device's rate.
struct Reference {
  std::int64_t deviation_ppb = 0, tolerance_ppb = 0;
};

std::optional<Reference> reference_around(const std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>>& rates,
                                          std::size_t span) {
  std::array<std::int64_t, 2 * kReferenceReach + 2> deviations{};
  std::size_t count = 0;
  std::int64_t widest = 0;
  const std::size_t end = std::min(rates.size(), span + kReferenceReach + 1);
  for (std::size_t other = span > kReferenceReach ? span - kReferenceReach : 0; other < end; ++other) {
    if (!rates[other]) continue;
    deviations[count++] = rates[other]->first;
    widest = std::max(widest, rates[other]->second);
  }
  if (count < 2) return std::nullopt;
  if (count == 2) deviations[count++] = 0;  // of two that disagree the one nearer to the nominal rate is believed
  std::sort(deviations.begin(), deviations.begin() + static_cast<std::ptrdiff_t>(count));
  return Reference{deviations[count / 2], kDriftPpb + widest};
}

}  // namespace

class ClockMapBuilder {
 public:
  static ClockMap::Scale scale_of(Wide numerator, Wide denominator) {
    ClockMap::Scale scale;
    scale.negative = (numerator < 0) != (denominator < 0);
    if (numerator < 0) numerator = -numerator;
    if (denominator < 0) denominator = -denominator;
    if (numerator == 0) return {};
    Wide multiplier = std::min<Wide>(numerator / denominator, kLimit);
    Wide rest = numerator % denominator;
    for (; multiplier < kLimit; ++scale.shift) {
      rest *= 2;
      multiplier = multiplier * 2 + (rest >= denominator ? 1 : 0);
      if (rest >= denominator) rest -= denominator;
    }
    scale.multiplier = static_cast<std::uint64_t>(multiplier + (rest * 2 >= denominator ? 1 : 0));
    return scale;
  }

  /// To the nearest; off by less than one where the result is below 2^60.
  static std::int64_t times(const ClockMap::Scale& scale, std::int64_t value) {
    if (scale.shift > 126) return 0;
    __extension__ using Unsigned = unsigned __int128;
    const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    const Unsigned half = scale.shift == 0 ? 0 : Unsigned{1} << (scale.shift - 1);
    const auto product = static_cast<Wide>((Unsigned{size} * scale.multiplier + half) >> scale.shift);
    const auto result = static_cast<std::int64_t>(std::min<Wide>(product, kLimit - 1));
    return (value < 0) != scale.negative ? -result : result;
  }

  ClockMapBuilder(ClockMap& map, std::vector<ClockPoint> points) : map_(map), unit_(map.unit_) {
    take_readings(std::move(points));
    find_steps();
    if (parts_.size() > kMaxSteps + 1) return;
    for (std::vector<Reading>& part : parts_) add_segment(part);
  }

 private:
  void take_readings(std::vector<ClockPoint> points) {
    std::erase_if(points, [](const ClockPoint& point) {
      return point.host_after_ns < point.host_before_ns || point.host_after_ns > static_cast<std::uint64_t>(kLimit);
    });
    const auto middle = [](const ClockPoint& point) { return point.host_before_ns + (point.host_after_ns - point.host_before_ns) / 2; };
    std::sort(points.begin(), points.end(), [&](const ClockPoint& left, const ClockPoint& right) {
      return std::pair(middle(left), left.device_ticks) < std::pair(middle(right), right.device_ticks);
    });
    if (points.empty()) return;

    // The host's length of one tick, a little long so that it covers a device that is slow.
    const std::int64_t tick = clamp(divide_up(Wide{unit_.numerator} * 1001, Wide{unit_.denominator} * 1000));
    map_.first_ticks_ = points.front().device_ticks & mask_of(unit_.valid_bits);
    map_.narrowest_bracket_ns_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t previous_ticks = points.front().device_ticks;
    std::uint64_t previous_middle = middle(points.front());
    std::int64_t previous_offset = 0;
    for (const ClockPoint& point : points) {
      const std::int64_t gap = static_cast<std::int64_t>(middle(point) - previous_middle);
      const std::int64_t expected = clamp(Wide{gap} * unit_.denominator / unit_.numerator);
      const Wide offset = previous_offset + unwrapped_difference(point.device_ticks, previous_ticks, expected, unit_.valid_bits);
      if (offset >= kLimit || offset <= -kLimit) continue;
      const std::int64_t slack = tick + (point.error_ps + 999) / 1000;
      readings_.push_back({static_cast<std::int64_t>(offset), static_cast<std::int64_t>(point.host_before_ns) - slack,
                           static_cast<std::int64_t>(point.host_after_ns) + slack, static_cast<std::int64_t>(middle(point))});
      map_.narrowest_bracket_ns_ = std::min(map_.narrowest_bracket_ns_, point.host_after_ns - point.host_before_ns);
      map_.largest_gap_ns_ = std::max(map_.largest_gap_ns_, static_cast<std::uint64_t>(gap));
      previous_ticks = point.device_ticks;
      previous_middle = middle(point);
      previous_offset = static_cast<std::int64_t>(offset);
    }
    map_.readings_ = readings_.size();
  }

  void find_steps() {
    if (readings_.empty()) return;
    std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> rates;
    for (std::size_t index = 1; index < readings_.size(); ++index)
      rates.push_back(Span(readings_[index - 1], readings_[index], unit_).rate());
    const auto agree = [&](std::size_t from, std::size_t to) {
      const Span span(readings_[from], readings_[to], unit_);
      if (!span.explained_by(0, kHardPpb)) return false;
      const std::optional<Reference> reference = reference_around(rates, to - 1);
      return !reference || span.explained_by(reference->deviation_ppb, reference->tolerance_ppb);
    };

    parts_.push_back({readings_.front()});
    std::size_t last = 0;
    for (std::size_t index = 1; index < readings_.size(); ++index) {
      if (!agree(last, index)) {
        const bool next_agrees = index + 1 < readings_.size() && agree(last, index + 1) && !agree(index, index + 1);
        if (next_agrees) continue;
        parts_.emplace_back();
      }
      parts_.back().push_back(readings_[index]);
      last = index;
    }
  }

  // Brackets may overlap, so the order of the middles need not be that of the ticks.
  void add_segment(std::vector<Reading>& part) {
    std::sort(part.begin(), part.end(), [](const Reading& left, const Reading& right) {
      return std::pair(left.offset, left.middle) < std::pair(right.offset, right.middle);
    });
    narrow(part);
    const std::vector<Reading> kept = choose(part);

    ClockMap::Segment segment;
    segment.first = map_.anchors_.size();
    for (const Reading& reading : kept) {
      if (map_.anchors_.size() > segment.first && map_.offsets_.back() == reading.offset) continue;
      map_.offsets_.push_back(reading.offset);
      map_.anchors_.push_back({reading.low + (reading.high - reading.low) / 2, reading.error(), {}, {}});
    }
    segment.last = map_.anchors_.size() - 1;
    for (std::size_t index = segment.first; index < segment.last; ++index) {
      ClockMap::Anchor& from = map_.anchors_[index];
      const ClockMap::Anchor& to = map_.anchors_[index + 1];
      const Wide length = Wide{map_.offsets_[index + 1]} - map_.offsets_[index];
      from.slope = scale_of(Wide{to.host_ns} - from.host_ns, length);
      from.widening = scale_of(Wide{to.error_ns} - from.error_ns, length);
    }
    segment.before = rate_beyond(segment.first, segment.last);
    segment.after = rate_beyond(segment.last, segment.first);
    map_.segments_.push_back(segment);
  }

  // Readings near each other narrow each other down, because no clock runs at any rate. Afterwards the middles rise with the ticks, which
  // those of overlapping brackets as such need not do.
  void narrow(std::vector<Reading>& part) const {
    const auto limits = [&](const Reading& from, const Reading& to) {
      const std::int64_t nominal = nominal_ns(to.offset - from.offset, unit_);
      const std::int64_t slack = share(nominal, kHardPpb);
      return std::pair{nominal - slack, nominal + slack};
    };
    for (std::size_t index = 1; index < part.size(); ++index) {
      const Reading& from = part[index - 1];
      Reading& to = part[index];
      const auto [least, most] = limits(from, to);
      const std::int64_t low = std::max(to.low, clamp(Wide{from.low} + least)), high = std::min(to.high, clamp(Wide{from.high} + most));
      if (low > high) continue;  // only several small contradictions in a row come here: each reading then stands for itself
      to.low = low;
      to.high = high;
    }
    for (std::size_t index = part.size(); index-- > 1;) {
      const Reading& from = part[index];
      Reading& to = part[index - 1];
      const auto [least, most] = limits(to, from);
      const std::int64_t low = std::max(to.low, clamp(Wide{from.low} - most)), high = std::min(to.high, clamp(Wide{from.high} - least));
      if (low > high) continue;
      to.low = low;
      to.high = high;
    }
  }

  // Leaves out every reading that another one, with 100 ppm x the distance, determines better. The first and the last stay: they say how
  // far the line is more than a continuation.
  std::vector<Reading> choose(const std::vector<Reading>& part) const {
    const std::size_t count = part.size();
    if (count <= 2) return part;
    std::vector<std::int64_t> reach(count);  // what the readings before, then those on both sides, can promise here
    const auto distance = [&](std::size_t index) {
      return share(nominal_ns(part[index].offset - part[index - 1].offset, unit_), kDriftPpb);
    };
    reach[0] = part[0].error();
    for (std::size_t index = 1; index < count; ++index)
      reach[index] = std::min(part[index].error(), clamp(Wide{reach[index - 1]} + distance(index)));
    for (std::size_t index = count - 1; index-- > 0;)
      reach[index] = std::min(reach[index], clamp(Wide{reach[index + 1]} + distance(index + 1)));

    std::vector<Reading> kept;
    for (std::size_t index = 0; index < count; ++index) {
      if (index == 0 || index + 1 == count || part[index].error() <= reach[index]) kept.push_back(part[index]);
    }
    narrow_end(kept, 0, 1, kept.size() - 1);
    narrow_end(kept, kept.size() - 1, kept.size() - 2, 0);
    return kept;
  }

  // A wide bracket at the very end must not widen the last stretch: what the inner readings predict for it counts too. `next` is the end's
  // neighbour, `far` the other end.
  void narrow_end(std::vector<Reading>& kept, std::size_t end, std::size_t next, std::size_t far) const {
    const std::int64_t length = nominal_ns(kept[end].offset - kept[next].offset, unit_);
    const std::int64_t middle = kept[next].low + (kept[next].high - kept[next].low) / 2;
    Wide predicted = Wide{middle} + length;
    std::int64_t error = clamp(Wide{kept[next].error()} + share(length, kNominalPpb));
    const std::int64_t base_ticks = kept[next].offset - kept[far].offset, base_ns = nominal_ns(base_ticks, unit_);
    if (next != far && base_ns != 0) {
      const std::int64_t far_middle = kept[far].low + (kept[far].high - kept[far].low) / 2;
      const Wide growth = divide_up((Wide{kept[next].error()} + kept[far].error()) * std::abs(length), std::abs(base_ns));
      const std::int64_t by_rate = clamp(Wide{kept[next].error()} + growth + share(length, kDriftPpb));
      if (by_rate < error) {
        error = by_rate;
        const Wide ticks = Wide{kept[end].offset} - kept[next].offset;
        predicted =
            Wide{middle} + divide_nearest(ticks * clamp(Wide{middle} - far_middle) * (base_ticks < 0 ? -1 : 1), std::abs(base_ticks));
      }
    }
    const std::int64_t low = std::max(kept[end].low, clamp(predicted - error - 1)),
                       high = std::min(kept[end].high, clamp(predicted + error + 1));
    if (low > high) return;
    kept[end].low = low;
    kept[end].high = high;
  }

  // The pair of anchors, the end's own included, that determines the rate there: the nearest that does it well, else the one that does it
  // best.
  ClockMap::Rate rate_beyond(std::size_t end, std::size_t far) const {
    Wide host_ns = unit_.numerator, ticks = unit_.denominator;
    std::int64_t growth_ppb = kNominalPpb;
    const ClockMap::Anchor& anchor = map_.anchors_[end];
    const std::ptrdiff_t direction = far < end ? -1 : 1;
    for (std::size_t index = end; index != far;) {
      index = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(index) + direction);
      const ClockMap::Anchor& other = map_.anchors_[index];
      const std::int64_t length = std::abs(nominal_ns(map_.offsets_[end] - map_.offsets_[index], unit_));
      if (length == 0) continue;
      const std::int64_t uncertainty = clamp(divide_up((Wide{anchor.error_ns} + other.error_ns) * kBillion, length));
      if (uncertainty + kDriftPpb < growth_ppb) {
        host_ns = Wide{anchor.host_ns} - other.host_ns;
        ticks = Wide{map_.offsets_[end]} - map_.offsets_[index];
        growth_ppb = uncertainty + kDriftPpb;
      }
      if (uncertainty <= kGoodRatePpb) break;
    }
    return {scale_of(host_ns, ticks), scale_of(Wide{unit_.numerator} * growth_ppb, Wide{unit_.denominator} * kBillion)};
  }

  ClockMap& map_;
  TickUnit unit_;
  std::vector<Reading> readings_;
  std::vector<std::vector<Reading>> parts_;
};

ClockMap::ClockMap(std::vector<ClockPoint> points, TickUnit unit) : unit_(unit) {
  if (unit_.valid_bits == 0 || unit_.valid_bits > 64) unit_.valid_bits = 64;
  if (unit_.numerator == 0 || unit_.denominator == 0) {
    unit_ = TickUnit{};
    return;
  }
  drift_ = ClockMapBuilder::scale_of(Wide{unit_.numerator} * kDriftPpb, Wide{unit_.denominator} * kBillion);
  ticks_per_ns_ = ClockMapBuilder::scale_of(unit_.denominator, unit_.numerator);
  ClockMapBuilder(*this, std::move(points));
  if (readings_ == 0) narrowest_bracket_ns_ = 0;
}

ClockMap ClockMap::of_host_clock(std::size_t readings) noexcept {
  ClockMap map;
  map.is_host_clock_ = true;
  map.readings_ = readings;
  return map;
}

MappedTime ClockMap::to_host(std::uint64_t ticks, std::uint64_t near_host_ns) const noexcept {
  if (is_host_clock_) return {clamp(Wide{ticks}), 1};
  if (!usable()) return {0, std::numeric_limits<std::uint64_t>::max()};
  const std::int64_t offset = unwrap(ticks, near_host_ns);
  if (segments_.size() == 1) return at(segments_.front(), offset);
  return across_steps(offset, clamp(Wide{near_host_ns}));
}

std::uint64_t ClockMap::ticks_to_ns(std::uint64_t ticks) const noexcept {
  if (unit_.numerator == unit_.denominator) return ticks;
  const Wide nanoseconds = Wide{ticks} * unit_.numerator / unit_.denominator;
  return static_cast<std::uint64_t>(std::min<Wide>(nanoseconds, std::numeric_limits<std::uint64_t>::max()));
}

std::int64_t ClockMap::unwrap(std::uint64_t ticks, std::uint64_t near_host_ns) const noexcept {
  if (unit_.valid_bits == 64) return clamp(static_cast<std::int64_t>(ticks - first_ticks_));
  const std::int64_t near_ns =
      near_host_ns != 0 ? clamp(Wide{near_host_ns}) : anchors_.front().host_ns + (anchors_.back().host_ns - anchors_.front().host_ns) / 2;
  auto anchor = std::lower_bound(anchors_.begin(), anchors_.end(), near_ns,
                                 [](const Anchor& left, std::int64_t right) { return left.host_ns < right; });
  if (anchor == anchors_.end()) --anchor;
  const std::int64_t offset = offsets_[static_cast<std::size_t>(anchor - anchors_.begin())];
  const std::int64_t expected = clamp(Wide{offset} + ClockMapBuilder::times(ticks_per_ns_, near_ns - anchor->host_ns));
  return clamp(unwrapped_difference(ticks, first_ticks_, expected, unit_.valid_bits));
}

MappedTime ClockMap::at(const Segment& segment, std::int64_t offset) const noexcept {
  constexpr auto times = ClockMapBuilder::times;
  const auto begin = offsets_.begin() + static_cast<std::ptrdiff_t>(segment.first);
  const auto end = offsets_.begin() + static_cast<std::ptrdiff_t>(segment.last) + 1;
  const auto right = std::upper_bound(begin, end, offset);
  const auto left = right == begin ? begin : right - 1;
  const Anchor& from = anchors_[static_cast<std::size_t>(left - offsets_.begin())];
  const std::int64_t into = offset - *left;
  if (into == 0) return {from.host_ns, static_cast<std::uint64_t>(from.error_ns)};
  if (right == begin || right == end) {
    const Rate& rate = right == begin ? segment.before : segment.after;
    const std::int64_t growth = times(rate.growth, std::abs(into));
    return {clamp(Wide{from.host_ns} + times(rate.slope, into)),
            static_cast<std::uint64_t>(from.error_ns) + static_cast<std::uint64_t>(growth) + kRoundingNs};
  }
  const std::int64_t drift = times(drift_, std::min(into, *right - offset));
  const std::int64_t own = from.error_ns + times(from.widening, into);  // between those of the two readings
  return {from.host_ns + times(from.slope, into), static_cast<std::uint64_t>(own) + static_cast<std::uint64_t>(drift) + kRoundingNs};
}

MappedTime ClockMap::across_steps(std::int64_t offset, std::int64_t near_host_ns) const noexcept {
  std::optional<MappedTime> best;
  const auto consider = [&](const MappedTime& candidate) {
    if (!best || high_of(*best) < near_host_ns) best = candidate;  // candidates come in the order of host time
  };

  if (offset <= offsets_[segments_.front().first]) consider(at(segments_.front(), offset));
  for (std::size_t index = 0; index < segments_.size(); ++index) {
    const Segment& segment = segments_[index];
    const Anchor& last = anchors_[segment.last];
    const std::int64_t last_offset = offsets_[segment.last];
    if (offset >= offsets_[segment.first] && offset <= last_offset) consider(at(segment, offset));
    if (index + 1 == segments_.size()) break;

    // The step happened at an unknown moment between the two readings: the time is on the old line, if it had not happened yet, or on the
    // new one.
    const Segment& next = segments_[index + 1];
    const Anchor& first = anchors_[next.first];
    const std::int64_t first_offset = offsets_[next.first];
    const Wide earliest = Wide{last.host_ns} - last.error_ns, latest = Wide{first.host_ns} + first.error_ns;
    Wide low = latest, high = earliest;
    const auto include = [&](const MappedTime& time) {
      if (high_of(time) < earliest || low_of(time) > latest) return;
      low = std::min(low, std::max(low_of(time), earliest));
      high = std::max(high, std::min(high_of(time), latest));
    };
    if (offset > last_offset) include(at(segment, offset));
    if (offset < first_offset) include(at(next, offset));
    if (low <= high) consider(covering(clamp(low), clamp(high)));
    // Ticks that the clock jumped over: nothing can have happened then, and if something says so it was between the two readings.
    else if (offset > last_offset && offset < first_offset)
      consider(covering(clamp(earliest), clamp(latest)));
  }
  if (offset > offsets_[segments_.back().last] || !best) consider(at(segments_.back(), offset));
  return *best;
}

}  // namespace xpu::trace
