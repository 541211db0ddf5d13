#pragma once

#include <cstddef>
#include <cstdint>

#include "xpu/hal/kernel_function.hpp"
#include "xpu/hal/queue.hpp"

/// The work-groups of one launch of a kernel function.
namespace xpu::hal {

class WorkGroups {
 public:
  /// The geometry is valid (the runtime has checked it); a local size of zeros is chosen so that there are about `wanted_groups` groups,
  /// whole rows of dimension 0 where that is possible.
  WorkGroups(const Geometry& geometry, const KernelFacts& facts, std::uint64_t wanted_groups) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// Runs the groups [first, last) in order on the calling thread. `local_memory` has room for one group.
  void run(KernelFunction function, const std::byte* arguments, std::uint64_t first, std::uint64_t last, std::byte* local_memory,
           std::uint64_t local_memory_bytes) const;
  const WorkGroup& prototype() const noexcept { return prototype_; }

 private:
  WorkGroup prototype_;
  std::uint64_t count_ = 1;
};

}  // namespace xpu::hal
