#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/probe.hpp"
#include "xpu/base/result.hpp"
#include "xpu/runtime/module.hpp"

namespace xpu::runtime {

struct DeviceState;

/// The most that the arguments of one launch may take together, whatever the device allows.
inline constexpr std::size_t kMaxArgumentBytes = 4'096;

struct KernelState {
  std::shared_ptr<const hal::Kernel> kernel;
  const DeviceState* device;
  probe::Id probe_id;
};

/// That the kernel is of this device, the arguments are of its types and the geometry fits. The error names what does not.
Result<> check_launch(const KernelState& kernel, const DeviceState& device, const Geometry& geometry,
                      std::span<const ArgumentValue> arguments, std::uint32_t local_memory_bytes);

/// Lays the arguments out as the kernel wants them; they have been checked. Returns the used part of `block`.
std::span<const std::byte> pack_arguments(const KernelState& kernel, std::span<const ArgumentValue> arguments,
                                          std::byte (&block)[kMaxArgumentBytes]) noexcept;

}  // namespace xpu::runtime
