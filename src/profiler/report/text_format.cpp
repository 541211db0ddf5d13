#include "profiler/report/text_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "profiler/sinks/json_text.hpp"

namespace xpu::profiler {
namespace {

struct Unit {
  std::string_view name;
  double ns;
};
constexpr std::array<Unit, 4> kUnits = {{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

std::uint64_t magnitude(std::int64_t ns) {
  return ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// The longest prefix of `text` that takes `width` columns.
std::string_view prefix(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (!is_continuation(text[end]) && columns++ == width) break;
  }
  return text.substr(0, end);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // C1 control characters (U+0080 to U+009F) begin escape sequences as well.
    const bool control = first < 0x20 || first == 0x7f || (first == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (length == 0 || control) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string shorten(const std::string& text, std::size_t width) {
  const std::size_t full = display_width(text);
  if (full <= width) return text;
  if (width <= 1) return width == 0 ? "" : "…";
  const std::size_t head = width / 2, tail = width - 1 - head;
  const std::string_view before_tail = prefix(text, full - tail);
  return std::string(prefix(text, head)) + "…" + text.substr(before_tail.size());
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string single_time(std::int64_t ns) {
  const std::uint64_t size = magnitude(ns);
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && static_cast<double>(size) >= kUnits[unit + 1].ns) ++unit;
  const double value = static_cast<double>(size) / kUnits[unit].ns;
  const int decimals = unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}", ns < 0 ? "-" : "", value, unit == 3 ? std::max(decimals, 2) : decimals, kUnits[unit].name);
}

std::string single_time(std::uint64_t ns) { return single_time(static_cast<std::int64_t>(std::min<std::uint64_t>(ns, INT64_MAX))); }

std::string single_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 1, kNames[unit]);
}

TimeUnit::TimeUnit(std::span<const std::optional<std::int64_t>> times_ns) {
  std::uint64_t largest = 0, smallest = UINT64_MAX;
  for (const std::optional<std::int64_t>& time : times_ns) {
    if (!time || *time == 0) continue;
    largest = std::max(largest, magnitude(*time));
    smallest = std::min(smallest, magnitude(*time));
  }
  if (largest == 0) return;
  const auto too_large = [&] { return static_cast<double>(largest) / kUnits[unit_].ns >= (unit_ == 0 ? 1'000 : 10'000); };
  while (unit_ + 1 < kUnits.size() && too_large()) ++unit_;
  if (unit_ == 0) return;
  const double most = static_cast<double>(largest) / kUnits[unit_].ns, least = static_cast<double>(smallest) / kUnits[unit_].ns;
  decimals_ = most < 10 ? 3 : most < 100 ? 2 : 1;
  while (decimals_ < 3 && least * std::pow(10, decimals_) < 10) ++decimals_;
}

std::string_view TimeUnit::name() const noexcept { return kUnits[unit_].name; }

std::string TimeUnit::show(std::optional<std::int64_t> ns) const {
  if (!ns) return "-";
  const double value = static_cast<double>(*ns) / kUnits[unit_].ns;
  const double smallest_shown = 0.5 * std::pow(10, -decimals_);
  if (*ns != 0 && std::abs(value) < smallest_shown) return fmt::format("{}<{:.{}f}", *ns < 0 ? "-" : "", 2 * smallest_shown, decimals_);
  return fmt::format("{:.{}f}", value, decimals_);
}

}  // namespace xpu::profiler
