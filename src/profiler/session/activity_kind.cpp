#include "xpu/profiler/activity_kind.hpp"

#include <array>

namespace xpu::profiler {
namespace {

struct Kind {
  std::string_view name;
  bool has_producer = false;
  bool is_default = false;
};

/// By number.
constexpr std::array<Kind, kActivityKinds> kKinds = {{
    {"cpu_op", true, true},
    {"user_annotation", true, true},
    {"gpu_user_annotation", true, true},
    {"gpu_memcpy", true, true},
    {"gpu_memset", true, true},
    {"kernel", true, true},
    {"external_correlation", true, true},
    {"cuda_runtime"},
    {"cuda_driver"},
    {"cpu_instant_event", true, true},
    {"python_function", true, true},
    {"overhead", true, true},
    {"mtia_runtime"},
    {"mtia_ccp_events"},
    {"mtia_insight"},
    {"cuda_sync"},
    {"cuda_event"},
    {"mtia_counters"},
    {"glow_runtime"},
    {"cuda_profiler_range"},
    {"hpu_op"},
    {"xpu_runtime", true, true},
    {"xpu_driver", true, false},
    {"collective_comm", true, true},
    {"privateuse1_runtime"},
    {"privateuse1_driver"},
    {"xpu_scope_profiler", true, false},
    {"xpu_sync", true, true},
    {"hardware_counters"},
}};

const Kind& kind_at(ActivityKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view to_string(ActivityKind kind) noexcept {
  return static_cast<unsigned>(kind) < kActivityKinds ? kind_at(kind).name : std::string_view("unknown");
}

std::optional<ActivityKind> find_activity_kind(std::string_view name) noexcept {
  if (name == "concurrent_kernel") return ActivityKind::kernel;
  for (unsigned number = 0; number < kActivityKinds; ++number) {
    if (kKinds[number].name == name) return static_cast<ActivityKind>(number);
  }
  return std::nullopt;
}

bool has_producer(ActivityKind kind) noexcept { return static_cast<unsigned>(kind) < kActivityKinds && kind_at(kind).has_producer; }

ActivityKinds default_activity_kinds() noexcept {
  ActivityKinds kinds;
  for (unsigned number = 0; number < kActivityKinds; ++number) {
    if (kKinds[number].is_default) kinds.insert(static_cast<ActivityKind>(number));
  }
  return kinds;
}

}  // namespace xpu::profiler
