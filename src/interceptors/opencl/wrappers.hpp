#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/probe.hpp"
#include "interceptors/opencl/opencl_headers.hpp"

namespace xpu::interceptors::opencl {

/// The entry points that we know, as numbers: indices into `api_id`.
enum class Entry : std::uint16_t {
#define XPU_OPENCL_WRAPPED(name) name,
#define XPU_OPENCL_CALL(name) name,
#define XPU_OPENCL_PASSED(name) name,
#define XPU_OPENCL_EXTENSION_WRAPPED(name) name,
#define XPU_OPENCL_EXTENSION_PASSED(name)
#include "interceptors/opencl/entry_points.inc"
  count
};

/// Our functions under the names and with the exact types of the loader's table: one that the table of entry points calls wrapped and that
/// nobody wrote does not link. No exception leaves any of them.
struct Wrappers {
#define XPU_OPENCL_WRAPPED(name) static std::remove_pointer_t<decltype(cl_icd_dispatch::name)> name;
#define XPU_OPENCL_CALL(name)
#define XPU_OPENCL_PASSED(name)
#define XPU_OPENCL_EXTENSION_WRAPPED(name) static std::remove_pointer_t<decltype(::name)> name;
#define XPU_OPENCL_EXTENSION_PASSED(name)
#include "interceptors/opencl/entry_points.inc"
};

namespace internal {
extern constinit probe::Id g_api_ids[static_cast<std::size_t>(Entry::count)];
}

/// The string id of the function's name; 0 before `intern_api_names`.
inline probe::Id api_id(Entry entry) noexcept { return internal::g_api_ids[static_cast<std::size_t>(entry)]; }
void intern_api_names() noexcept;

/// Fills `table` with our functions where `target` has one and the entry is wrapped: always, or (`with_calls`) as a plain call. All other
/// slots become those of `target`, null ones too.
void build_table(const cl_icd_dispatch& target, bool with_calls, cl_icd_dispatch& table) noexcept;

}  // namespace xpu::interceptors::opencl
