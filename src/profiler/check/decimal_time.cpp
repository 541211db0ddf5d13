#include "profiler/check/decimal_time.hpp"

#include <charconv>
#include <cmath>

namespace xpu::profiler {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 62;

std::optional<std::int64_t> from_double(std::string_view number) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  // Too small or too large: the value says neither.
  if (error == std::errc::result_out_of_range && number.find('-', 1) != std::string_view::npos) return 0;
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  const double scaled = value * 1'000;
  if (!(std::abs(scaled) < static_cast<double>(kMost))) return std::nullopt;
  return std::llround(scaled);
}

}  // namespace

std::optional<std::int64_t> thousandths(std::string_view number) noexcept {
  if (number.find_first_of("eE") != std::string_view::npos) return from_double(number);
  const bool is_negative = number.starts_with('-');
  if (is_negative) number.remove_prefix(1);
  if (number.empty()) return std::nullopt;
  constexpr int kDecimals = 3;
  std::int64_t value = 0;
  int decimals = -1;  // -1: before the point
  bool rounds_up = false;
  for (const char character : number) {
    if (character == '.' && decimals < 0) {
      decimals = 0;
      continue;
    }
    if (character < '0' || character > '9') return std::nullopt;
    if (decimals >= kDecimals) {
      if (decimals++ == kDecimals) rounds_up = character >= '5';
      continue;
    }
    if (value > kMost / 10) return std::nullopt;
    value = value * 10 + (character - '0');
    if (decimals >= 0) ++decimals;
  }
  for (int i = decimals < 0 ? 0 : decimals; i < kDecimals; ++i) {
    if (value > kMost / 10) return std::nullopt;
    value *= 10;
  }
  value += rounds_up ? 1 : 0;
  if (value >= kMost) return std::nullopt;
  return is_negative ? -value : value;
}

}  // namespace xpu::profiler
