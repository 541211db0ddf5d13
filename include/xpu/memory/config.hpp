#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"

namespace xpu::memory {

/// The value of a limit in bytes that was not set. No text stands for it: an option that is left out is unlimited.
inline constexpr std::size_t kUnlimitedBytes = std::numeric_limits<std::size_t>::max();

/// How finely sizes are rounded, by interval: [0] for sizes below 2 MiB, [i] for sizes from 2^i MiB on and below 2^(i + 1) MiB, the last
/// for everything from 32 GiB on.
using RoundupDivisions = std::array<std::uint32_t, 16>;

/// The options of the caching allocators. Each is named as in PYTORCH_ALLOC_CONF and means the same; where the text counts in MiB
/// (`..._mb`), the field counts in bytes. A default-constructed one is what holds where nobody asked for anything.
struct Config {
  /// Blocks of this size or more are never split: such a block serves only requests that are themselves that large. At least 20 MiB.
  std::size_t max_split_size_bytes = kUnlimitedBytes;
  /// By how much a block that is not split may be larger than the request that it serves. At least 20 MiB.
  std::size_t max_non_split_rounding_bytes = std::size_t{20} << 20;
  /// Above this share of the allowed memory, unused whole segments are freed, the longest unused first. In (0, 1); 0: never.
  double garbage_collection_threshold = 0;
  /// Between two powers of two sizes are rounded up to one of this many equal steps, see `block_bytes`. Each is a power of two; with 0 and
  /// 1 sizes are not rounded.
  RoundupDivisions roundup_power2_divisions = {};
  /// Segments that grow in place by mapping pages. Not set: the allocator tries whether the device can do it, and
  /// decides; see `allows_expandable_segments`.
  std::optional<bool> expandable_segments = std::nullopt;

  /// Whether a thread of the pinned allocator finds out which blocks are free again; else those who allocate do.
  bool pinned_use_background_threads = false;
  /// Larger pinned blocks have exactly the size asked for.
  std::size_t pinned_max_round_threshold_bytes = kUnlimitedBytes;
  /// Larger pinned blocks are neither rounded nor kept for later. 0: none is kept.
  std::size_t pinned_max_cached_size_bytes = kUnlimitedBytes;

  /// The allowed share of the device's total memory, in (0, 1].
  double per_process_memory_fraction = 1;

  bool operator==(const Config&) const = default;
};

/// Reads what XPU_MEMORY_CONF and PYTORCH_ALLOC_CONF hold: "key:value" separated by commas, booleans exactly True and False, numbers in MiB
/// where the key ends in _mb, blanks round the parts ignored. An empty text is the default.
///
/// roundup_power2_divisions is a number for all intervals or a list like [64:8,256:4,>:1]. An entry names the interval by its first MiB;
/// the first one holds for the smaller ones, too, `>` for all above the last one, and an interval that is left out between two is not
/// rounded.
///
/// What is returned has passed `check_config`. Otherwise invalid_argument; unknown keys and keys that are given twice are refused as well.
/// Where the message tells an index, it counts the parts of the text from 0, as PyTorch does: keys, values and each of , : [ ].
XPU_EXPORT Result<Config> parse_config(std::string_view text);

/// Refuses a value outside what its field allows, and two options of which one would have no effect beside the other: invalid_argument.
XPU_EXPORT Result<> check_config(const Config& config);

/// The options that are not the default, so that `parse_config` returns an equal Config. Of one that `check_config` accepts.
XPU_EXPORT std::string to_string(const Config& config);

/// Whether segments may be expandable where the device can do it: nobody switched them off or asked for an option that has no meaning with
/// them. Of a Config that `check_config` accepts.
XPU_EXPORT bool allows_expandable_segments(const Config& config);

/// `bytes` rounded up to one of `divisions` equal steps between two powers of two: 1200 with 4 is 1280. `divisions` is a power of two or 0;
/// with 0 and 1, and beyond half of the address space, `bytes` is returned as it is.
constexpr std::size_t round_up_power2(std::size_t bytes, std::uint32_t divisions) noexcept {
  if (divisions <= 1 || bytes > kUnlimitedBytes / 2) return bytes;
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / divisions, 1);
  return (bytes + step - 1) & ~(step - 1);
}

/// The size of the block for a request: rounded as the option asks where that makes steps of at least 512 bytes, and a multiple of 512 in
/// any case, at least 512. More than half of the address space is returned as it is, since no device has it and the sum might not fit.
constexpr std::size_t block_bytes(std::size_t requested_bytes, const Config& config) noexcept {
  constexpr std::size_t least_bytes = 512;
  if (requested_bytes > kUnlimitedBytes / 2) return requested_bytes;
  const std::size_t mebibytes = requested_bytes >> 20;
  const std::size_t interval = std::min<std::size_t>(mebibytes == 0 ? 0 : std::bit_width(mebibytes) - 1u, RoundupDivisions().size() - 1);
  const std::uint32_t divisions = config.roundup_power2_divisions[interval];
  if (divisions > 1 && requested_bytes > least_bytes * divisions) return round_up_power2(requested_bytes, divisions);
  return std::max((requested_bytes + least_bytes - 1) & ~(least_bytes - 1), least_bytes);
}

}  // namespace xpu::memory
