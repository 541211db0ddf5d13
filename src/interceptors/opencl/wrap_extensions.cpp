#include <algorithm>
#include <string_view>

#include "base/probe.hpp"
#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/extensions.hpp"
#include "xpu/api/opencl.hpp"

namespace xpu::interceptors::opencl {
namespace {

/// What the program gets instead of the driver's function. Entries of the dispatch table can be asked for by name too, and must not go past
/// us.
void* ours_instead_of(const char* name, void* drivers) noexcept {
  if (name == nullptr || drivers == nullptr || listener_or_null() == nullptr) return drivers;
  const std::string_view wanted(name);
  if (wanted == "clCreateCommandQueueWithPropertiesKHR") {
    set_create_queue_khr(drivers);
    return reinterpret_cast<void*>(Wrappers::clCreateCommandQueueWithPropertiesKHR);
  }
  const api::opencl::EntryPoint* entry = api::opencl::find_entry_point(wanted);
  if (entry == nullptr || entry->entry_class != api::opencl::EntryClass::submit || entry->treatment != api::opencl::Treatment::passed)
    return drivers;
  const probe::Subscriber* listener = listener_or_null();
  if (wants(*listener, probe::kAnnotations)) {
    char text[256] = "not recorded: ";
    const std::size_t length = std::string_view(text).size();
    const std::size_t copied = wanted.copy(text + length, sizeof text - length);
    listener->annotate({.time_ns = now_ns(), .type = probe::AnnotationType::mark, .text = {text, length + copied}});
  }
  return drivers;
}

}  // namespace

void* Wrappers::clGetExtensionFunctionAddress(const char* name) {
  Call call(Entry::clGetExtensionFunctionAddress);
  return call.finish(ours_instead_of(name, target().clGetExtensionFunctionAddress(name)), CL_SUCCESS);
}

void* Wrappers::clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char* name) {
  Call call(Entry::clGetExtensionFunctionAddressForPlatform);
  return call.finish(ours_instead_of(name, target().clGetExtensionFunctionAddressForPlatform(platform, name)), CL_SUCCESS);
}

}  // namespace xpu::interceptors::opencl
