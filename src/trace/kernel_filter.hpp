#pragma once

#include <regex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/probe.hpp"

namespace xpu::trace {

/// Which kernels are wanted (`--kernels`). The expression is matched once per kernel object; a launch looks one bit up, without a lock.
/// Kernels that were never named are wanted. Never destroyed.
class KernelFilter {
 public:
  constexpr KernelFilter() noexcept = default;

  /// POSIX extended; empty wants everything. False when it is not an expression; then everything is wanted. Not while others ask.
  bool set_expression(const char* expression) noexcept;

  void kernel_created(probe::Id kernel, std::string_view name) noexcept;

  bool is_wanted(probe::Id kernel) const noexcept {
    if (!active_) return true;
    const std::size_t block = kernel / kBlockKernels;
    if (block >= kBlocks) return true;
    const std::atomic<std::uint64_t>* bits = unwanted_[block].load(std::memory_order_acquire);
    return bits == nullptr || (bits[kernel % kBlockKernels / 64].load(std::memory_order_relaxed) >> kernel % 64 & 1) == 0;
  }

 private:
  static constexpr std::size_t kBlockKernels = 32'768;  // 4 KiB of bits
  static constexpr std::size_t kBlocks = 1024;

  bool active_ = false;
  regex_t expression_{};
  std::atomic<std::atomic<std::uint64_t>*> unwanted_[kBlocks] = {};
};

}  // namespace xpu::trace
