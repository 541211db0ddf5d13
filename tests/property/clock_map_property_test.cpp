#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "xpu/trace/clock_map.hpp"

/// The claims of ClockMap, on simulated clocks whose true time is known: for every record the true host time lies inside the bound, and the
/// bound is nearly always as narrow as promised.
namespace xpu::trace {
namespace {

using Random = std::mt19937_64;

double uniform(Random& random, double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); }
/// As many in each decade.
double log_uniform(Random& random, double low, double high) { return std::exp(uniform(random, std::log(low), std::log(high))); }

// A device whose rate is off by a constant, and wanders inside a band; host time as a function of the device's own time. A long double
// holds the nanoseconds of many days without rounding.
class SimulatedDevice {
 public:
  SimulatedDevice(Random& random, TickUnit unit, double duration_ns, double skew_ppm, double band_ppm, double wander_ns)
      : unit_(unit),
        host_base_(random() >> 3),
        tick_base_(unit.valid_bits == 64 ? random() : random() & ((std::uint64_t{1} << unit.valid_bits) - 1)) {
    const double margin = 1e9;
    for (double at = -margin; at < duration_ns + margin;) {
      const double length = log_uniform(random, wander_ns / 10, wander_ns * 10);
      // As often as not at one of the band's edges: the worst that the model allows.
      const double edge = uniform(random, -1, 1);
      const double wandering = std::abs(edge) < 0.5 ? edge * 2 : (edge < 0 ? -1 : 1);
      pieces_.push_back({at, pieces_.empty() ? at : pieces_.back().host_at(at), 1 + (skew_ppm + wandering * band_ppm / 2) * 1e-6L});
      at += length;
    }
  }

  /// What the host clock shows when the device's own time is `device_ns`.
  std::int64_t host(long double device_ns) const {
    return static_cast<std::int64_t>(host_base_) + static_cast<std::int64_t>(std::floor(exact(device_ns)));
  }
  std::uint64_t ticks(long double device_ns) const {
    const auto count = static_cast<std::int64_t>(std::floor(device_ns * unit_.denominator / unit_.numerator));
    const std::uint64_t shown = tick_base_ + static_cast<std::uint64_t>(count);
    return unit_.valid_bits == 64 ? shown : shown & ((std::uint64_t{1} << unit_.valid_bits) - 1);
  }
  /// A reading of which the device's part happens at `device_ns`, somewhere inside a bracket of this width.
  ClockPoint read(Random& random, long double device_ns, double bracket_ns) const {
    const double before = uniform(random, 0, bracket_ns);
    const long double host_ns = exact(device_ns);
    const auto shown = [&](long double time) {
      return host_base_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(time)));
    };
    return {shown(host_ns - before), shown(host_ns + (bracket_ns - before)), ticks(device_ns), 0};
  }

 private:
  struct Piece {
    long double device_ns, host_ns, rate;
    long double host_at(long double device) const { return host_ns + (device - device_ns) * rate; }
  };
  long double exact(long double device_ns) const {
    const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), device_ns,
                                        [](long double left, const Piece& right) { return left < right.device_ns; });
    return (after == pieces_.begin() ? after : after - 1)->host_at(device_ns);
  }

  TickUnit unit_;
  std::uint64_t host_base_, tick_base_;
  std::vector<Piece> pieces_;
};

TickUnit some_unit(Random& random) {
  constexpr TickUnit units[] = {{1, 1, 64}, {10, 1, 64}, {1'000'000'000, 19'200'000, 64}, {1'000, 1, 64}, {625, 12, 36}, {80, 1, 32}};
  return units[random() % std::size(units)];
}

bool covers(const MappedTime& time, std::int64_t truth) {
  const std::int64_t off = time.host_ns - truth;
  return static_cast<std::uint64_t>(off < 0 ? -off : off) <= time.error_ns;
}

TEST(ClockMapProperty, TheTrueTimeLiesInsideForEveryRecord) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const TickUnit unit = some_unit(random);
    const double gap_ns = log_uniform(random, 1e4, 1e9);
    const int count = 1 + static_cast<int>(random() % 60);
    const double duration_ns = gap_ns * count;
    const SimulatedDevice device(random, unit, duration_ns, uniform(random, -500, 500), uniform(random, 0, 100),
                                 log_uniform(random, 1e5, 1e11));
    std::vector<ClockPoint> points;
    double at = 0, first = 0;
    for (int index = 0; index < count; ++index) {
      at += uniform(random, 0, gap_ns);
      if (index == 0) first = at;
      points.push_back(device.read(random, at, log_uniform(random, 100, 50'000)));
    }
    std::shuffle(points.begin(), points.end(), random);
    const ClockMap map(points, unit);
    ASSERT_EQ(map.readings(), points.size());
    ASSERT_EQ(map.steps(), 0u) << "no step was simulated";
    const double outside = std::min(duration_ns, 5e8);
    for (int record = 0; record < 500; ++record) {
      const double when = uniform(random, first - outside, at + outside);
      const std::int64_t truth = device.host(when);
      const MappedTime mapped =
          map.to_host(device.ticks(when), static_cast<std::uint64_t>(truth - static_cast<std::int64_t>(uniform(random, 0, 5e8))));
      ASSERT_TRUE(covers(mapped, truth)) << "off by " << mapped.host_ns - truth << " with a bound of " << mapped.error_ns;
    }
  }
}

TEST(ClockMapProperty, ThatIsSoAtEveryTickAroundAReading) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const TickUnit unit{1'000, 1, 64};
    const SimulatedDevice device(random, unit, 1e8, uniform(random, -500, 500), 100, 1e7);
    std::vector<ClockPoint> points;
    for (int index = 0; index < 5; ++index) points.push_back(device.read(random, index * 1e7 + uniform(random, 0, 2'000), 100));
    const ClockMap map(points, unit);
    for (double when = 2e7 - 10'000; when < 2e7 + 10'000; when += 37) {
      ASSERT_TRUE(covers(map.to_host(device.ticks(when)), device.host(when))) << when;
    }
  }
}

// Brackets as a harvester makes them: the narrowest of several tries, so mostly near the narrowest that there can be; now and then the
// thread was suspended in every one of them.
TEST(ClockMapProperty, TheBoundIsAsNarrowAsPromisedForNearlyEveryRecord) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const TickUnit unit = some_unit(random);
    const double gap_ns = log_uniform(random, 1e6, 1e9), bracket_ns = log_uniform(random, 100, 10'000);
    const int count = 2 + static_cast<int>(random() % 200);
    const SimulatedDevice device(random, unit, gap_ns * count, uniform(random, -500, 500), uniform(random, 0, 100),
                                 log_uniform(random, 1e6, 1e11));
    std::vector<ClockPoint> points;
    double at = 0, first = 0;
    for (int index = 0; index < count; ++index) {
      at += uniform(random, 0.9, 1) * gap_ns;
      if (index == 0) first = at;
      const bool suspended = index != 0 && index + 1 != count && random() % 50 == 0;
      points.push_back(device.read(random, at, suspended ? 50'000 : bracket_ns * uniform(random, 1, 1.9)));
    }
    const ClockMap map(points, unit);
    const double tick_ns = static_cast<double>(unit.numerator) / unit.denominator;
    const double promised = static_cast<double>(map.narrowest_bracket_ns()) + tick_ns + 100e-6 * static_cast<double>(map.largest_gap_ns());
    std::vector<std::uint64_t> bounds;
    for (int record = 0; record < 2'000; ++record) {
      const double when = uniform(random, first, at);
      const std::int64_t truth = device.host(when);
      const MappedTime mapped = map.to_host(device.ticks(when), static_cast<std::uint64_t>(truth));
      ASSERT_TRUE(covers(mapped, truth));
      bounds.push_back(mapped.error_ns);
    }
    std::sort(bounds.begin(), bounds.end());
    ASSERT_LE(static_cast<double>(bounds[bounds.size() * 99 / 100]), promised);
  }
}

TEST(ClockMapProperty, LaterTicksAreNeverEarlierTimes) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const TickUnit unit{1, 1, 64};
    const int count = 1 + static_cast<int>(random() % 40);
    const double gap_ns = log_uniform(random, 10, 1e7);  // far shorter than the widest brackets, too
    const SimulatedDevice device(random, unit, gap_ns * count, uniform(random, -500, 500), 100, 1e6);
    std::vector<ClockPoint> points;
    for (int index = 0; index < count; ++index)
      points.push_back(device.read(random, uniform(random, 0, gap_ns * count), log_uniform(random, 100, 50'000)));
    const ClockMap map(points, unit);
    ASSERT_EQ(map.steps(), 0u);
    std::int64_t previous = map.to_host(device.ticks(-1e6)).host_ns;
    for (double when = -1e6; when < gap_ns * count + 1e6; when += uniform(random, 0, (gap_ns * count + 2e6) / 1'000)) {
      const MappedTime mapped = map.to_host(device.ticks(when));
      ASSERT_GE(mapped.host_ns, previous) << when;
      ASSERT_TRUE(covers(mapped, device.host(when)));
      previous = mapped.host_ns;
    }
  }
}

TEST(ClockMapProperty, TheTrueTimeLiesInsideAlsoAroundASingleStep) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const TickUnit unit{1, 1, 64};
    const double gap_ns = log_uniform(random, 1e6, 1e8);
    const int count = 12 + static_cast<int>(random() % 30);
    const SimulatedDevice device(random, unit, gap_ns * (count + 1), uniform(random, -500, 500), 100, 1e9);
    // At this moment the counter jumps, forward or back, by more than the readings leave open.
    const double jump_at = uniform(random, 0.3, 0.7) * gap_ns * count;
    const auto jump = static_cast<std::int64_t>((random() % 2 == 0 ? -1 : 1) * log_uniform(random, 1e6, 1e10));
    const auto shown = [&](double when) { return device.ticks(when) + (when < jump_at ? 0 : static_cast<std::uint64_t>(jump)); };
    std::vector<ClockPoint> points;
    for (int index = 0; index <= count; ++index) {
      const double when = index * gap_ns;
      ClockPoint point = device.read(random, when, log_uniform(random, 100, 10'000));
      point.device_ticks = shown(when);
      points.push_back(point);
    }
    const ClockMap map(points, unit);
    ASSERT_EQ(map.steps(), 1u) << "jump of " << jump;
    for (int record = 0; record < 500; ++record) {
      const double when = uniform(random, 0, count * gap_ns);
      const std::int64_t truth = device.host(when);
      const MappedTime mapped =
          map.to_host(shown(when), static_cast<std::uint64_t>(truth - static_cast<std::int64_t>(uniform(random, 0, 1e5))));
      ASSERT_TRUE(covers(mapped, truth)) << when << " of " << jump_at << ", jump " << jump << ", off by " << mapped.host_ns - truth
                                         << " bound " << mapped.error_ns;
    }
  }
}

TEST(ClockMapProperty, DurationsAreExact) {
  Random random(7);
  for (int round = 0; round < 10'000; ++round) {
    const auto numerator = static_cast<std::uint32_t>(1 + random() % 1'000'000'000),
               denominator = static_cast<std::uint32_t>(1 + random() % 1'000'000'000);
    const std::uint64_t ticks = random() >> (32 + random() % 16);
    const ClockMap map({{1, 1, 1, 0}}, {numerator, denominator, 64});
    const std::uint64_t ns = map.ticks_to_ns(ticks);
    // floor(ticks x numerator / denominator), checked without dividing; the products fit.
    __extension__ using Wide = unsigned __int128;
    ASSERT_LE(Wide{ns} * denominator, Wide{ticks} * numerator);
    ASSERT_GT(Wide{ns + 1} * denominator, Wide{ticks} * numerator);
  }
}

}  // namespace
}  // namespace xpu::trace
