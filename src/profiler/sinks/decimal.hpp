#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace xpu::profiler {

/// ".000" to ".999". Numbers are written three digits at a time: a third of the divisions, which is what formatting them takes.
inline constexpr auto kThreeDigits = [] {
  std::array<char, 4 * 1000 + 4> table{};  // the last 4 are read, and mean nothing
  for (std::size_t i = 0; i < 1000; ++i) {
    table[4 * i] = '.';
    table[4 * i + 1] = static_cast<char>('0' + i / 100);
    table[4 * i + 2] = static_cast<char>('0' + i / 10 % 10);
    table[4 * i + 3] = static_cast<char>('0' + i % 10);
  }
  return table;
}();

/// Writes `value` in decimal and returns the end. There must be room for 24 characters, whatever it is.
inline char* put_decimal(char* at, std::uint64_t value) {
  std::uint32_t groups[6];
  int count = 0;
  while (value >= 1000) {
    groups[count++] = static_cast<std::uint32_t>(value % 1000);
    value /= 1000;
  }
  // Four characters are one store; those too many are overwritten by what comes next.
  const int digits = value < 10 ? 1 : value < 100 ? 2 : 3;
  std::memcpy(at, &kThreeDigits[4 * value + 4 - static_cast<std::size_t>(digits)], 4);
  at += digits;
  while (count > 0) {
    std::memcpy(at, &kThreeDigits[4 * groups[--count] + 1], 4);
    at += 3;
  }
  return at;
}

/// Writes `value` / 1000 with three decimals, which is exact. There must be room for 28 characters.
inline char* put_thousandths(char* at, std::uint64_t value) {
  at = put_decimal(at, value / 1000);
  std::memcpy(at, &kThreeDigits[4 * (value % 1000)], 4);
  return at + 4;
}

}  // namespace xpu::profiler
