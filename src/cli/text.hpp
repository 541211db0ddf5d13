#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"
#include "xpu/base/text.hpp"

/// Figures as people read and type them.
namespace xpu::cli {

/// "1 command", "2 commands": `noun` takes an s.
std::string counted(std::uint64_t count, std::string_view noun);

/// "512M", "2G", "64KiB", "1048576"; the letters are powers of 1,024.
Result<std::uint64_t> parse_bytes(std::string_view text);
/// "1.5", "1.5s", "200ms": seconds unless a unit says otherwise. In nanoseconds, at most one year.
Result<std::uint64_t> parse_duration(std::string_view text);

/// As it is when a shell would take it as one plain word, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace xpu::cli
