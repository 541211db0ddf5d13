#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "xpu/base/export.hpp"

/// What a profiler can be asked to collect, by the names and numbers that configurations and traces of PyTorch's profiler use: other tools
/// store both.
namespace xpu::profiler {

enum class ActivityKind : std::uint8_t {
  cpu_op = 0,
  user_annotation = 1,
  gpu_user_annotation = 2,
  gpu_memcpy = 3,
  gpu_memset = 4,
  kernel = 5,
  external_correlation = 6,
  cuda_runtime = 7,
  cuda_driver = 8,
  cpu_instant_event = 9,
  python_function = 10,
  overhead = 11,
  mtia_runtime = 12,
  mtia_ccp_events = 13,
  mtia_insight = 14,
  cuda_sync = 15,
  cuda_event = 16,
  mtia_counters = 17,
  glow_runtime = 18,
  cuda_profiler_range = 19,
  hpu_op = 20,
  xpu_runtime = 21,
  xpu_driver = 22,
  collective_comm = 23,
  privateuse1_runtime = 24,
  privateuse1_driver = 25,
  xpu_scope_profiler = 26,
  xpu_sync = 27,
  hardware_counters = 28,
};
inline constexpr unsigned kActivityKinds = 29;

/// "cpu_op", "kernel", ...
XPU_EXPORT std::string_view to_string(ActivityKind kind) noexcept;
/// By that name, or "concurrent_kernel" for `kernel`; nothing for any other text.
XPU_EXPORT std::optional<ActivityKind> find_activity_kind(std::string_view name) noexcept;
/// Whether something on an XPU can be of this kind: the others are those of other vendors' devices.
XPU_EXPORT bool has_producer(ActivityKind kind) noexcept;

/// A set of them.
class ActivityKinds {
 public:
  constexpr ActivityKinds() = default;
  constexpr ActivityKinds(std::initializer_list<ActivityKind> kinds) {
    for (const ActivityKind kind : kinds) insert(kind);
  }
  constexpr void insert(ActivityKind kind) { bits_ |= std::uint32_t{1} << static_cast<unsigned>(kind); }
  constexpr void erase(ActivityKind kind) { bits_ &= ~(std::uint32_t{1} << static_cast<unsigned>(kind)); }
  constexpr bool contains(ActivityKind kind) const { return (bits_ >> static_cast<unsigned>(kind) & 1) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }
  constexpr ActivityKinds operator&(ActivityKinds other) const {
    ActivityKinds both;
    both.bits_ = bits_ & other.bits_;
    return both;
  }
  constexpr bool operator==(const ActivityKinds&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

/// Everything that can happen on an XPU or beside it but what has to be asked for: calls of the driver and counters.
XPU_EXPORT ActivityKinds default_activity_kinds() noexcept;

}  // namespace xpu::profiler
