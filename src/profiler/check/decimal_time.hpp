#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace xpu::profiler {

/// `number` (a JSON number) times 1,000, rounded to the nearest integer, half away from 0: microseconds as nanoseconds. Taken from the
/// digits, because a double has 53 bits and microseconds since 1970 with three decimals need 61. Empty from +-2^62 on, so that a time and
/// a duration can be added.
std::optional<std::int64_t> thousandths(std::string_view number) noexcept;

}  // namespace xpu::profiler
