#include "xpu/trace/view/api_ids.hpp"

#include <algorithm>
#include <unordered_map>

#include "xpu/trace/view/records.hpp"

namespace xpu::trace::view {
namespace {

struct ListedName {
  ApiGroup group;
  const char* name;
  ApiClass api_class;
};
constexpr ListedName kListedNames[] = {
#define XPU_API_ID(group, name, api_class) {ApiGroup::group, name, ApiClass::api_class},
#include "trace/view/api_ids.inc"
#undef XPU_API_ID
};

template <ApiGroup group>
constexpr auto functions_of() {
  constexpr auto kCount = static_cast<std::size_t>(
      std::count_if(std::begin(kListedNames), std::end(kListedNames), [](const ListedName& listed) { return listed.group == group; }));
  std::array<ApiFunction, kCount> functions{};
  std::uint32_t id = 0;
  for (const ListedName& listed : kListedNames) {
    if (listed.group != group) continue;
    functions[id] = {group, id + 1, listed.api_class, listed.name};
    ++id;
  }
  return functions;
}
constexpr auto kOpenclFunctions = functions_of<ApiGroup::opencl>();
constexpr auto kRuntimeFunctions = functions_of<ApiGroup::xpu>();

using FunctionsByName = std::unordered_map<std::string_view, const ApiFunction*>;
const FunctionsByName& functions_by_name() {
  // Never freed: views may be made while the process ends.
  static const auto* const kByName = [] {
    auto* by_name = new FunctionsByName;
    for (const ApiGroup group : {ApiGroup::opencl, ApiGroup::xpu}) {
      for (const ApiFunction& function : api_functions(group)) by_name->emplace(function.name, &function);
    }
    return by_name;
  }();
  return *kByName;
}

constexpr ViewKind kind_of_group(ApiGroup group) {
  return group == ApiGroup::opencl || group == ApiGroup::level_zero ? ViewKind::driver_api : ViewKind::runtime_api;
}

ApiGroup group_by_prefix(std::string_view name) {
  // All three APIs go on with a capital letter: clFinish, zeInit, urEnqueueKernelLaunch.
  const auto begins = [&](std::string_view prefix) {
    return name.size() > prefix.size() && name.starts_with(prefix) && name[prefix.size()] >= 'A' && name[prefix.size()] <= 'Z';
  };
  if (begins("cl")) return ApiGroup::opencl;
  if (begins("ze") || begins("zes") || begins("zet") || begins("zex")) return ApiGroup::level_zero;
  if (begins("ur")) return ApiGroup::sycl;
  return ApiGroup::xpu;
}

}  // namespace

std::span<const ApiFunction> api_functions(ApiGroup group) noexcept {
  if (group == ApiGroup::opencl) return kOpenclFunctions;
  if (group == ApiGroup::xpu) return kRuntimeFunctions;
  return {};
}

ApiIdentity identify_api(std::string_view name) noexcept {
  const FunctionsByName& by_name = functions_by_name();
  const auto known = by_name.find(name);
  if (known != by_name.end())
    return {kind_of_group(known->second->group), known->second->group, known->second->id, known->second->api_class};
  const ApiGroup group = group_by_prefix(name);
  return {kind_of_group(group), group, kUnknownApiId, ApiClass::reserved};
}

ResultCode api_name(ApiGroup group, std::uint32_t id, const char** name) noexcept {
  if (name == nullptr) return ResultCode::bad_argument;
  switch (group) {
    case ApiGroup::level_zero:
    case ApiGroup::sycl:
    case ApiGroup::hybrid_sycl_level_zero: return ResultCode::not_implemented;
    case ApiGroup::hybrid_sycl_opencl: group = ApiGroup::opencl; break;  // of the group of the other API, with this one's ids
    case ApiGroup::opencl:
    case ApiGroup::xpu: break;
    default: return ResultCode::bad_argument;
  }
  const std::span<const ApiFunction> functions = api_functions(group);
  if (id == 0 || id > functions.size()) return ResultCode::bad_argument;
  *name = functions[id - 1].name;
  return ResultCode::success;
}

}  // namespace xpu::trace::view
