#include "hal/registered_kernels.hpp"

#include <algorithm>

#include "base/mutex.hpp"
#include "hal/function_module.hpp"
#include "xpu/base/export.hpp"

namespace {

constinit xpu::base::Mutex g_registered_mutex;
constinit const xpu::KernelDescriptor* g_newest_kernel XPU_GUARDED_BY(g_registered_mutex) = nullptr;

}  // namespace

namespace xpu::hal {

std::shared_ptr<const Kernel> find_registered_kernel(std::string_view name) {
  const base::MutexLock lock(g_registered_mutex);
  for (const KernelDescriptor* kernel = g_newest_kernel; kernel != nullptr; kernel = kernel->next) {
    if (kernel->name == name) return std::make_shared<const FunctionKernel>(*kernel, nullptr);
  }
  return nullptr;
}

std::vector<std::string> registered_kernel_names() {
  std::vector<std::string> names;
  {
    const base::MutexLock lock(g_registered_mutex);
    for (const KernelDescriptor* kernel = g_newest_kernel; kernel != nullptr; kernel = kernel->next) {
      if (std::find(names.begin(), names.end(), kernel->name) == names.end()) names.emplace_back(kernel->name);
    }
  }
  std::reverse(names.begin(), names.end());
  return names;
}

}  // namespace xpu::hal

extern "C" XPU_EXPORT void xpu_register_kernel(xpu::KernelDescriptor* kernel) {
  const xpu::base::MutexLock lock(g_registered_mutex);
  kernel->next = g_newest_kernel;
  g_newest_kernel = kernel;
}

extern "C" XPU_EXPORT void xpu_unregister_kernel(xpu::KernelDescriptor* kernel) {
  const xpu::base::MutexLock lock(g_registered_mutex);
  const xpu::KernelDescriptor** link = &g_newest_kernel;
  // Every element came through xpu_register_kernel, which takes it without const.
  while (*link != nullptr && *link != kernel) link = &const_cast<xpu::KernelDescriptor*>(*link)->next;
  if (*link == kernel) *link = kernel->next;
}
