#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "xpu/trace/clock_map.hpp"

/// What clock_map_fuzz reads: a unit, then readings. A reading is told by its distance to the one before, so that most inputs are clocks.
namespace xpu::fuzz {

struct ClockInputHead {
  std::uint32_t numerator = 1, denominator = 1;
  std::uint32_t valid_bits = 64;
  std::uint32_t reserved = 0;
  std::uint64_t first_host_ns = 0, first_ticks = 0;
};
struct ClockInputReading {
  std::int64_t host_ns = 0;  ///< After the reading before.
  std::int64_t ticks = 0;    ///< The same.
  std::int32_t bracket = 0;  ///< Negative: the end is before the start.
  std::uint32_t error_ps = 0;
};

struct ClockInput {
  trace::TickUnit unit;
  std::vector<trace::ClockPoint> points;
};

inline ClockInput clock_input(std::span<const std::byte> bytes) {
  constexpr std::size_t kMostReadings = 256;
  ClockInput input;
  ClockInputHead head;
  if (bytes.size() < sizeof head) return input;
  std::memcpy(&head, bytes.data(), sizeof head);
  input.unit = {head.numerator, head.denominator, head.valid_bits};
  trace::ClockPoint point{head.first_host_ns, head.first_host_ns, head.first_ticks, 0};
  std::uint64_t host_ns = head.first_host_ns;
  for (std::size_t at = sizeof head; at + sizeof(ClockInputReading) <= bytes.size() && input.points.size() < kMostReadings;
       at += sizeof(ClockInputReading)) {
    ClockInputReading reading;
    std::memcpy(&reading, bytes.data() + at, sizeof reading);
    host_ns += static_cast<std::uint64_t>(reading.host_ns);
    point.device_ticks += static_cast<std::uint64_t>(reading.ticks);
    point.host_before_ns = host_ns;
    point.host_after_ns = host_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(reading.bracket));
    point.error_ps = reading.error_ps;
    input.points.push_back(point);
  }
  return input;
}

}  // namespace xpu::fuzz
