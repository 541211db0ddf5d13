#include "hal/work_groups.hpp"

#include <algorithm>

namespace xpu::hal {
namespace {

// Below this a group costs more to hand to another thread than its items cost to run.
constexpr std::uint64_t kLeastItems = 256;
// A chunk of dimension 0 is whole cache lines and whole vectors of any element type.
constexpr std::uint64_t kItemMultiple = 64;

std::uint64_t divide_up(std::uint64_t value, std::uint64_t divisor) { return value == 0 ? 0 : (value - 1) / divisor + 1; }

/// One dimension of `items` in all: how long its equal parts are when there are to be about `wanted_parts`.
std::uint64_t length_of_part(std::uint64_t length, std::uint64_t items, std::uint64_t wanted_parts) {
  const std::uint64_t most_parts = std::min(length, std::max<std::uint64_t>(items / kLeastItems, 1));
  return divide_up(length, std::clamp<std::uint64_t>(wanted_parts, 1, most_parts));
}

/// Cuts one dimension: the outermost in which the pieces are still as small as wanted, so that rows and planes stay whole where they can.
void choose_local(const std::uint64_t (&global)[3], std::uint64_t wanted_groups, std::uint64_t (&local)[3]) {
  for (int dimension = 0; dimension < 3; ++dimension) local[dimension] = global[dimension];
  if (wanted_groups <= 1) return;
  const std::uint64_t row = global[0], plane = row * global[1], items = plane * global[2];
  if (items <= kLeastItems) return;
  const std::uint64_t wanted_items = std::max(divide_up(items, wanted_groups), kLeastItems);
  if (wanted_items >= plane) {
    local[2] = length_of_part(global[2], items, wanted_groups);
  } else if (wanted_items >= row) {
    local[1] = length_of_part(global[1], plane, wanted_groups / global[2]);
    local[2] = 1;
  } else {
    const std::uint64_t length = length_of_part(row, row, wanted_groups / (global[1] * global[2]));
    local[0] = std::min(divide_up(length, kItemMultiple) * kItemMultiple, row);
    local[1] = local[2] = 1;
  }
}

}  // namespace

WorkGroups::WorkGroups(const Geometry& geometry, const KernelFacts& facts, std::uint64_t wanted_groups) noexcept
    : prototype_{.local = {geometry.local[0], geometry.local[1], geometry.local[2]},
                 .global = {geometry.global[0], geometry.global[1], geometry.global[2]},
                 .offset = {geometry.offset[0], geometry.offset[1], geometry.offset[2]}} {
  auto& local = prototype_.local;
  const auto& global = prototype_.global;
  if (local[0] == 0) {
    for (int dimension = 0; dimension < 3; ++dimension) local[dimension] = facts.required_local[dimension];
  }
  if (local[0] == 0) choose_local(global, wanted_groups, local);
  for (int dimension = 0; dimension < 3; ++dimension) {
    // Without the division where there is one group: it would be most of what a short launch costs.
    if (local[dimension] != 0 && local[dimension] == global[dimension]) continue;
    if (local[dimension] == 0) local[dimension] = 1;  // a dimension that was left out, or has no items
    prototype_.count[dimension] = divide_up(global[dimension], local[dimension]);
    count_ *= prototype_.count[dimension];
  }
}

void WorkGroups::run(KernelFunction function, const std::byte* arguments, std::uint64_t first, std::uint64_t last, std::byte* local_memory,
                     std::uint64_t local_memory_bytes) const {
  WorkGroup group = prototype_;
  group.local_memory = local_memory;
  group.local_memory_bytes = local_memory_bytes;
  if (first != 0) {
    const std::uint64_t row = first / group.count[0];
    group.id[0] = first % group.count[0];
    group.id[1] = row % group.count[1];
    group.id[2] = row / group.count[1];
  }
  for (std::uint64_t index = first; index < last; ++index) {
    function(arguments, &group);
    if (++group.id[0] < group.count[0]) continue;
    group.id[0] = 0;
    if (++group.id[1] < group.count[1]) continue;
    group.id[1] = 0;
    ++group.id[2];
  }
}

}  // namespace xpu::hal
