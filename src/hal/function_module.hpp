#pragma once

#include <memory>
#include <string_view>

#include "xpu/base/result.hpp"
#include "xpu/hal/module.hpp"

/// Modules whose kernels are functions of this process: what the drivers share that run kernels on the host's processors.
namespace xpu::hal {

/// Formats that `create_function_module` takes, as bits of `Capabilities::module_formats`.
inline constexpr std::uint32_t kFunctionModuleFormats =
    1u << static_cast<unsigned>(ModuleFormat::registered) | 1u << static_cast<unsigned>(ModuleFormat::functions) |
    1u << static_cast<unsigned>(ModuleFormat::machine_code) | 1u << static_cast<unsigned>(ModuleFormat::source_cpp);

/// A kernel that is called with a block of arguments, once a work-group. Holds on to the code (the loaded library, the executable pages),
/// so a driver keeps the shared pointer with every pending launch.
class FunctionKernel final : public Kernel, public std::enable_shared_from_this<FunctionKernel> {
 public:
  /// `code` is whatever keeps the function and the names of its arguments alive; null when the program does.
  FunctionKernel(const KernelDescriptor& descriptor, std::shared_ptr<const void> code);

  const KernelInfo& info() const noexcept override { return info_; }
  void* native_handle() const noexcept override { return reinterpret_cast<void*>(function_); }
  KernelFunction function() const noexcept { return function_; }

 private:
  KernelFunction function_;
  KernelInfo info_;
  std::shared_ptr<const void> code_;
};

/// `source.format` is one of kFunctionModuleFormats. Source text is compiled by the system's compiler, or taken from the cache
/// (source_compiler.hpp); machine code is copied into executable pages.
Result<std::unique_ptr<Module>> create_function_module(const ModuleSource& source);

}  // namespace xpu::hal
