#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "xpu/base/export.hpp"

/// Figures and foreign texts as people read them on a terminal.
namespace xpu {

/// "12,345".
XPU_EXPORT std::string with_thousands(std::uint64_t value);
/// Three significant digits and a unit: "980 ns", "12.3 ms", "1.23 s", "4 min 05 s".
XPU_EXPORT std::string duration_text(std::uint64_t ns);
/// The same of a difference, which may be negative: "-1.50 µs".
XPU_EXPORT std::string signed_duration_text(std::int64_t ns);
/// "1234.567 µs", exactly and as trace files have it, so that it can be searched for there.
XPU_EXPORT std::string microseconds_text(std::int64_t ns);
/// "512 B", "1.5 MiB".
XPU_EXPORT std::string bytes_text(std::uint64_t bytes);

/// Bytes of the well-formed UTF-8 sequence (RFC 3629: no overlong forms, no surrogates) at the front of `text`, which must not be empty; 0
/// when there is none.
XPU_EXPORT std::size_t utf8_length(std::string_view text);
/// A text that was written by a foreign program, made safe for a terminal: control characters and bytes that are not UTF-8 become '?'.
XPU_EXPORT std::string printable(std::string_view text);

}  // namespace xpu
