#include "xpu/trace/view/selection.hpp"

#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {
namespace {

constexpr bool is_api_kind(ViewKind kind) { return kind == ViewKind::driver_api || kind == ViewKind::runtime_api; }

ResultCode check_kind(ViewKind kind) {
  switch (kind) {
    case ViewKind::kernel:
    case ViewKind::driver_api:
    case ViewKind::overhead:
    case ViewKind::runtime_api:
    case ViewKind::external_correlation:
    case ViewKind::memory_copy:
    case ViewKind::memory_fill:
    case ViewKind::peer_copy:
    case ViewKind::synchronization:
    case ViewKind::communication: return ResultCode::success;
    case ViewKind::cpu_kernel: return ResultCode::not_implemented;
    case ViewKind::invalid:
    case ViewKind::reserved: break;
  }
  return ResultCode::bad_argument;
}

}  // namespace

Selection::Selection()
    : filters_{{ApiGroup::opencl, ViewKind::driver_api, false, {}},
               {ApiGroup::level_zero, ViewKind::driver_api, false, {}},
               {ApiGroup::xpu, ViewKind::runtime_api, false, {}},
               {ApiGroup::sycl, ViewKind::runtime_api, false, {}}} {
  for (Filter& filter : filters_) filter.wanted.assign(api_functions(filter.group).size() + 1, true);
}

ResultCode Selection::enable(ViewKind kind) {
  const ResultCode code = check_kind(kind);
  if (code != ResultCode::success) return code;
  kinds_ |= 1u << static_cast<std::uint32_t>(kind);
  for (Filter& filter : filters_) {
    if (filter.kind != kind) continue;
    filter.is_narrowed = false;
    filter.wanted.assign(filter.wanted.size(), true);
  }
  return ResultCode::success;
}

ResultCode Selection::disable(ViewKind kind) {
  const ResultCode code = check_kind(kind);
  if (code == ResultCode::success) kinds_ &= ~(1u << static_cast<std::uint32_t>(kind));
  return code;
}

bool Selection::is_enabled(ViewKind kind) const noexcept {
  return static_cast<std::uint32_t>(kind) < kViewKinds && (kinds_ >> static_cast<std::uint32_t>(kind) & 1) != 0;
}

ResultCode Selection::check_group(ViewKind kind, ApiGroup group) const noexcept {
  if (!is_api_kind(kind)) return ResultCode::bad_argument;
  for (const Filter& filter : filters_) {
    if (filter.group != group || filter.kind != kind) continue;
    return api_functions(group).empty() ? ResultCode::not_implemented : ResultCode::success;
  }
  return ResultCode::bad_argument;
}

void Selection::narrow(Filter& filter) {
  if (filter.is_narrowed) return;
  filter.is_narrowed = true;
  filter.wanted.assign(filter.wanted.size(), false);
}

ResultCode Selection::enable_api(ViewKind kind, bool enable, ApiGroup group, std::uint32_t id) {
  const ResultCode code = check_group(kind, group);
  if (code != ResultCode::success) return code;
  if (id == 0 || id > api_functions(group).size()) return ResultCode::bad_api_id;
  for (Filter& filter : filters_) {
    if (filter.group != group) continue;
    narrow(filter);
    filter.wanted[id] = enable;
  }
  return ResultCode::success;
}

ResultCode Selection::enable_api_class(ViewKind kind, bool enable, ApiClass api_class, ApiGroup group) {
  if (group == ApiGroup::all) {
    if (!is_api_kind(kind)) return ResultCode::bad_argument;
  } else if (const ResultCode code = check_group(kind, group); code != ResultCode::success) {
    return code;
  }
  const bool is_whole = api_class == ApiClass::all;
  if (!is_whole && api_class != ApiClass::gpu_operation_core && api_class != ApiClass::host_operation_synchronization)
    return ResultCode::bad_argument;
  for (Filter& filter : filters_) {
    if (filter.kind != kind || (group != ApiGroup::all && filter.group != group)) continue;
    narrow(filter);
    if (is_whole) filter.wanted.assign(filter.wanted.size(), enable);
    for (const ApiFunction& function : api_functions(filter.group)) {
      if (function.api_class == api_class) filter.wanted[function.id] = enable;
    }
  }
  return ResultCode::success;
}

bool Selection::wants(const ApiIdentity& api) const noexcept {
  if (!is_enabled(api.kind)) return false;
  for (const Filter& filter : filters_) {
    if (filter.group == api.group) return filter.wanted[api.id < filter.wanted.size() ? api.id : 0];
  }
  return false;
}

}  // namespace xpu::trace::view
