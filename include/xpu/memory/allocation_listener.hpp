#pragma once

#include <cstddef>

#include "xpu/base/export.hpp"

namespace xpu::memory {

/// Hears of what a program allocates while somebody profiles it. Called by the thread that allocates or frees, with no lock held; must not
/// call the allocator but for what it tells about itself.
class XPU_EXPORT AllocationListener {
 public:
  virtual ~AllocationListener();
  /// The program has this block now; `bytes` as it asked for.
  virtual void allocated(const void* address, std::size_t bytes) noexcept = 0;
  /// It is about to give it back: nobody else can have the address before this returns.
  virtual void freeing(const void* address, std::size_t bytes) noexcept = 0;
};

}  // namespace xpu::memory
