#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "xpu/base/text.hpp"

namespace xpu::profiler {

/// Columns that a text takes on a terminal: one per code point.
std::size_t display_width(std::string_view text);

/// At most `width` columns, the middle left out: kernel names differ at both ends.
std::string shorten(const std::string& text, std::size_t width);

/// The unit and the decimals in which all times of a column are shown, chosen so that the largest has at most four digits before the point
/// and the smallest does not vanish.
class TimeUnit {
 public:
  /// Of the absolute values; empty ones do not count.
  explicit TimeUnit(std::span<const std::optional<std::int64_t>> times_ns);

  std::string_view name() const noexcept;
  /// "-" for unknown; what is too small for the decimals is "<0.001", never 0.
  std::string show(std::optional<std::int64_t> ns) const;

 private:
  std::size_t unit_ = 0;
  int decimals_ = 0;
};

}  // namespace xpu::profiler
