#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/nll_loss_backward_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/nll_loss_backward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/nll_loss_forward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>

#include "elementwise.hpp"

// The loss of a classifier: the negative logarithm of the likelihood that it gave to the right class.
namespace xpu_torch {
namespace {

using at::Tensor;
using std::optional;
namespace composite = at::compositeexplicitautogradnonfunctional;

using ForwardKernel = CpuKernel<"xpu_nll_loss",
                                std::tuple<Tensor&, Tensor&>(const Tensor&, const Tensor&, const optional<Tensor>&, std::int64_t,
                                                             std::int64_t, Tensor&, Tensor&),
                                &at::cpu::nll_loss_forward_outf>;
using BackwardKernel = CpuKernel<"xpu_nll_loss_backward",
                                 Tensor&(const Tensor&, const Tensor&, const Tensor&, const optional<Tensor>&, std::int64_t, std::int64_t,
                                         const Tensor&, Tensor&),
                                 &at::cpu::nll_loss_backward_outf>;

bool is_operand_with(const Tensor& self, const Tensor& tensor, c10::IntArrayRef sizes) {
  return tensor.device() == self.device() && tensor.sizes().equals(sizes) && can_be_operand(tensor);
}
// Scores of classes, the right class of each, and weights of the classes.
bool fit(const Tensor& self, const Tensor& target, const optional<Tensor>& weight, std::int64_t reduction) {
  if (self.device().type() != kDeviceType || !is_one_of(self.scalar_type(), Types::floating) || !can_be_operand(self)) return false;
  if (reduction < at::Reduction::None || reduction >= at::Reduction::END || self.dim() != 2) return false;
  if (target.scalar_type() != at::kLong || !is_operand_with(self, target, self.sizes().slice(0, 1))) return false;
  return !weight || !weight->defined() ||
         (weight->dtype() == self.dtype() && is_operand_with(self, *weight, self.sizes().slice(1)) && weight->is_contiguous());
}
c10::IntArrayRef sizes_of_loss(const Tensor& self, std::int64_t reduction) {
  return reduction == at::Reduction::None ? self.sizes().slice(0, 1) : c10::IntArrayRef();
}
bool is_result(const Tensor& self, const Tensor& result, c10::IntArrayRef sizes) {
  return result.dtype() == self.dtype() && is_operand_with(self, result, sizes) && can_write(result, {}) && !result.is_alias_of(self);
}
std::int64_t elements_of(const Tensor& self) { return std::max<std::int64_t>(self.numel(), 1); }

std::tuple<Tensor, Tensor> forward(const Tensor& self, const Tensor& target, const optional<Tensor>& weight, std::int64_t reduction,
                                   std::int64_t ignored) {
  if (!fit(self, target, weight, reduction)) return composite::nll_loss_forward(self, target, weight, reduction, ignored);
  const int device = self.device().index();
  const xpu::Stream stream = current_stream(device);
  Tensor loss = empty_on(device, stream, sizes_of_loss(self, reduction), self.dtype());
  Tensor total_weight = empty_on(device, stream, c10::IntArrayRef(), self.dtype());
  ForwardKernel::launch(device, elements_of(self), self, self, target, weight, reduction, ignored, loss, total_weight);
  return {std::move(loss), std::move(total_weight)};
}
std::tuple<Tensor&, Tensor&> forward_out(const Tensor& self, const Tensor& target, const optional<Tensor>& weight, std::int64_t reduction,
                                         std::int64_t ignored, Tensor& loss, Tensor& total_weight) {
  if (!fit(self, target, weight, reduction) || !is_result(self, loss, sizes_of_loss(self, reduction)) ||
      !is_result(self, total_weight, {}) || loss.is_alias_of(total_weight)) {
    return fall_back_to_cpu<at::_ops::nll_loss_forward_output>(self, target, weight, reduction, ignored, loss, total_weight);
  }
  ForwardKernel::launch(self.device().index(), elements_of(self), self, self, target, weight, reduction, ignored, loss, total_weight);
  return {loss, total_weight};
}

bool fit_backward(const Tensor& gradient, const Tensor& self, const Tensor& target, const optional<Tensor>& weight, std::int64_t reduction,
                  const Tensor& total_weight) {
  return fit(self, target, weight, reduction) && gradient.dtype() == self.dtype() && total_weight.dtype() == self.dtype() &&
         is_operand_with(self, gradient, sizes_of_loss(self, reduction)) && is_operand_with(self, total_weight, {});
}
Tensor backward(const Tensor& gradient, const Tensor& self, const Tensor& target, const optional<Tensor>& weight, std::int64_t reduction,
                std::int64_t ignored, const Tensor& total_weight) {
  if (!fit_backward(gradient, self, target, weight, reduction, total_weight))
    return composite::nll_loss_backward(gradient, self, target, weight, reduction, ignored, total_weight);
  const int device = self.device().index();
  Tensor result = empty_on(device, current_stream(device), self.sizes(), self.dtype());
  BackwardKernel::launch(device, self.numel(), self, gradient, self, target, weight, reduction, ignored, total_weight, result);
  return result;
}
Tensor& backward_out(const Tensor& gradient, const Tensor& self, const Tensor& target, const optional<Tensor>& weight,
                     std::int64_t reduction, std::int64_t ignored, const Tensor& total_weight, Tensor& result) {
  if (!fit_backward(gradient, self, target, weight, reduction, total_weight) || !is_result(self, result, self.sizes()) ||
      !result.is_contiguous() || result.is_alias_of(gradient)) {
    return fall_back_to_cpu<at::_ops::nll_loss_backward_grad_input>(gradient, self, target, weight, reduction, ignored, total_weight,
                                                                    result);
  }
  BackwardKernel::launch(self.device().index(), self.numel(), self, gradient, self, target, weight, reduction, ignored, total_weight,
                         result);
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("nll_loss_forward", &forward);
  library.impl("nll_loss_forward.output", &forward_out);
  library.impl("nll_loss_backward", &backward);
  library.impl("nll_loss_backward.grad_input", &backward_out);
}

}  // namespace xpu_torch
