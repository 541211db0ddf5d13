#include <algorithm>

#include "xpu/api/opencl.hpp"

namespace xpu::api::opencl {
namespace {

constexpr EntryPoint kDispatchEntries[] = {
#define XPU_OPENCL_ENTRY(name, since, class_name, treatment, reason) {#name, since, EntryClass::class_name, Treatment::treatment, reason},
#define XPU_OPENCL_EXTENSION(name, since, class_name, treatment, reason)
#include "api/opencl/entry_points.inc"
};

constexpr EntryPoint kExtensionEntries[] = {
#define XPU_OPENCL_ENTRY(name, since, class_name, treatment, reason)
#define XPU_OPENCL_EXTENSION(name, since, class_name, treatment, reason) \
  {#name, since, EntryClass::class_name, Treatment::treatment, reason},
#include "api/opencl/entry_points.inc"
};

}  // namespace

std::span<const EntryPoint> entry_points() noexcept { return kDispatchEntries; }

std::span<const EntryPoint> extension_entry_points() noexcept { return kExtensionEntries; }

const EntryPoint* find_entry_point(std::string_view name) noexcept {
  for (const std::span<const EntryPoint> entries : {entry_points(), extension_entry_points()}) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const EntryPoint& entry) { return entry.name == name; });
    if (found != entries.end()) return &*found;
  }
  return nullptr;
}

}  // namespace xpu::api::opencl
