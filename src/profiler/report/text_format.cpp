#include "profiler/report/text_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

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

std::string shorten(const std::string& text, std::size_t width) {
  const std::size_t full = display_width(text);
  if (full <= width) return text;
  if (width <= 1) return width == 0 ? "" : "…";
  const std::size_t head = width / 2, tail = width - 1 - head;
  const std::string_view before_tail = prefix(text, full - tail);
  return std::string(prefix(text, head)) + "…" + text.substr(before_tail.size());
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
