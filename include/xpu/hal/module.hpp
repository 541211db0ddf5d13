#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/kernel_function.hpp"

namespace xpu::hal {

/// In which form a module's code is handed over. Which of them a driver takes: `Capabilities::module_formats`.
enum class ModuleFormat : std::uint8_t {
  registered,     ///< Every kernel of `XPU_KERNEL` in this process, those that come later too. No code.
  functions,      ///< `ModuleSource::functions`: kernel functions of this process.
  machine_code,   ///< Position-independent code of one kernel, entry at its first byte, which is called as a KernelFunction; described by
                  ///< functions[0].
  source_cpp,     ///< C++ text with XPU_KERNEL; kernel_function.hpp is included by itself.
  source_opencl,  ///< OpenCL C.
  spirv,
};
/// "registered", "functions", "machine_code", "source_cpp", "source_opencl", "spirv".
XPU_EXPORT const char* to_string(ModuleFormat format) noexcept;

/// Only read during `Device::create_module`.
struct ModuleSource {
  ModuleFormat format = ModuleFormat::registered;
  std::string_view name = {};                        ///< For people.
  std::span<const std::byte> code = {};              ///< Text or binary.
  std::string_view options = {};                     ///< For the compiler, separated by spaces: "-O3 -DN=4".
  std::span<const KernelDescriptor> functions = {};  ///< Copied, names and arguments too; the functions must stay.
};

/// What the runtime must know to check a launch and to lay out its arguments.
struct KernelInfo {
  std::string name;
  std::vector<KernelArgument> arguments;  ///< Their names live as long as the kernel.
  std::uint32_t argument_bytes = 0;
  bool has_argument_types = true;  ///< False: the driver knows sizes only.
  KernelFacts facts;
  std::uint64_t max_work_group_size = 0;  ///< 0 = the device's.
  std::uint32_t private_bytes = 0;
  std::uint32_t sub_group_size = 0;  ///< 0 = the driver does not tell.
};

/// Thread-safe. Keeps its module's code alive.
class XPU_EXPORT Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  virtual const KernelInfo& info() const noexcept = 0;
  virtual void* native_handle() const noexcept = 0;

 protected:
  Kernel() = default;
};

/// Thread-safe. May be destroyed before its kernels, and while launches of them are pending.
class XPU_EXPORT Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual std::vector<std::string> kernel_names() const = 0;
  /// Error not_found, naming those that there are.
  virtual Result<std::shared_ptr<const Kernel>> kernel(std::string_view name) const = 0;

 protected:
  Module() = default;
};

}  // namespace xpu::hal
