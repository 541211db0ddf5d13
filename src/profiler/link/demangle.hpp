#pragma once

#include <string>

namespace xpu::profiler {

/// A kernel's name for people. SYCL names a kernel by the mangled name of its type's type information (`_ZTS…`): "typeinfo name for " is
/// left out. Names that are not mangled, or not well, come back as they are.
std::string demangle(const std::string& name);

}  // namespace xpu::profiler
