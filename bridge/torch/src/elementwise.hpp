#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include "cpu_kernel.hpp"
#include "fall_back.hpp"

/// What operators have in common that work on every element by itself, or nearly so.
namespace xpu_torch {

/// Which types of elements a kernel takes; a CPU function that does not know a type would say so too late.
enum class Types : std::uint8_t { floating, numbers, all };
/// A result's type: that of the inputs, or of truth values.
enum class ResultType : std::uint8_t { of_inputs, boolean };

bool is_one_of(at::ScalarType type, Types types);

using Inputs = c10::ArrayRef<const at::Tensor*>;

/// Whether the result is an operand of the device, and no input lies in it in another way than as the very same elements.
bool can_write(const at::Tensor& result, Inputs inputs);
/// Whether the inputs are operands of the result's device, or numbers, and broadcast to its shape.
bool broadcast_to(const at::Tensor& result, Inputs inputs);
/// Whether they have a type in common without a conversion, that the result fits.
bool fit_types(const at::Tensor& result, Inputs inputs, Types types, ResultType result_type);

namespace elementwise {

inline const at::Tensor* tensor_in(const at::Tensor& parameter) { return &parameter; }
template <typename T>
const at::Tensor* tensor_in(const T&) {
  return nullptr;
}
inline bool can_travel(const c10::Scalar& parameter) { return is_real(parameter); }
inline bool can_travel(const std::optional<c10::Scalar>& parameter) { return !parameter || is_real(*parameter); }
template <typename T>
bool can_travel(const T&) {
  return true;
}

}  // namespace elementwise

/// An operator `Op` in its out= form by a CPU function of the same parameters: tensors are inputs, but for the last, which is the result.
/// What has to be resized, converted or refused is the CPU's.
template <KernelName kernel_name, typename Op, typename Op::schema* function, Types types = Types::floating,
          ResultType result_type = ResultType::of_inputs, typename Schema = typename Op::schema>
struct OutByCpu;
template <KernelName kernel_name, typename Op, typename Op::schema* function, Types types, ResultType result_type, typename... Parameters>
struct OutByCpu<kernel_name, Op, function, types, result_type, at::Tensor&(Parameters...)> {
  static at::Tensor& out(Parameters... parameters) {
    const at::Tensor* tensors[sizeof...(Parameters)];
    std::size_t count = 0;
    const auto add = [&](const at::Tensor* tensor) {
      if (tensor != nullptr) tensors[count++] = tensor;
    };
    (add(elementwise::tensor_in(parameters)), ...);
    const at::Tensor& result = *tensors[--count];
    const Inputs inputs(tensors, count);
    if (!(elementwise::can_travel(parameters) && ...) || !can_write(result, inputs) || !broadcast_to(result, inputs) ||
        !fit_types(result, inputs, types, result_type)) {
      return fall_back_to_cpu<Op>(parameters...);
    }
    CpuKernel<kernel_name, at::Tensor&(Parameters...), function>::launch(result.device().index(), result.numel(), result, parameters...);
    return const_cast<at::Tensor&>(result);
  }
};

}  // namespace xpu_torch
