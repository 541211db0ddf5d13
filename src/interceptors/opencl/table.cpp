#include <cstddef>
#include <iterator>

#include "interceptors/opencl/generic_call.hpp"
#include "interceptors/opencl/wrappers.hpp"

namespace xpu::interceptors::opencl {
namespace {

constexpr const char* kEntryNames[] = {
#define XPU_OPENCL_WRAPPED(name) #name,
#define XPU_OPENCL_CALL(name) #name,
#define XPU_OPENCL_PASSED(name) #name,
#define XPU_OPENCL_EXTENSION_WRAPPED(name) #name,
#define XPU_OPENCL_EXTENSION_PASSED(name)
#include "interceptors/opencl/entry_points.inc"
};
static_assert(std::size(kEntryNames) == static_cast<std::size_t>(Entry::count));

// A slot of the installed headers that our table of entry points does not have would pass by unseen.
static_assert(static_cast<std::size_t>(Entry::clCreateCommandQueueWithPropertiesKHR) == sizeof(cl_icd_dispatch) / sizeof(void*));

}  // namespace

namespace internal {
constinit probe::Id g_api_ids[static_cast<std::size_t>(Entry::count)] = {};
}

void intern_api_names() noexcept {
  for (std::size_t index = 0; index < std::size(kEntryNames); ++index) internal::g_api_ids[index] = probe::intern(kEntryNames[index]);
}

void build_table(const cl_icd_dispatch& below, bool with_calls, cl_icd_dispatch& table) noexcept {
  table = below;
#define XPU_OPENCL_WRAPPED(name) \
  if (below.name != nullptr) table.name = Wrappers::name;
#define XPU_OPENCL_CALL(name) \
  if (with_calls && below.name != nullptr) table.name = GenericCall<&cl_icd_dispatch::name, Entry::name>::function;
#define XPU_OPENCL_PASSED(name)
#define XPU_OPENCL_EXTENSION_WRAPPED(name)
#define XPU_OPENCL_EXTENSION_PASSED(name)
#include "interceptors/opencl/entry_points.inc"
}

}  // namespace xpu::interceptors::opencl
