#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel_launch.hpp"
#include "operand.hpp"
#include "run_on_stream.hpp"

/// Launches of PyTorch's own CPU functions: where they are better than a loop of ours, and for all types and strides that a loop of ours
/// does not know. They run when their turn comes, on aliases of the operands made there. What they need for themselves is the host's
/// memory: the device's allocator may have nothing that is free at that moment of the stream.
namespace xpu_torch {

/// Dimensions that an operator works along, if any were given.
struct Dimensions {
  bool are_given;
  std::int8_t count;
  std::int64_t values[Operand::kMostDimensions];
};

/// A few tensors; whoever launches looks at their number.
struct OperandList {
  static constexpr std::size_t kMost = 16;
  std::uint32_t count;
  Operand operands[kMost];
};

namespace held {

// How a parameter of a CPU function travels in a launch, and what it is where the kernel runs.
template <typename T>
struct Parameter {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_reference_v<T> && !std::is_pointer_v<T>);
  using Form = T;
  static Form pack(const T& value) { return value; }
  static T restore(CpuTensors&, const Form& form) { return form; }
};
template <>
struct Parameter<const at::Tensor&> {
  using Form = Operand;
  static Form pack(const at::Tensor& tensor) { return operand_of(tensor); }
  static at::Tensor& restore(CpuTensors& tensors, const Form& form) { return tensors.of(form); }
};
template <>
struct Parameter<at::Tensor&> : Parameter<const at::Tensor&> {
  static Form pack(const at::Tensor& tensor) { return result_operand_of(tensor); }
};
template <>
struct Parameter<const std::optional<at::Tensor>&> {
  using Form = Operand;
  static Form pack(const std::optional<at::Tensor>& tensor) { return operand_of(tensor); }
  static std::optional<at::Tensor> restore(CpuTensors& tensors, const Form& form) {
    return form.type == at::ScalarType::Undefined ? std::nullopt : std::optional(tensors.of(form));
  }
};
template <>
struct Parameter<const at::ITensorListRef&> {
  using Form = OperandList;
  static Form pack(const at::ITensorListRef& tensors) {
    Form form;
    form.count = 0;
    for (const at::Tensor& tensor : tensors) form.operands[form.count++] = operand_of(tensor);
    return form;
  }
  static std::vector<at::Tensor> restore(CpuTensors& tensors, const Form& form) {
    std::vector<at::Tensor> list;
    for (std::uint32_t i = 0; i < form.count; ++i) list.push_back(tensors.of(form.operands[i]));
    return list;
  }
};
template <>
struct Parameter<const c10::Scalar&> {
  using Form = Number;
  static Form pack(const c10::Scalar& scalar) { return number_of(scalar); }
  static c10::Scalar restore(CpuTensors&, const Form& form) { return form.scalar(); }
};
template <>
struct Parameter<const std::optional<c10::Scalar>&> {
  using Form = std::optional<Number>;
  static Form pack(const std::optional<c10::Scalar>& scalar) { return scalar ? std::optional(number_of(*scalar)) : std::nullopt; }
  static std::optional<c10::Scalar> restore(CpuTensors&, const Form& form) { return form ? std::optional(form->scalar()) : std::nullopt; }
};
template <>
struct Parameter<at::OptionalIntArrayRef> {
  using Form = Dimensions;
  static Form pack(const at::OptionalIntArrayRef& dimensions) {
    Form form{dimensions.has_value(), 0, {}};
    if (!dimensions) return form;
    form.count = static_cast<std::int8_t>(dimensions->size());
    std::copy(dimensions->begin(), dimensions->end(), form.values);
    return form;
  }
  static at::OptionalIntArrayRef restore(CpuTensors&, const Form& form) {
    if (!form.are_given) return std::nullopt;
    return c10::IntArrayRef(form.values, static_cast<std::size_t>(form.count));
  }
};

/// The parameters, one behind the other; std::tuple cannot be copied byte by byte.
template <typename... P>
struct Pack {};
template <typename First, typename... Rest>
struct Pack<First, Rest...> {
  typename Parameter<First>::Form first;
  Pack<Rest...> rest;
};
template <typename First, typename... Rest>
Pack<First, Rest...> pack_all(const std::remove_reference_t<First>& first, const std::remove_reference_t<Rest>&... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return {Parameter<First>::pack(first), {}};
  } else {
    return {Parameter<First>::pack(first), pack_all<Rest...>(rest...)};
  }
}
template <typename Function, typename... Restored>
void call(const Function& function, CpuTensors&, const Pack<>&, Restored&&... restored) {
  function(std::forward<Restored>(restored)...);
}
template <typename Function, typename First, typename... Rest, typename... Restored>
void call(const Function& function, CpuTensors& tensors, const Pack<First, Rest...>& pack, Restored&&... restored) {
  call(function, tensors, pack.rest, std::forward<Restored>(restored)..., Parameter<First>::restore(tensors, pack.first));
}

}  // namespace held

/// The work of `function(parameters…)`, a function of PyTorch's on CPU tensors.
template <KernelName kernel_name, typename Signature, Signature* function>
struct CpuKernel;
template <KernelName kernel_name, typename Result, typename... Parameters, Result (*function)(Parameters...)>
struct CpuKernel<kernel_name, Result(Parameters...), function> {
  held::Pack<Parameters...> parameters;

  static constexpr const char* name() { return kernel_name.text; }
  void run(const xpu::WorkGroup& group) const {
    if (!is_first(group)) return;
    CpuTensors tensors;
    try {
      held::call([](auto&&... restored) { function(std::forward<decltype(restored)>(restored)...); }, tensors, parameters);
    } catch (const c10::Error& error) {
      throw std::runtime_error(error.what_without_backtrace());  // the sentence alone; it becomes the stream's error
    }
  }

  /// Launches it on the current stream of the device. `elements` says how much work it is; `shape` is for records.
  static void launch(int device, std::int64_t elements, const at::Tensor& shape, const std::remove_reference_t<Parameters>&... values) {
    if (elements == 0) return;
    launch_whole(CpuKernel{held::pack_all<Parameters...>(values...)}, device, current_stream(device), elements, geometry_of(shape));
  }
};

}  // namespace xpu_torch
