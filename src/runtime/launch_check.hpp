#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/probe.hpp"
#include "xpu/base/result.hpp"
#include "xpu/runtime/module.hpp"

namespace xpu::runtime {

struct DeviceState;

/// The most that the arguments of one launch may take together, whatever the device allows.
inline constexpr std::size_t kMaxArgumentBytes = 4'096;

struct KernelState {
  KernelState(std::shared_ptr<const hal::Kernel> of_driver, const DeviceState* its_device, probe::Id id);
  ~KernelState();
  KernelState(const KernelState&) = delete;
  KernelState& operator=(const KernelState&) = delete;

  /// An argument as a launch must give it: type, pointee and size in one word, as at the front of ArgumentValue.
  struct Wanted {
    std::uint64_t word;
    std::uint32_t offset_bytes;
    std::uint32_t size_bytes;
  };

  std::shared_ptr<const hal::Kernel> kernel;
  const DeviceState* device;
  probe::Id probe_id;
  // What every launch looks at, side by side.
  const Wanted* wanted;
  std::uint32_t argument_count, argument_bytes;
  std::uint32_t local_memory_bytes;
  bool takes_any_group_size;
  bool is_short_and_independent;

 private:
  std::vector<Wanted> wanted_;
};

/// Checks that the kernel is of this device, the arguments are of its types and the geometry fits, and lays the arguments out in `block` as
/// the kernel wants them; its used part is `kernel.argument_bytes` long. The error names what does not fit.
Result<> prepare_launch(const KernelState& kernel, const DeviceState& device, const Geometry& geometry,
                        std::span<const ArgumentValue> arguments, std::uint32_t local_memory_bytes, std::byte (&block)[kMaxArgumentBytes]);

}  // namespace xpu::runtime
