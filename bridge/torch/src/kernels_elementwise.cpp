#include <ATen/core/Tensor.h>
#include <ATen/ops/abs_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/abs_cpu_dispatch.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/addcdiv_cpu_dispatch.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/div_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/lerp_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/lerp_cpu_dispatch.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/mul_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/neg_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/reciprocal_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/reciprocal_cpu_dispatch.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_backward_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sigmoid_backward_cpu_dispatch.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sqrt_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/tanh_backward_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/tanh_backward_cpu_dispatch.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <torch/library.h>

#include <array>
#include <cmath>

#include "elementwise.hpp"
#include "loops.hpp"

// Arithmetic on every element: loops of our own where elements lie alike and are float or double, which is nearly always, and PyTorch's CPU
// functions elsewhere. What is computed, to the order of operations, is what the CPU computes.
namespace xpu_torch {
namespace {

using at::Tensor;
using c10::Scalar;
namespace composite = at::compositeexplicitautogradnonfunctional;

template <typename T>
struct Add {
  static constexpr const char* kName = "xpu_add";
  T scale;
  T operator()(T self, T other) const { return self + scale * other; }
};
template <typename T>
struct AddNumber {
  static constexpr const char* kName = "xpu_add";
  T number;
  T operator()(T self) const { return self + number; }
};
template <typename T>
struct Multiply {
  static constexpr const char* kName = "xpu_mul";
  T operator()(T self, T other) const { return self * other; }
};
template <typename T>
struct MultiplyByNumber {
  static constexpr const char* kName = "xpu_mul";
  T number;
  T operator()(T self) const { return self * number; }
};
template <typename T>
struct Divide {
  static constexpr const char* kName = "xpu_div";
  T operator()(T self, T other) const { return self / other; }
};
template <typename T>
struct DivideByNumber {
  static constexpr const char* kName = "xpu_div";
  T number;
  T operator()(T self) const { return self / number; }
};
template <typename T>
struct AddProduct {
  static constexpr const char* kName = "xpu_addcmul";
  T scale;
  T operator()(T self, T one, T other) const { return self + scale * one * other; }
};
template <typename T>
struct AddQuotient {
  static constexpr const char* kName = "xpu_addcdiv";
  T scale;
  T operator()(T self, T one, T other) const { return self + scale * one / other; }
};
template <typename T>
struct InterpolateFromSelf {
  static constexpr const char* kName = "xpu_lerp";
  T weight;
  T operator()(T self, T end) const { return self + weight * (end - self); }
};
template <typename T>
struct InterpolateFromEnd {
  static constexpr const char* kName = "xpu_lerp";
  T weight;
  T operator()(T self, T end) const { return end - (end - self) * (T(1) - weight); }
};
template <typename T>
struct SquareRoot {
  static constexpr const char* kName = "xpu_sqrt";
  T operator()(T self) const { return std::sqrt(self); }
};
template <typename T>
struct Negate {
  static constexpr const char* kName = "xpu_neg";
  T operator()(T self) const { return -self; }
};
template <typename T>
struct Absolute {
  static constexpr const char* kName = "xpu_abs";
  T operator()(T self) const { return std::fabs(self); }
};
template <typename T>
struct Reciprocal {
  static constexpr const char* kName = "xpu_reciprocal";
  T operator()(T self) const { return T(1) / self; }
};
template <typename T>
struct Rectify {
  static constexpr const char* kName = "xpu_relu";
  T operator()(T self) const { return self < T(0) ? T(0) : self; }  // not a number stays that
};
template <typename T>
struct ThresholdBackward {
  static constexpr const char* kName = "xpu_threshold_backward";
  T threshold;
  T operator()(T gradient, T self) const { return self <= threshold ? T(0) : gradient; }
};
template <typename T>
struct SigmoidBackward {
  static constexpr const char* kName = "xpu_sigmoid_backward";
  T operator()(T gradient, T output) const { return gradient * (T(1) - output) * output; }
};
template <typename T>
struct TanhBackward {
  static constexpr const char* kName = "xpu_tanh_backward";
  T operator()(T gradient, T output) const { return gradient * (T(1) - output * output); }
};

// Where a loop's results go. `with` says whether a loop was for it.
struct IntoNew {
  Tensor made;
  template <template <typename> typename Function, typename... Parameters, typename... Tensors>
  bool with(std::tuple<Parameters...> parameters, const Tensors&... inputs) {
    made = std::apply([&](auto... values) { return map<Function>(std::array<const Tensor*, sizeof...(Tensors)>{&inputs...}, values...); },
                      parameters);
    return made.defined();
  }
};
struct Into {
  const Tensor& result;
  template <template <typename> typename Function, typename... Parameters, typename... Tensors>
  bool with(std::tuple<Parameters...> parameters, const Tensors&... inputs) {
    return std::apply(
        [&](auto... values) { return map_into<Function>(result, std::array<const Tensor*, sizeof...(Tensors)>{&inputs...}, values...); },
        parameters);
  }
};

// An operator: which loop is for its arguments, and what else there is for each of its three forms.
bool is_plain_number(const Scalar& scalar) { return is_real(scalar) && !scalar.isBoolean(); }

struct AddOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& other, const Scalar& alpha) {
    if (!is_plain_number(alpha)) return false;
    const double scale = alpha.toDouble();
    if (is_number(other)) return into.template with<AddNumber>(std::tuple(scale * value_of(other)), self);
    return into.template with<Add>(std::tuple(scale), self, other);
  }
  static constexpr auto* kFunctional = &composite::add;
  static constexpr auto* kInPlace = &composite::add_;
  static Tensor& out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& result) {
    if (!is_plain_number(alpha) || (alpha.isFloatingPoint() && !result.is_floating_point()))
      return fall_back_to_cpu<at::_ops::add_out>(self, other, alpha, result);
    return OutByCpu<"xpu_add", at::_ops::add_out, &at::cpu::add_outf, Types::numbers>::out(self, other, alpha, result);
  }
};
struct SubOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& other, const Scalar& alpha) {
    if (!is_plain_number(alpha)) return false;
    const double scale = -alpha.toDouble();
    if (is_number(other)) return into.template with<AddNumber>(std::tuple(scale * value_of(other)), self);
    return into.template with<Add>(std::tuple(scale), self, other);
  }
  static constexpr auto* kFunctional = &composite::sub;
  static constexpr auto* kInPlace = &composite::sub_;
  static Tensor& out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& result) {
    if (!is_plain_number(alpha) || (alpha.isFloatingPoint() && !result.is_floating_point()))
      return fall_back_to_cpu<at::_ops::sub_out>(self, other, alpha, result);
    return OutByCpu<"xpu_sub", at::_ops::sub_out, &at::cpu::sub_outf, Types::numbers>::out(self, other, alpha, result);
  }
};
struct MulOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& other) {
    if (is_number(other)) return into.template with<MultiplyByNumber>(std::tuple(value_of(other)), self);
    return into.template with<Multiply>(std::tuple(), self, other);
  }
  static constexpr auto* kFunctional = &composite::mul;
  static constexpr auto* kInPlace = &composite::mul_;
  static constexpr auto* out = &OutByCpu<"xpu_mul", at::_ops::mul_out, &at::cpu::mul_outf, Types::numbers>::out;
};
struct DivOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& other) {
    if (is_number(other)) return into.template with<DivideByNumber>(std::tuple(value_of(other)), self);
    return into.template with<Divide>(std::tuple(), self, other);
  }
  static constexpr Tensor (*kFunctional)(const Tensor&, const Tensor&) = &composite::div;
  static constexpr Tensor& (*kInPlace)(Tensor&, const Tensor&) = &composite::div_;
  static constexpr auto* out = &OutByCpu<"xpu_div", at::_ops::div_out, static_cast<at::_ops::div_out::schema*>(&at::cpu::div_outf)>::out;
};
struct AddcmulOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& one, const Tensor& other, const Scalar& value) {
    return is_plain_number(value) && into.template with<AddProduct>(std::tuple(value.toDouble()), self, one, other);
  }
  static constexpr auto* kFunctional = &composite::addcmul;
  static constexpr auto* kInPlace = &composite::addcmul_;
  static constexpr auto* out = &OutByCpu<"xpu_addcmul", at::_ops::addcmul_out, &at::cpu::addcmul_outf>::out;
};
struct AddcdivOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& one, const Tensor& other, const Scalar& value) {
    return is_plain_number(value) && into.template with<AddQuotient>(std::tuple(value.toDouble()), self, one, other);
  }
  static constexpr auto* kFunctional = &composite::addcdiv;
  static constexpr auto* kInPlace = &composite::addcdiv_;
  static constexpr auto* out = &OutByCpu<"xpu_addcdiv", at::_ops::addcdiv_out, &at::cpu::addcdiv_outf>::out;
};
struct LerpOperator {
  static bool loop(auto&& into, const Tensor& self, const Tensor& end, const Scalar& weight) {
    if (!is_plain_number(weight)) return false;
    const double value = weight.toDouble();
    if (std::abs(value) < 0.5) return into.template with<InterpolateFromSelf>(std::tuple(value), self, end);
    return into.template with<InterpolateFromEnd>(std::tuple(value), self, end);
  }
  static constexpr Tensor (*kFunctional)(const Tensor&, const Tensor&, const Scalar&) = &composite::lerp;
  static constexpr Tensor& (*kInPlace)(Tensor&, const Tensor&, const Scalar&) = &composite::lerp_;
  static constexpr auto* out =
      &OutByCpu<"xpu_lerp", at::_ops::lerp_Scalar_out, static_cast<at::_ops::lerp_Scalar_out::schema*>(&at::cpu::lerp_outf)>::out;
};
template <template <typename> typename Function>
struct UnaryOperator {
  static bool loop(auto&& into, const Tensor& self) { return into.template with<Function>(std::tuple(), self); }
};
struct SqrtOperator : UnaryOperator<SquareRoot> {
  static constexpr auto* kFunctional = &composite::sqrt;
  static constexpr auto* kInPlace = &composite::sqrt_;
  static constexpr auto* out = &OutByCpu<"xpu_sqrt", at::_ops::sqrt_out, &at::cpu::sqrt_outf>::out;
};
struct NegOperator : UnaryOperator<Negate> {
  static constexpr auto* kFunctional = &composite::neg;
  static constexpr auto* kInPlace = &composite::neg_;
  static constexpr auto* out = &OutByCpu<"xpu_neg", at::_ops::neg_out, &at::cpu::neg_outf, Types::numbers>::out;
};
struct AbsOperator : UnaryOperator<Absolute> {
  static constexpr auto* kFunctional = &at::compositeexplicitautograd::abs;
  static constexpr auto* kInPlace = &at::compositeexplicitautograd::abs_;
  static constexpr auto* out = &OutByCpu<"xpu_abs", at::_ops::abs_out, &at::cpu::abs_outf, Types::numbers>::out;
};
struct ReciprocalOperator : UnaryOperator<Reciprocal> {
  static constexpr auto* kFunctional = &composite::reciprocal;
  static constexpr auto* kInPlace = &composite::reciprocal_;
  static constexpr auto* out = &OutByCpu<"xpu_reciprocal", at::_ops::reciprocal_out, &at::cpu::reciprocal_outf>::out;
};
struct ReluOperator : UnaryOperator<Rectify> {
  // The CPU takes the same way, which has a kernel here.
  static Tensor kFunctional(const Tensor& self) {
    return self.is_floating_point() ? at::clamp_min(self, 0) : fall_back_to_cpu<at::_ops::relu>(self);
  }
  static Tensor& kInPlace(Tensor& self) {
    return self.is_floating_point() ? at::clamp_min_(self, 0) : fall_back_to_cpu<at::_ops::relu_>(self);
  }
};
struct ThresholdBackwardOperator {
  static bool loop(auto&& into, const Tensor& gradient, const Tensor& self, const Scalar& threshold) {
    return is_plain_number(threshold) && into.template with<ThresholdBackward>(std::tuple(threshold.toDouble()), gradient, self);
  }
  static constexpr auto* kFunctional = &composite::threshold_backward;
  static constexpr auto* out =
      &OutByCpu<"xpu_threshold_backward", at::_ops::threshold_backward_grad_input, &at::cpu::threshold_backward_outf>::out;
};
struct SigmoidBackwardOperator {
  static bool loop(auto&& into, const Tensor& gradient, const Tensor& output) {
    return into.template with<SigmoidBackward>(std::tuple(), gradient, output);
  }
  static constexpr auto* kFunctional = &composite::sigmoid_backward;
  static constexpr auto* out =
      &OutByCpu<"xpu_sigmoid_backward", at::_ops::sigmoid_backward_grad_input, &at::cpu::sigmoid_backward_outf>::out;
};
struct TanhBackwardOperator {
  static bool loop(auto&& into, const Tensor& gradient, const Tensor& output) {
    return into.template with<TanhBackward>(std::tuple(), gradient, output);
  }
  static constexpr auto* kFunctional = &composite::tanh_backward;
  static constexpr auto* out = &OutByCpu<"xpu_tanh_backward", at::_ops::tanh_backward_grad_input, &at::cpu::tanh_backward_outf>::out;
};

template <typename Operator, typename... Parameters>
Tensor functional(Parameters... parameters) {
  IntoNew into;
  if (Operator::loop(into, parameters...)) return std::move(into.made);
  return Operator::kFunctional(parameters...);
}
template <typename Operator, typename... Parameters>
Tensor& in_place(Tensor& self, Parameters... parameters) {
  if (Operator::loop(Into{self}, self, parameters...)) return self;
  return Operator::kInPlace(self, parameters...);
}
template <typename Operator, typename... Parameters>
Tensor& out(Parameters... parameters, Tensor& result) {
  if (Operator::loop(Into{result}, parameters...)) return result;
  return Operator::out(parameters..., result);
}

using T = const Tensor&;
using S = const Scalar&;

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("add.Tensor", &functional<AddOperator, T, T, S>);
  library.impl("add_.Tensor", &in_place<AddOperator, T, S>);
  library.impl("add.out", &out<AddOperator, T, T, S>);
  library.impl("sub.Tensor", &functional<SubOperator, T, T, S>);
  library.impl("sub_.Tensor", &in_place<SubOperator, T, S>);
  library.impl("sub.out", &out<SubOperator, T, T, S>);
  library.impl("mul.Tensor", &functional<MulOperator, T, T>);
  library.impl("mul_.Tensor", &in_place<MulOperator, T>);
  library.impl("mul.out", &out<MulOperator, T, T>);
  library.impl("div.Tensor", &functional<DivOperator, T, T>);
  library.impl("div_.Tensor", &in_place<DivOperator, T>);
  library.impl("div.out", &out<DivOperator, T, T>);
  library.impl("addcmul", &functional<AddcmulOperator, T, T, T, S>);
  library.impl("addcmul_", &in_place<AddcmulOperator, T, T, S>);
  library.impl("addcmul.out", &out<AddcmulOperator, T, T, T, S>);
  library.impl("addcdiv", &functional<AddcdivOperator, T, T, T, S>);
  library.impl("addcdiv_", &in_place<AddcdivOperator, T, T, S>);
  library.impl("addcdiv.out", &out<AddcdivOperator, T, T, T, S>);
  library.impl("lerp.Scalar", &functional<LerpOperator, T, T, S>);
  library.impl("lerp_.Scalar", &in_place<LerpOperator, T, S>);
  library.impl("lerp.Scalar_out", &out<LerpOperator, T, T, S>);
  library.impl("sqrt", &functional<SqrtOperator, T>);
  library.impl("sqrt_", &in_place<SqrtOperator>);
  library.impl("sqrt.out", &out<SqrtOperator, T>);
  library.impl("neg", &functional<NegOperator, T>);
  library.impl("neg_", &in_place<NegOperator>);
  library.impl("neg.out", &out<NegOperator, T>);
  library.impl("abs", &functional<AbsOperator, T>);
  library.impl("abs_", &in_place<AbsOperator>);
  library.impl("abs.out", &out<AbsOperator, T>);
  library.impl("reciprocal", &functional<ReciprocalOperator, T>);
  library.impl("reciprocal_", &in_place<ReciprocalOperator>);
  library.impl("reciprocal.out", &out<ReciprocalOperator, T>);
  library.impl("relu", &functional<ReluOperator, T>);
  library.impl("relu_", &in_place<ReluOperator>);
  library.impl("threshold_backward", &functional<ThresholdBackwardOperator, T, T, S>);
  library.impl("threshold_backward.grad_input", &out<ThresholdBackwardOperator, T, T, S>);
  library.impl("sigmoid_backward", &functional<SigmoidBackwardOperator, T, T>);
  library.impl("sigmoid_backward.grad_input", &out<SigmoidBackwardOperator, T, T>);
  library.impl("tanh_backward", &functional<TanhBackwardOperator, T, T>);
  library.impl("tanh_backward.grad_input", &out<TanhBackwardOperator, T, T>);
}

}  // namespace xpu_torch
