#include "profiler/link/demangle.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace xpu::profiler {

std::string demangle(const std::string& name) {
  // The demangler recurses and its output may be far longer than its input: a name out of a damaged file must not exhaust the stack.
  constexpr std::size_t kLongestName = 4096;
  if (!name.starts_with("_Z") || name.size() > kLongestName) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return name;
  std::string_view readable(text.get());
  constexpr std::string_view kTypeInfo = "typeinfo name for ";
  if (readable.starts_with(kTypeInfo)) readable.remove_prefix(kTypeInfo.size());
  return std::string(readable);
}

}  // namespace xpu::profiler
