#include "xpu/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace xpu {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::string three_digits(double value, std::string_view unit) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace

std::string with_thousands(std::uint64_t value) {
  std::string text = fmt::format("{}", value);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

std::string duration_text(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (value < 999.5e3) return three_digits(value / 1e3, "µs");
  if (value < 999.5e6) return three_digits(value / 1e6, "ms");
  if (ns < 120 * kSecond) return three_digits(value / 1e9, "s");
  const std::uint64_t seconds = ns / kSecond;
  if (seconds < 7'200) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3'600, seconds / 60 % 60);
}

std::string signed_duration_text(std::int64_t ns) {
  return ns < 0 ? "-" + duration_text(std::uint64_t{0} - static_cast<std::uint64_t>(ns)) : duration_text(static_cast<std::uint64_t>(ns));
}

std::string microseconds_text(std::int64_t ns) {
  // The sign apart: -15 ns have none in their whole microseconds.
  const std::uint64_t size_ns = ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format("{}{}.{:03} µs", ns < 0 ? "-" : "", size_ns / 1'000, size_ns % 1'000);
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1'024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1'024;
  for (const char* unit : {"KiB", "MiB", "GiB"}) {
    if (value < 1'023.95) return fmt::format("{:.1f} {}", value, unit);
    value /= 1'024;
  }
  return fmt::format("{:.1f} TiB", value);
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned low, unsigned high) { return i < text.size() && byte(i) >= low && byte(i) <= high; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) && continues(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
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

}  // namespace xpu
