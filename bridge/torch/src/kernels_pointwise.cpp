#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp_cpu_dispatch.h>
#include <ATen/ops/clamp_max_cpu_dispatch.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/cos_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/cos_cpu_dispatch.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/exp_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/ge_cpu_dispatch.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_backward_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gt_cpu_dispatch.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/isneginf_cpu_dispatch.h>
#include <ATen/ops/isneginf_ops.h>
#include <ATen/ops/le_cpu_dispatch.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/log_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/log_cpu_dispatch.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/lt_cpu_dispatch.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/ne_cpu_dispatch.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/pow_cpu_dispatch.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/rsqrt_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/rsqrt_cpu_dispatch.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sigmoid_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sin_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sin_cpu_dispatch.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/tanh_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/tanh_cpu_dispatch.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/where_cpu_dispatch.h>
#include <ATen/ops/where_ops.h>
#include <torch/library.h>

#include "elementwise.hpp"
#include "loops.hpp"

// Functions of every element that the CPU computes with vectors of its own mathematics, comparisons and choices: by PyTorch's CPU
// functions.
namespace xpu_torch {
namespace {

using at::Tensor;
using c10::Scalar;
using c10::string_view;
namespace composite = at::compositeexplicitautogradnonfunctional;

// Into a new tensor that lies as the input does, without the look at types and strides that the general way begins with.
template <KernelName name, typename Op, typename Op::schema* function, auto of_composite>
Tensor unary(const Tensor& self) {
  if (!is_one_of(self.scalar_type(), Types::floating) || !loops::is_dense(self) || !can_be_operand(self)) return of_composite(self);
  const int device = self.device().index();
  Tensor result = empty_as(self, current_stream(device));
  CpuKernel<name, typename Op::schema, function>::launch(device, self.numel(), result, self, result);
  return result;
}
template <KernelName name, typename Op, typename Op::schema* function, auto of_composite>
void add_unary(torch::Library& library, const char* functional, const char* out) {
  library.impl(functional, &unary<name, Op, function, of_composite>);
  library.impl(out, &OutByCpu<name, Op, function>::out);
}

template <KernelName name, typename TensorOp, typename TensorOp::schema* of_tensor, typename ScalarOp, typename ScalarOp::schema* of_scalar>
void add_comparison(torch::Library& library, const char* with_tensor, const char* with_scalar) {
  library.impl(with_tensor, &OutByCpu<name, TensorOp, of_tensor, Types::all, ResultType::boolean>::out);
  library.impl(with_scalar, &OutByCpu<name, ScalarOp, of_scalar, Types::all, ResultType::boolean>::out);
}

// The name of an approximation is the caller's; it travels as a truth value.
Tensor& gelu_on_cpu(const Tensor& self, bool by_tanh, Tensor& result) {
  return at::cpu::gelu_outf(self, by_tanh ? "tanh" : "none", result);
}
Tensor& gelu_backward_on_cpu(const Tensor& gradient, const Tensor& self, bool by_tanh, Tensor& result) {
  return at::cpu::gelu_backward_outf(gradient, self, by_tanh ? "tanh" : "none", result);
}
using GeluKernel = CpuKernel<"xpu_gelu", Tensor&(const Tensor&, bool, Tensor&), &gelu_on_cpu>;
using GeluBackwardKernel = CpuKernel<"xpu_gelu_backward", Tensor&(const Tensor&, const Tensor&, bool, Tensor&), &gelu_backward_on_cpu>;

bool is_approximation(string_view name) { return name == "none" || name == "tanh"; }
bool is_dense_operand(const Tensor& tensor) {
  return is_one_of(tensor.scalar_type(), Types::floating) && loops::is_dense(tensor) && can_be_operand(tensor);
}

Tensor gelu(const Tensor& self, string_view approximation) {
  if (!is_approximation(approximation) || !is_dense_operand(self)) return composite::gelu(self, approximation);
  const int device = self.device().index();
  Tensor result = empty_as(self, current_stream(device));
  GeluKernel::launch(device, self.numel(), result, self, approximation == "tanh", result);
  return result;
}
Tensor& gelu_out(const Tensor& self, string_view approximation, Tensor& result) {
  if (!is_approximation(approximation) || !can_write(result, {&self}) || !broadcast_to(result, {&self}) ||
      !fit_types(result, {&self}, Types::floating, ResultType::of_inputs)) {
    return fall_back_to_cpu<at::_ops::gelu_out>(self, approximation, result);
  }
  GeluKernel::launch(result.device().index(), result.numel(), result, self, approximation == "tanh", result);
  return result;
}
Tensor gelu_backward(const Tensor& gradient, const Tensor& self, string_view approximation) {
  if (!is_approximation(approximation) || !is_dense_operand(self) || !loops::lie_alike(self, gradient))
    return composite::gelu_backward(gradient, self, approximation);
  const int device = self.device().index();
  Tensor result = empty_as(self, current_stream(device));
  GeluBackwardKernel::launch(device, self.numel(), result, gradient, self, approximation == "tanh", result);
  return result;
}
Tensor& gelu_backward_out(const Tensor& gradient, const Tensor& self, string_view approximation, Tensor& result) {
  if (!is_approximation(approximation) || !can_write(result, {&gradient, &self}) || !broadcast_to(result, {&gradient, &self}) ||
      !fit_types(result, {&gradient, &self}, Types::floating, ResultType::of_inputs)) {
    return fall_back_to_cpu<at::_ops::gelu_backward_grad_input>(gradient, self, approximation, result);
  }
  GeluBackwardKernel::launch(result.device().index(), result.numel(), result, gradient, self, approximation == "tanh", result);
  return result;
}

using WhereKernel = CpuKernel<"xpu_where", at::_ops::where_self_out::schema, &at::cpu::where_outf>;
Tensor& where_out(const Tensor& condition, const Tensor& self, const Tensor& other, Tensor& result) {
  if (condition.scalar_type() != at::kBool || !can_write(result, {&condition, &self, &other}) ||
      !broadcast_to(result, {&condition, &self, &other}) || !fit_types(result, {&self, &other}, Types::all, ResultType::of_inputs)) {
    return fall_back_to_cpu<at::_ops::where_self_out>(condition, self, other, result);
  }
  WhereKernel::launch(result.device().index(), result.numel(), result, condition, self, other, result);
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  add_unary<"xpu_exp", at::_ops::exp_out, &at::cpu::exp_outf, &composite::exp>(library, "exp", "exp.out");
  add_unary<"xpu_log", at::_ops::log_out, &at::cpu::log_outf, &composite::log>(library, "log", "log.out");
  add_unary<"xpu_tanh", at::_ops::tanh_out, &at::cpu::tanh_outf, &composite::tanh>(library, "tanh", "tanh.out");
  add_unary<"xpu_sigmoid", at::_ops::sigmoid_out, &at::cpu::sigmoid_outf, &composite::sigmoid>(library, "sigmoid", "sigmoid.out");
  add_unary<"xpu_silu", at::_ops::silu_out, &at::cpu::silu_outf, &composite::silu>(library, "silu", "silu.out");
  add_unary<"xpu_cos", at::_ops::cos_out, &at::cpu::cos_outf, &composite::cos>(library, "cos", "cos.out");
  add_unary<"xpu_sin", at::_ops::sin_out, &at::cpu::sin_outf, &composite::sin>(library, "sin", "sin.out");
  add_unary<"xpu_rsqrt", at::_ops::rsqrt_out, &at::cpu::rsqrt_outf, &composite::rsqrt>(library, "rsqrt", "rsqrt.out");
  add_comparison<"xpu_eq", at::_ops::eq_Tensor_out, &at::cpu::eq_outf, at::_ops::eq_Scalar_out, &at::cpu::eq_outf>(library, "eq.Tensor_out",
                                                                                                                   "eq.Scalar_out");
  add_comparison<"xpu_ne", at::_ops::ne_Tensor_out, &at::cpu::ne_outf, at::_ops::ne_Scalar_out, &at::cpu::ne_outf>(library, "ne.Tensor_out",
                                                                                                                   "ne.Scalar_out");
  add_comparison<"xpu_lt", at::_ops::lt_Tensor_out, &at::cpu::lt_outf, at::_ops::lt_Scalar_out, &at::cpu::lt_outf>(library, "lt.Tensor_out",
                                                                                                                   "lt.Scalar_out");
  add_comparison<"xpu_le", at::_ops::le_Tensor_out, &at::cpu::le_outf, at::_ops::le_Scalar_out, &at::cpu::le_outf>(library, "le.Tensor_out",
                                                                                                                   "le.Scalar_out");
  add_comparison<"xpu_gt", at::_ops::gt_Tensor_out, &at::cpu::gt_outf, at::_ops::gt_Scalar_out, &at::cpu::gt_outf>(library, "gt.Tensor_out",
                                                                                                                   "gt.Scalar_out");
  add_comparison<"xpu_ge", at::_ops::ge_Tensor_out, &at::cpu::ge_outf, at::_ops::ge_Scalar_out, &at::cpu::ge_outf>(library, "ge.Tensor_out",
                                                                                                                   "ge.Scalar_out");
  library.impl("gelu", &gelu);
  library.impl("gelu.out", &gelu_out);
  library.impl("gelu_backward", &gelu_backward);
  library.impl("gelu_backward.grad_input", &gelu_backward_out);
  library.impl("silu_backward.grad_input",
               &OutByCpu<"xpu_silu_backward", at::_ops::silu_backward_grad_input, &at::cpu::silu_backward_outf>::out);
  library.impl("isneginf.out",
               &OutByCpu<"xpu_isneginf", at::_ops::isneginf_out, &at::cpu::isneginf_outf, Types::all, ResultType::boolean>::out);
  library.impl("where.self_out", &where_out);
  library.impl("clamp.out", &OutByCpu<"xpu_clamp", at::_ops::clamp_out, &at::cpu::clamp_outf>::out);
  library.impl("clamp_min.out", &OutByCpu<"xpu_clamp_min", at::_ops::clamp_min_out, &at::cpu::clamp_min_outf>::out);
  library.impl("clamp_max.out", &OutByCpu<"xpu_clamp_max", at::_ops::clamp_max_out, &at::cpu::clamp_max_outf>::out);
  library.impl("pow.Tensor_Scalar_out", &OutByCpu<"xpu_pow", at::_ops::pow_Tensor_Scalar_out, &at::cpu::pow_outf>::out);
}

}  // namespace xpu_torch
