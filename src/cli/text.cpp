#include "cli/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace xpu::cli {
namespace {

struct Number {
  double value = 0;
  std::string_view unit;
};

std::optional<Number> split_number(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number.value) || number.value < 0) return std::nullopt;
  number.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_thousands(count), noun, count == 1 ? "" : noun.ends_with("s") ? "es" : "s");
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const Error error{ErrorCode::invalid_argument, fmt::format("'{}' is not a size; write for example 512M or 2G", printable(text))};
  const auto number = split_number(text);
  if (!number) return error;
  std::string_view unit = number->unit;
  int shift = 0;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view kLetters = "KMGT";
    const std::size_t letter = kLetters.find(unit[0] == 'k' ? 'K' : unit[0]);
    if (letter == std::string_view::npos) return error;
    shift = 10 * (static_cast<int>(letter) + 1);
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "B" && unit != "iB") return error;
  }
  const double bytes = std::ldexp(number->value, shift);
  if (bytes >= 0x1p62) return Error{ErrorCode::invalid_argument, fmt::format("'{}' is too large a size", printable(text))};
  return static_cast<std::uint64_t>(bytes);
}

Result<std::uint64_t> parse_duration(std::string_view text) {
  const Error error{ErrorCode::invalid_argument,
                    fmt::format("'{}' is not a time; write seconds, for example 2 or 0.5, or 200ms", printable(text))};
  const auto number = split_number(text);
  if (!number) return error;
  double unit_ns = 0;
  if (number->unit.empty() || number->unit == "s") unit_ns = 1e9;
  if (number->unit == "ms") unit_ns = 1e6;
  if (number->unit == "us") unit_ns = 1e3;
  if (unit_ns == 0) return error;
  const double ns = number->value * unit_ns;
  if (ns > 366.0 * 86'400 * 1e9) return Error{ErrorCode::invalid_argument, fmt::format("'{}' is longer than a year", printable(text))};
  return static_cast<std::uint64_t>(ns);
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace xpu::cli
