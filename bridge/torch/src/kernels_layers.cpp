#include <ATen/core/Tensor.h>
#include <ATen/ops/cat_cpu_dispatch.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/embedding_dense_backward_cpu_dispatch.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/index_select_cpu_dispatch.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/native_dropout_backward_cpu_dispatch.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_layer_norm_backward_cpu_dispatch.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_cpu_dispatch.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "elementwise.hpp"

// What the layers of a transformer need beside products of matrices. PyTorch's CPU functions for these make their results themselves: the
// large one is made where it belongs if that can be had, what is small is copied.
namespace xpu_torch {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using std::optional;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

bool is_operand_like(const Tensor& self, const Tensor& tensor) {
  return tensor.device() == self.device() && tensor.dtype() == self.dtype() && can_be_operand(tensor);
}
bool is_operand_like(const Tensor& self, const optional<Tensor>& tensor, IntArrayRef sizes) {
  return !tensor || !tensor->defined() || (is_operand_like(self, *tensor) && tensor->sizes().equals(sizes));
}
void copy_if_elsewhere(const Tensor& result, const Tensor& made) {
  if (result.defined() && result.const_data_ptr() != made.const_data_ptr()) result.copy_(made);
}
ResultMemoryForCpu memory_of(const Tensor& result) {
  return result.defined() ? ResultMemoryForCpu(result.mutable_data_ptr(), result.nbytes()) : ResultMemoryForCpu(nullptr, 0);
}
const Tensor& or_undefined(const optional<Tensor>& tensor) {
  static const Tensor undefined;
  return tensor ? *tensor : undefined;
}

// The normalised dimensions are the last so many of the input.
void layer_norm_on_cpu(const Tensor& input, std::int64_t normalized, const optional<Tensor>& weight, const optional<Tensor>& bias,
                       double epsilon, Tensor& result, Tensor& mean, Tensor& rstd) {
  const IntArrayRef shape = input.sizes().slice(static_cast<std::size_t>(input.dim() - normalized));
  const ResultMemoryForCpu memory = memory_of(result);
  const auto made = at::cpu::native_layer_norm(input, shape, weight, bias, epsilon);
  // What is small first: nothing says that it does not lie in the large one's memory.
  mean.copy_(std::get<1>(made));
  rstd.copy_(std::get<2>(made));
  copy_if_elsewhere(result, std::get<0>(made));
}
void layer_norm_backward_on_cpu(const Tensor& gradient, const Tensor& input, std::int64_t normalized, const Tensor& mean,
                                const Tensor& rstd, const optional<Tensor>& weight, const optional<Tensor>& bias,
                                std::array<bool, 3> wanted, const optional<Tensor>& of_input, const optional<Tensor>& of_weight,
                                const optional<Tensor>& of_bias) {
  const IntArrayRef shape = input.sizes().slice(static_cast<std::size_t>(input.dim() - normalized));
  const ResultMemoryForCpu memory = memory_of(or_undefined(of_input));
  const auto made = at::cpu::native_layer_norm_backward(gradient, input, shape, mean, rstd, weight, bias, wanted);
  copy_if_elsewhere(or_undefined(of_weight), std::get<1>(made));
  copy_if_elsewhere(or_undefined(of_bias), std::get<2>(made));
  copy_if_elsewhere(or_undefined(of_input), std::get<0>(made));
}
using LayerNormKernel = CpuKernel<"xpu_layer_norm", decltype(layer_norm_on_cpu), &layer_norm_on_cpu>;
using LayerNormBackwardKernel = CpuKernel<"xpu_layer_norm_backward", decltype(layer_norm_backward_on_cpu), &layer_norm_backward_on_cpu>;

bool fits_layer_norm(const Tensor& input, IntArrayRef shape, const optional<Tensor>& weight, const optional<Tensor>& bias) {
  const std::size_t dimensions = input.sizes().size();
  return input.device().type() == kDeviceType && is_one_of(input.scalar_type(), Types::floating) && can_be_operand(input) &&
         input.numel() != 0 && !shape.empty() && shape.size() <= dimensions &&
         input.sizes().slice(dimensions - shape.size()).equals(shape) && is_operand_like(input, weight, shape) &&
         is_operand_like(input, bias, shape);
}
ThreeTensors layer_norm(const Tensor& input, IntArrayRef shape, const optional<Tensor>& weight, const optional<Tensor>& bias,
                        double epsilon) {
  if (!fits_layer_norm(input, shape, weight, bias))
    return fall_back_to_cpu<at::_ops::native_layer_norm>(input, c10::fromIntArrayRefSlow(shape), weight, bias, epsilon);
  const int device = input.device().index();
  const xpu::Stream stream = current_stream(device);
  c10::SmallVector<std::int64_t, Operand::kMostDimensions> of_statistics(input.sizes().begin(), input.sizes().end());
  std::fill(of_statistics.end() - static_cast<std::ptrdiff_t>(shape.size()), of_statistics.end(), 1);
  Tensor result = empty_on(device, stream, input.sizes(), input.dtype());
  Tensor mean = empty_on(device, stream, of_statistics, input.dtype()), rstd = empty_on(device, stream, of_statistics, input.dtype());
  LayerNormKernel::launch(device, input.numel(), input, input, static_cast<std::int64_t>(shape.size()), weight, bias, epsilon, result, mean,
                          rstd);
  return {std::move(result), std::move(mean), std::move(rstd)};
}
ThreeTensors layer_norm_backward(const Tensor& gradient, const Tensor& input, IntArrayRef shape, const Tensor& mean, const Tensor& rstd,
                                 const optional<Tensor>& weight, const optional<Tensor>& bias, std::array<bool, 3> wanted) {
  if (!fits_layer_norm(input, shape, weight, bias) || !is_operand_like(input, gradient) || !gradient.sizes().equals(input.sizes()) ||
      !is_operand_like(input, mean) || !is_operand_like(input, rstd)) {
    return fall_back_to_cpu<at::_ops::native_layer_norm_backward>(gradient, input, c10::fromIntArrayRefSlow(shape), mean, rstd, weight,
                                                                  bias, wanted);
  }
  const int device = input.device().index();
  const xpu::Stream stream = current_stream(device);
  const auto made_if = [&](bool is_wanted, IntArrayRef sizes) {
    return is_wanted ? empty_on(device, stream, sizes, input.dtype()) : Tensor();
  };
  Tensor of_input = made_if(wanted[0], input.sizes());
  Tensor of_weight = made_if(wanted[1] && weight && weight->defined(), shape),
         of_bias = made_if(wanted[2] && bias && bias->defined(), shape);
  LayerNormBackwardKernel::launch(device, input.numel(), input, gradient, input, static_cast<std::int64_t>(shape.size()), mean, rstd,
                                  weight, bias, wanted, of_input, of_weight, of_bias);
  return {std::move(of_input), std::move(of_weight), std::move(of_bias)};
}

void dropout_backward_on_cpu(const Tensor& gradient, const Tensor& mask, double scale, Tensor& result) {
  result.copy_(at::cpu::native_dropout_backward(gradient, mask, scale));
}
// Where all is contiguous it is one loop, and not a loop and a tensor for each of its three steps.
template <typename T>
struct DropoutBackwardLoop {
  T* result;
  const T* gradient;
  const bool* mask;
  T scale;

  static constexpr const char* name() { return "xpu_dropout_backward"; }
  void run(const xpu::WorkGroup& group) const {
    const DropoutBackwardLoop work = *this;
    const std::uint64_t first = group.first(0), end = first + group.items(0);
#pragma GCC ivdep
    for (std::uint64_t i = first; i < end; ++i) work.result[i] = work.gradient[i] * (static_cast<T>(work.mask[i]) * work.scale);
  }
};
template <typename T>
void launch_dropout_loop(const Tensor& gradient, const Tensor& mask, double scale, Tensor& result) {
  if (result.numel() == 0) return;
  const int device = result.device().index();
  const DropoutBackwardLoop<T> work{result.mutable_data_ptr<T>(), gradient.const_data_ptr<T>(), mask.const_data_ptr<bool>(),
                                    static_cast<T>(scale)};
  launch(work, device, current_stream(device), result.numel(), xpu::items(static_cast<std::uint64_t>(result.numel())));
}
using DropoutBackwardKernel = CpuKernel<"xpu_dropout_backward", decltype(dropout_backward_on_cpu), &dropout_backward_on_cpu>;
Tensor dropout_backward(const Tensor& gradient, const Tensor& mask, double scale) {
  if (gradient.device().type() != kDeviceType || !is_one_of(gradient.scalar_type(), Types::floating) || !can_be_operand(gradient) ||
      mask.device() != gradient.device() || mask.scalar_type() != at::kBool || !can_be_operand(mask) ||
      !mask.sizes().equals(gradient.sizes())) {
    return fall_back_to_cpu<at::_ops::native_dropout_backward>(gradient, mask, scale);
  }
  const int device = gradient.device().index();
  Tensor result = empty_on(device, current_stream(device), gradient.sizes(), gradient.dtype());
  const bool is_for_loop = gradient.is_contiguous() && mask.is_contiguous();
  if (is_for_loop && gradient.scalar_type() == at::kFloat) {
    launch_dropout_loop<float>(gradient, mask, scale, result);
  } else if (is_for_loop && gradient.scalar_type() == at::kDouble) {
    launch_dropout_loop<double>(gradient, mask, scale, result);
  } else {
    DropoutBackwardKernel::launch(device, gradient.numel(), gradient, gradient, mask, scale, result);
  }
  return result;
}

bool is_index(const Tensor& self, const Tensor& index) {
  return index.device() == self.device() && (index.scalar_type() == at::kLong || index.scalar_type() == at::kInt) && can_be_operand(index);
}
void embedding_backward_on_cpu(const Tensor& gradient, const Tensor& indices, std::int64_t rows, std::int64_t padding, bool by_frequency,
                               Tensor& result) {
  const ResultMemoryForCpu memory = memory_of(result);
  copy_if_elsewhere(result, at::cpu::embedding_dense_backward(gradient, indices, rows, padding, by_frequency));
}
using EmbeddingBackwardKernel = CpuKernel<"xpu_embedding_backward", decltype(embedding_backward_on_cpu), &embedding_backward_on_cpu>;
Tensor embedding_backward(const Tensor& gradient, const Tensor& indices, std::int64_t rows, std::int64_t padding, bool by_frequency) {
  if (gradient.device().type() != kDeviceType || !is_one_of(gradient.scalar_type(), Types::floating) || !can_be_operand(gradient) ||
      !is_index(gradient, indices) || gradient.dim() != indices.dim() + 1 || rows <= 0) {
    return fall_back_to_cpu<at::_ops::embedding_dense_backward>(gradient, indices, rows, padding, by_frequency);
  }
  const int device = gradient.device().index();
  Tensor result = empty_on(device, current_stream(device), std::array{rows, gradient.size(-1)}, gradient.dtype());
  EmbeddingBackwardKernel::launch(device, std::max(gradient.numel(), result.numel()), gradient, gradient, indices, rows, padding,
                                  by_frequency, result);
  return result;
}

using IndexSelectKernel = CpuKernel<"xpu_index_select", at::_ops::index_select_out::schema, &at::cpu::index_select_outf>;
Tensor index_select(const Tensor& self, std::int64_t dimension, const Tensor& index) {
  if (self.device().type() != kDeviceType || !is_one_of(self.scalar_type(), Types::all) || !can_be_operand(self) ||
      !is_index(self, index) || index.dim() > 1 || dimension < -self.dim() || dimension >= self.dim() || self.numel() == 0) {
    return fall_back_to_cpu<at::_ops::index_select>(self, dimension, index);
  }
  c10::SmallVector<std::int64_t, Operand::kMostDimensions> sizes(self.sizes().begin(), self.sizes().end());
  sizes[static_cast<std::size_t>(dimension < 0 ? dimension + self.dim() : dimension)] = index.numel();
  const int device = self.device().index();
  Tensor result = empty_on(device, current_stream(device), sizes, self.dtype());
  IndexSelectKernel::launch(device, result.numel(), result, self, dimension, index, result);
  return result;
}

// Tensors of one type that make up the result, one behind the other.
bool can_join(const at::ITensorListRef& tensors, std::int64_t dimension, const Tensor& result) {
  if (tensors.size() == 0 || tensors.size() > OperandList::kMost || !can_write(result, {}) ||
      !is_one_of(result.scalar_type(), Types::all) || dimension < -result.dim() || dimension >= result.dim()) {
    return false;
  }
  const std::int64_t along = dimension < 0 ? dimension + result.dim() : dimension;
  std::int64_t length = 0;
  for (const Tensor& tensor : tensors) {
    if (!is_operand_like(result, tensor) || tensor.dim() != result.dim() || tensor.is_alias_of(result)) return false;
    for (std::int64_t i = 0; i < result.dim(); ++i) {
      if (i != along && tensor.size(i) != result.size(i)) return false;
    }
    length += tensor.size(along);
  }
  return length == result.size(along);
}
using CatKernel = CpuKernel<"xpu_cat", at::_ops::cat_out::schema, &at::cpu::cat_outf>;
Tensor& cat_out(const at::ITensorListRef& tensors, std::int64_t dimension, Tensor& result) {
  if (!can_join(tensors, dimension, result)) return fall_back_to_cpu<at::_ops::cat_out>(tensors, dimension, result);
  CatKernel::launch(result.device().index(), result.numel(), result, tensors, dimension, result);
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("native_layer_norm", &layer_norm);
  library.impl("native_layer_norm_backward", &layer_norm_backward);
  library.impl("native_dropout_backward", &dropout_backward);
  library.impl("embedding_dense_backward", &embedding_backward);
  library.impl("index_select", &index_select);
  library.impl("cat.out", &cat_out);
}

}  // namespace xpu_torch
