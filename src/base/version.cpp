#include "xpu/base/version.hpp"

#include "base/probe.hpp"

namespace xpu {

const char* version() noexcept { return XPU_VERSION; }

}  // namespace xpu

std::uint32_t xpu_probe_abi() { return xpu::probe::kAbi; }
