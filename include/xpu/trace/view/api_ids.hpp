#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "xpu/base/export.hpp"
#include "xpu/trace/view/enums.hpp"

/// Numbers of API functions, as records and filters name them. A published id never changes.
///
/// The trace knows texts only and may not use the layer `api`, so the list is its own; a test compares it with that layer's and with what
/// the runtime publishes. There are ids of OpenCL and of libxpu's runtime. PTI's for SYCL and Level Zero are not here: nobody publishes
/// such calls yet.
namespace xpu::trace::view {

struct ApiFunction {
  ApiGroup group;
  std::uint32_t id;    ///< In its group, from 1.
  ApiClass api_class;  ///< `reserved`: in no class.
  const char* name;
};

/// What a call is for views and filters, whether its name has a published id or not.
struct ApiIdentity {
  ViewKind kind = ViewKind::runtime_api;  ///< Or driver_api.
  ApiGroup group = ApiGroup::xpu;
  std::uint32_t id;
  ApiClass api_class = ApiClass::reserved;
};

/// Functions of one group in the order of their ids; empty for groups that have none.
XPU_EXPORT std::span<const ApiFunction> api_functions(ApiGroup group) noexcept;

/// A name without an id gets kUnknownApiId, and its group by what such names begin with ("cl", "ze", "ur"); the rest counts as the
/// runtime's.
XPU_EXPORT ApiIdentity identify_api(std::string_view name) noexcept;

/// The static name of an id. not_implemented: a group without ids. bad_argument: no such group or id, or `name` is null; `*name` stays
/// then.
XPU_EXPORT ResultCode api_name(ApiGroup group, std::uint32_t id, const char** name) noexcept;

}  // namespace xpu::trace::view
