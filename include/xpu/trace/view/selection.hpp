#pragma once

#include <cstdint>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/trace/view/api_ids.hpp"

namespace xpu::trace::view {

/// Which records are wanted. A plain value: whoever shares one between threads locks.
///
/// Kinds are a set: enabling twice is enabling once. The two API kinds have a filter by function: enabling the kind wants every function,
/// also those without a published id; the first call that names functions or a class then empties the groups that it names, and what is
/// named since is wanted.
class XPU_EXPORT Selection {
 public:
  Selection();

  /// bad_argument: no such kind. not_implemented: cpu_kernel.
  ResultCode enable(ViewKind kind);
  /// Success also when it was not enabled.
  ResultCode disable(ViewKind kind);
  bool is_enabled(ViewKind kind) const noexcept;
  bool is_any_enabled() const noexcept { return kinds_ != 0; }

  /// One function. `kind`: driver_api (group opencl) or runtime_api (group xpu). bad_argument: another kind or group; not_implemented: a
  /// group of this kind without ids (level_zero, sycl); bad_api_id: no such id.
  ResultCode enable_api(ViewKind kind, bool enable, ApiGroup group, std::uint32_t id);
  /// Every function of a class; group `all` means each group of this kind that has ids, and class `all` every function of the group, also
  /// those without an id.
  ResultCode enable_api_class(ViewKind kind, bool enable, ApiClass api_class, ApiGroup group);

  /// Whether the view of a call is wanted.
  bool wants(const ApiIdentity& api) const noexcept;
  bool wants_any_api() const noexcept { return is_enabled(ViewKind::driver_api) || is_enabled(ViewKind::runtime_api); }

 private:
  // Of one group: by id, and at 0 for the functions that have none.
  struct Filter {
    ApiGroup group;
    ViewKind kind;
    bool is_narrowed = false;
    std::vector<bool> wanted;
  };

  ResultCode check_group(ViewKind kind, ApiGroup group) const noexcept;
  static void narrow(Filter& filter);

  std::uint32_t kinds_ = 0;
  std::vector<Filter> filters_;
};

}  // namespace xpu::trace::view
