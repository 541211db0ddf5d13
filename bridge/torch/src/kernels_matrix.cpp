#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/mm_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mm_ops.h>
#include <torch/library.h>

#include <array>

#include "elementwise.hpp"

// Products of matrices, by PyTorch's own libraries.
namespace xpu_torch {
namespace {

using at::Tensor;
using c10::Scalar;
namespace composite = at::compositeexplicitautogradnonfunctional;

bool is_matrix_of(const Tensor& tensor, const Tensor& first, std::int64_t dimensions) {
  return tensor.dim() == dimensions && tensor.device() == first.device() && tensor.dtype() == first.dtype() && can_be_operand(tensor);
}
// Two matrices, or batches of them, that can be multiplied.
bool can_multiply(const Tensor& left, const Tensor& right, std::int64_t dimensions) {
  return left.device().type() == kDeviceType && is_one_of(left.scalar_type(), Types::floating) && is_matrix_of(left, left, dimensions) &&
         is_matrix_of(right, left, dimensions) && left.size(dimensions - 1) == right.size(dimensions - 2) &&
         (dimensions == 2 || left.size(0) == right.size(0));
}
bool is_product_of(const Tensor& result, const Tensor& left, const Tensor& right) {
  const std::int64_t dimensions = left.dim();
  return is_matrix_of(result, left, dimensions) && result.size(dimensions - 1) == right.size(dimensions - 1) &&
         result.size(dimensions - 2) == left.size(dimensions - 2) && (dimensions == 2 || result.size(0) == left.size(0)) &&
         can_write(result, {}) && !result.is_alias_of(left) && !result.is_alias_of(right);
}
// What is added to a product: it may have fewer dimensions, or sizes of 1.
bool can_be_added_to(const Tensor& added, const Tensor& left, c10::IntArrayRef product_sizes) {
  if (added.device() != left.device() || added.dtype() != left.dtype() || !can_be_operand(added)) return false;
  const c10::IntArrayRef sizes = added.sizes();
  if (sizes.size() > product_sizes.size()) return false;
  for (std::size_t i = 1; i <= sizes.size(); ++i) {
    if (sizes[sizes.size() - i] != 1 && sizes[sizes.size() - i] != product_sizes[product_sizes.size() - i]) return false;
  }
  return true;
}

// A product is short when all that it reads and writes is.
std::int64_t elements_of(const Tensor& left, const Tensor& right, std::int64_t result) {
  return std::max({left.numel(), right.numel(), result});
}

using MmKernel = CpuKernel<"xpu_mm", at::_ops::mm_out::schema, &at::cpu::mm_outf>;
using BmmKernel = CpuKernel<"xpu_bmm", at::_ops::bmm_out::schema, &at::cpu::bmm_outf>;
using AddmmKernel = CpuKernel<"xpu_addmm", at::_ops::addmm_out::schema, &at::cpu::addmm_outf>;
using BaddbmmKernel = CpuKernel<"xpu_baddbmm", at::_ops::baddbmm_out::schema, &at::cpu::baddbmm_outf>;

template <typename Kernel, typename... Parameters>
void launch_product(const Tensor& left, const Tensor& right, Tensor& result, const Parameters&... parameters) {
  if (result.numel() == 0) return;
  Kernel::launch(result.device().index(), elements_of(left, right, result.numel()), result, parameters..., result);
}

Tensor mm(const Tensor& self, const Tensor& right) {
  if (!can_multiply(self, right, 2)) return composite::mm(self, right);
  const int device = self.device().index();
  Tensor result = empty_on(device, current_stream(device), std::array{self.size(0), right.size(1)}, self.dtype());
  launch_product<MmKernel>(self, right, result, self, right);
  return result;
}
Tensor& mm_out(const Tensor& self, const Tensor& right, Tensor& result) {
  if (!can_multiply(self, right, 2) || !is_product_of(result, self, right)) return fall_back_to_cpu<at::_ops::mm_out>(self, right, result);
  launch_product<MmKernel>(self, right, result, self, right);
  return result;
}

Tensor bmm(const Tensor& self, const Tensor& right) {
  if (!can_multiply(self, right, 3)) return composite::bmm(self, right);
  const int device = self.device().index();
  Tensor result = empty_on(device, current_stream(device), std::array{self.size(0), self.size(1), right.size(2)}, self.dtype());
  launch_product<BmmKernel>(self, right, result, self, right);
  return result;
}
Tensor& bmm_out(const Tensor& self, const Tensor& right, Tensor& result) {
  if (!can_multiply(self, right, 3) || !is_product_of(result, self, right)) return fall_back_to_cpu<at::_ops::bmm_out>(self, right, result);
  launch_product<BmmKernel>(self, right, result, self, right);
  return result;
}

Tensor addmm(const Tensor& self, const Tensor& left, const Tensor& right, const Scalar& beta, const Scalar& alpha) {
  if (can_multiply(left, right, 2) && is_real(beta) && is_real(alpha)) {
    const std::array sizes{left.size(0), right.size(1)};
    if (can_be_added_to(self, left, sizes)) {
      const int device = left.device().index();
      Tensor result = empty_on(device, current_stream(device), sizes, left.dtype());
      launch_product<AddmmKernel>(left, right, result, self, left, right, beta, alpha);
      return result;
    }
  }
  return composite::addmm(self, left, right, beta, alpha);
}
Tensor& addmm_out(const Tensor& self, const Tensor& left, const Tensor& right, const Scalar& beta, const Scalar& alpha, Tensor& result) {
  if (!can_multiply(left, right, 2) || !is_real(beta) || !is_real(alpha) || !is_product_of(result, left, right) ||
      !can_be_added_to(self, left, result.sizes()) || !can_write(result, {&self})) {
    return fall_back_to_cpu<at::_ops::addmm_out>(self, left, right, beta, alpha, result);
  }
  launch_product<AddmmKernel>(left, right, result, self, left, right, beta, alpha);
  return result;
}
Tensor& baddbmm_out(const Tensor& self, const Tensor& left, const Tensor& right, const Scalar& beta, const Scalar& alpha, Tensor& result) {
  if (!can_multiply(left, right, 3) || !is_real(beta) || !is_real(alpha) || !is_product_of(result, left, right) ||
      !can_be_added_to(self, left, result.sizes()) || !can_write(result, {&self})) {
    return fall_back_to_cpu<at::_ops::baddbmm_out>(self, left, right, beta, alpha, result);
  }
  launch_product<BaddbmmKernel>(left, right, result, self, left, right, beta, alpha);
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("mm", &mm);
  library.impl("mm.out", &mm_out);
  library.impl("bmm", &bmm);
  library.impl("bmm.out", &bmm_out);
  library.impl("addmm", &addmm);
  library.impl("addmm.out", &addmm_out);
  library.impl("baddbmm.out", &baddbmm_out);
}

}  // namespace xpu_torch
