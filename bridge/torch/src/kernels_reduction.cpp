#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax_backward_data_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/all_cpu_dispatch.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/linalg_vector_norm_cpu_dispatch.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/mean_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/mean_cpu_dispatch.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/sum_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/sum_ops.h>
#include <torch/library.h>

#include <algorithm>
#include <bitset>

#include "elementwise.hpp"

// Sums along dimensions, and what is divided by one.
namespace xpu_torch {
namespace {

using at::OptionalIntArrayRef;
using at::ScalarType;
using at::Tensor;
using std::optional;
namespace composite = at::compositeexplicitautogradnonfunctional;

// Sizes of a tensor after a reduction.
struct Reduced {
  c10::SmallVector<std::int64_t, Operand::kMostDimensions> sizes;
  bool is_known = false;
};
Reduced reduce_sizes(const Tensor& self, const OptionalIntArrayRef& dimensions, bool keeps) {
  Reduced reduced;
  const std::int64_t count = self.dim();
  if (self.device().type() != kDeviceType || !can_be_operand(self)) return reduced;
  std::bitset<Operand::kMostDimensions> goes;
  if (!dimensions || dimensions->empty()) {
    goes.set();
  } else {
    for (const std::int64_t dimension : *dimensions) {
      const std::int64_t wrapped = dimension < 0 ? dimension + count : dimension;
      if (wrapped < 0 || wrapped >= count || goes[static_cast<std::size_t>(wrapped)]) return reduced;  // the CPU has the words for it
      goes.set(static_cast<std::size_t>(wrapped));
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (!goes[static_cast<std::size_t>(i)]) {
      reduced.sizes.push_back(self.size(i));
    } else if (keeps) {
      reduced.sizes.push_back(1);
    }
  }
  reduced.is_known = true;
  return reduced;
}
// Whether values of one type are summed up in the other.
bool can_sum(ScalarType self, ScalarType result, optional<ScalarType> wanted, bool of_integers) {
  if (wanted && *wanted != result) return false;
  if (of_integers && result == ScalarType::Long) return self == ScalarType::Bool || is_one_of(self, Types::numbers);
  return self == result && is_one_of(self, Types::floating);
}

using SumKernel = CpuKernel<"xpu_sum", at::_ops::sum_IntList_out::schema, &at::cpu::sum_outf>;
using MeanKernel = CpuKernel<"xpu_mean", at::_ops::mean_out::schema, &at::cpu::mean_outf>;

template <typename Kernel>
void launch_reduction(const Tensor& self, OptionalIntArrayRef dimensions, bool keeps, optional<ScalarType> type, Tensor& result) {
  if (result.numel() == 0) return;
  Kernel::launch(self.device().index(), std::max<std::int64_t>(self.numel(), 1), self, self, dimensions, keeps, type, result);
}
template <typename Kernel, auto of_composite, bool of_integers>
Tensor reduce(const Tensor& self, OptionalIntArrayRef dimensions, bool keeps, optional<ScalarType> type) {
  const Reduced reduced = reduce_sizes(self, dimensions, keeps);
  const bool becomes_long = of_integers && !self.is_floating_point();
  const ScalarType result_type = type.value_or(becomes_long ? ScalarType::Long : self.scalar_type());
  if (!reduced.is_known || !can_sum(self.scalar_type(), result_type, type, of_integers)) return of_composite(self, dimensions, keeps, type);
  const int device = self.device().index();
  Tensor result = empty_on(device, current_stream(device), reduced.sizes, c10::scalarTypeToTypeMeta(result_type));
  launch_reduction<Kernel>(self, dimensions, keeps, type, result);
  return result;
}
template <typename Kernel, typename Op, bool of_integers>
Tensor& reduce_out(const Tensor& self, OptionalIntArrayRef dimensions, bool keeps, optional<ScalarType> type, Tensor& result) {
  const Reduced reduced = reduce_sizes(self, dimensions, keeps);
  if (!reduced.is_known || !can_sum(self.scalar_type(), result.scalar_type(), type, of_integers) || !can_write(result, {}) ||
      result.device() != self.device() || result.is_alias_of(self) || !result.sizes().equals(reduced.sizes)) {
    return fall_back_to_cpu<Op>(self, dimensions, keeps, type, result);
  }
  launch_reduction<Kernel>(self, dimensions, keeps, type, result);
  return result;
}

// What gradients are clipped by. Of nothing there are norms and errors; both are the CPU's.
using NormKernel = CpuKernel<"xpu_vector_norm", at::_ops::linalg_vector_norm_out::schema, &at::cpu::linalg_vector_norm_outf>;
Tensor& vector_norm_out(const Tensor& self, const c10::Scalar& order, OptionalIntArrayRef dimensions, bool keeps, optional<ScalarType> type,
                        Tensor& result) {
  const Reduced reduced = reduce_sizes(self, dimensions, keeps);
  if (!reduced.is_known || (dimensions && dimensions->empty()) || self.numel() == 0 || !is_real(order) ||
      !can_sum(self.scalar_type(), result.scalar_type(), type, false) || !can_write(result, {}) || result.device() != self.device() ||
      result.is_alias_of(self) || !result.sizes().equals(reduced.sizes)) {
    return fall_back_to_cpu<at::_ops::linalg_vector_norm_out>(self, order, dimensions, keeps, type, result);
  }
  NormKernel::launch(self.device().index(), self.numel(), self, self, order, dimensions, keeps, type, result);
  return result;
}

using AllKernel = CpuKernel<"xpu_all", at::_ops::all_out::schema, static_cast<at::_ops::all_out::schema*>(&at::cpu::all_outf)>;
Tensor& all_out(const Tensor& self, std::int64_t dimension, bool keeps, Tensor& result) {
  const Reduced reduced = reduce_sizes(self, c10::IntArrayRef(dimension), keeps);
  if (!reduced.is_known || self.scalar_type() != ScalarType::Bool || result.scalar_type() != ScalarType::Bool || !can_write(result, {}) ||
      result.device() != self.device() || result.is_alias_of(self) || !result.sizes().equals(reduced.sizes)) {
    return fall_back_to_cpu<at::_ops::all_out>(self, dimension, keeps, result);
  }
  if (result.numel() != 0) {
    AllKernel::launch(self.device().index(), std::max<std::int64_t>(self.numel(), 1), self, self, dimension, keeps, result);
  }
  return result;
}

bool has_dimension(const Tensor& tensor, std::int64_t dimension) {
  const std::int64_t count = std::max<std::int64_t>(tensor.dim(), 1);
  return dimension >= -count && dimension < count;
}
bool are_alike(const Tensor& one, const Tensor& other) {
  return one.device() == other.device() && one.dtype() == other.dtype() && one.sizes().equals(other.sizes()) && can_be_operand(other);
}
bool is_for_softmax(const Tensor& self, std::int64_t dimension) {
  return self.device().type() == kDeviceType && is_one_of(self.scalar_type(), Types::floating) && can_be_operand(self) &&
         has_dimension(self, dimension);
}
Tensor empty_like(const Tensor& tensor) {
  const int device = tensor.device().index();
  return empty_on(device, current_stream(device), tensor.sizes(), tensor.dtype());
}

template <typename Kernel, auto of_composite>
Tensor softmax(const Tensor& self, std::int64_t dimension, bool half_to_float) {
  if (half_to_float || !is_for_softmax(self, dimension) || !self.is_contiguous()) return of_composite(self, dimension, half_to_float);
  Tensor result = empty_like(self);
  Kernel::launch(self.device().index(), self.numel(), self, self, dimension, half_to_float, result);
  return result;
}
template <typename Kernel, typename Op>
Tensor& softmax_out(const Tensor& self, std::int64_t dimension, bool half_to_float, Tensor& result) {
  if (half_to_float || !is_for_softmax(self, dimension) || !are_alike(self, result) || !can_write(result, {&self}))
    return fall_back_to_cpu<Op>(self, dimension, half_to_float, result);
  Kernel::launch(self.device().index(), self.numel(), self, self, dimension, half_to_float, result);
  return result;
}
template <typename Kernel, auto of_composite>
Tensor softmax_backward(const Tensor& gradient, const Tensor& output, std::int64_t dimension, ScalarType type) {
  if (type != gradient.scalar_type() || !is_for_softmax(gradient, dimension) || !are_alike(gradient, output) || !gradient.is_contiguous())
    return of_composite(gradient, output, dimension, type);
  Tensor result = empty_like(gradient);
  Kernel::launch(gradient.device().index(), gradient.numel(), gradient, gradient, output, dimension, type, result);
  return result;
}
template <typename Kernel, typename Op>
Tensor& softmax_backward_out(const Tensor& gradient, const Tensor& output, std::int64_t dimension, ScalarType type, Tensor& result) {
  if (type != gradient.scalar_type() || !is_for_softmax(gradient, dimension) || !are_alike(gradient, output) ||
      !are_alike(gradient, result) || !can_write(result, {&gradient, &output}))
    return fall_back_to_cpu<Op>(gradient, output, dimension, type, result);
  Kernel::launch(gradient.device().index(), gradient.numel(), gradient, gradient, output, dimension, type, result);
  return result;
}

using SoftmaxKernel = CpuKernel<"xpu_softmax", at::_ops::_softmax_out::schema, &at::cpu::_softmax_outf>;
using LogSoftmaxKernel = CpuKernel<"xpu_log_softmax", at::_ops::_log_softmax_out::schema, &at::cpu::_log_softmax_outf>;
using SoftmaxBackwardKernel =
    CpuKernel<"xpu_softmax_backward", at::_ops::_softmax_backward_data_out::schema, &at::cpu::_softmax_backward_data_outf>;
using LogSoftmaxBackwardKernel =
    CpuKernel<"xpu_log_softmax_backward", at::_ops::_log_softmax_backward_data_out::schema, &at::cpu::_log_softmax_backward_data_outf>;

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("sum.dim_IntList", &reduce<SumKernel, &composite::sum, true>);
  library.impl("sum.IntList_out", &reduce_out<SumKernel, at::_ops::sum_IntList_out, true>);
  library.impl("mean.dim", &reduce<MeanKernel, &composite::mean, false>);
  library.impl("mean.out", &reduce_out<MeanKernel, at::_ops::mean_out, false>);
  library.impl("linalg_vector_norm.out", &vector_norm_out);
  library.impl("all.out", &all_out);
  library.impl("_softmax", &softmax<SoftmaxKernel, &composite::_softmax>);
  library.impl("_softmax.out", &softmax_out<SoftmaxKernel, at::_ops::_softmax_out>);
  library.impl("_log_softmax", &softmax<LogSoftmaxKernel, &composite::_log_softmax>);
  library.impl("_log_softmax.out", &softmax_out<LogSoftmaxKernel, at::_ops::_log_softmax_out>);
  library.impl("_softmax_backward_data", &softmax_backward<SoftmaxBackwardKernel, &composite::_softmax_backward_data>);
  library.impl("_softmax_backward_data.out", &softmax_backward_out<SoftmaxBackwardKernel, at::_ops::_softmax_backward_data_out>);
  library.impl("_log_softmax_backward_data", &softmax_backward<LogSoftmaxBackwardKernel, &composite::_log_softmax_backward_data>);
  library.impl("_log_softmax_backward_data.out", &softmax_backward_out<LogSoftmaxBackwardKernel, at::_ops::_log_softmax_backward_data_out>);
}

}  // namespace xpu_torch
