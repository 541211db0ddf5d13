#include "xpu/hal/device.hpp"
#include "xpu/hal/module.hpp"

namespace xpu::hal {

const char* to_string(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::device: return "device";
    case MemoryKind::host: return "host";
    case MemoryKind::shared: return "shared";
  }
  return "unknown";
}

const char* to_string(ModuleFormat format) noexcept {
  switch (format) {
    case ModuleFormat::registered: return "registered";
    case ModuleFormat::functions: return "functions";
    case ModuleFormat::machine_code: return "machine_code";
    case ModuleFormat::source_cpp: return "source_cpp";
    case ModuleFormat::source_opencl: return "source_opencl";
    case ModuleFormat::spirv: return "spirv";
  }
  return "unknown";
}

}  // namespace xpu::hal
