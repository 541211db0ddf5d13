#include "elementwise.hpp"

#include <ATen/MemoryOverlap.h>

namespace xpu_torch {

bool is_one_of(at::ScalarType type, Types types) {
  switch (type) {
    case at::ScalarType::Float:
    case at::ScalarType::Double:
    case at::ScalarType::BFloat16:
    case at::ScalarType::Half: return true;
    case at::ScalarType::Int:
    case at::ScalarType::Long: return types != Types::floating;
    case at::ScalarType::Bool: return types == Types::all;
    default: return false;
  }
}

bool can_write(const at::Tensor& result, Inputs inputs) {
  if (result.device().type() != kDeviceType || !can_be_operand(result)) return false;
  if (at::has_internal_overlap(result) == at::MemOverlap::Yes) return false;
  for (const at::Tensor* const input : inputs) {
    if (input->is_same(result) || !input->is_alias_of(result)) continue;
    const at::MemOverlapStatus status = at::get_overlap_status(result, *input);
    if (status != at::MemOverlapStatus::Full && status != at::MemOverlapStatus::No) return false;
  }
  return true;
}

bool broadcast_to(const at::Tensor& result, Inputs inputs) {
  const c10::IntArrayRef sizes = result.sizes();
  const std::size_t dimensions = sizes.size();
  std::uint32_t reached = 0;  // a bit for each dimension, counted from the last, in which an input has the result's size
  std::size_t most_dimensions = 0;
  for (const at::Tensor* const input : inputs) {
    if (input->device() != result.device()) {
      if (!is_number(*input)) return false;
      continue;
    }
    const c10::IntArrayRef of_input = input->sizes();
    if (!can_be_operand(*input) || of_input.size() > dimensions) return false;
    most_dimensions = std::max(most_dimensions, of_input.size());
    for (std::size_t i = 1; i <= of_input.size(); ++i) {
      const std::int64_t size = of_input[of_input.size() - i];
      if (size == sizes[dimensions - i]) {
        reached |= 1u << i;
      } else if (size != 1) {
        return false;
      }
    }
  }
  return most_dimensions == dimensions && reached == (2u << dimensions) - 2;
}

bool fit_types(const at::Tensor& result, Inputs inputs, Types types, ResultType result_type) {
  at::ScalarType common = at::ScalarType::Undefined;
  for (const at::Tensor* const input : inputs) {
    if (is_number(*input)) continue;
    if (common != at::ScalarType::Undefined && input->scalar_type() != common) return false;
    common = input->scalar_type();
  }
  if (!is_one_of(common, types)) return false;
  for (const at::Tensor* const input : inputs) {
    // A number takes the tensors' type only if that is not of a lower kind.
    if (is_number(*input) && !at::isFloatingType(common) && (at::isFloatingType(input->scalar_type()) || common == at::ScalarType::Bool)) {
      return false;
    }
  }
  return result.scalar_type() == (result_type == ResultType::boolean ? at::ScalarType::Bool : common);
}

}  // namespace xpu_torch
