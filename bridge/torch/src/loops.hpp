#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "kernel_launch.hpp"

/// Loops of our own over elements that lie alike in all tensors: short, without a look at strides and types, and without the iterator that
/// PyTorch makes for every call.
namespace xpu_torch {

/// The work of `result[i] = function(inputs[0][i], …)`. `Function` is a trivially copyable structure with a name and an operator().
template <typename Function, typename T, std::size_t inputs_count>
struct Loop {
  T* result;
  std::array<const T*, inputs_count> inputs;
  Function function;

  static constexpr const char* name() { return Function::kName; }
  void run(const xpu::WorkGroup& group) const {
#if defined(__x86_64__)
    static const bool has_wide_vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_wide_vectors) return run_wide(group);
#endif
    run_here(group);
  }

 private:
  [[gnu::always_inline]] void run_here(const xpu::WorkGroup& group) const {
    // All in variables of its own: what is written could be part of *this, as far as a compiler knows.
    const Function f = function;
    T* const to = result;
    const std::array<const T*, inputs_count> from = inputs;
    const std::uint64_t first = group.first(0), end = first + group.items(0);
    // A result may lie on an input, but then element on element.
#pragma GCC ivdep
    for (std::uint64_t i = first; i < end; ++i) {
      if constexpr (inputs_count == 1) {
        to[i] = f(from[0][i]);
      } else if constexpr (inputs_count == 2) {
        to[i] = f(from[0][i], from[1][i]);
      } else {
        to[i] = f(from[0][i], from[1][i], from[2][i]);
      }
    }
  }
#if defined(__x86_64__)
  [[gnu::noinline, gnu::target("avx2,fma")]] void run_wide(const xpu::WorkGroup& group) const { run_here(group); }
#endif
};

namespace loops {

inline bool is_dense(const at::Tensor& tensor) {
  return tensor.device().type() == kDeviceType && tensor.is_non_overlapping_and_dense() && !tensor.is_neg();
}
inline bool lie_alike(const at::Tensor& one, const at::Tensor& other) {
  return one.is_same(other) || (one.dtype() == other.dtype() && one.device() == other.device() && one.sizes().equals(other.sizes()) &&
                                one.strides().equals(other.strides()) && !other.is_neg());
}
template <typename T>
T* elements_of(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->mutable_data()) + tensor.storage_offset();
}
template <typename T>
const T* const_elements_of(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->data()) + tensor.storage_offset();
}

template <template <typename> typename Function, typename T, typename... Parameters, std::size_t count>
void launch_loop(const at::Tensor& result, const xpu::Stream& stream, const std::array<const at::Tensor*, count>& inputs,
                 const Parameters&... parameters) {
  const std::int64_t elements = result.numel();
  if (elements == 0) return;
  Loop<Function<T>, T, count> work{elements_of<T>(result), {}, Function<T>{static_cast<T>(parameters)...}};
  for (std::size_t i = 0; i < count; ++i) work.inputs[i] = const_elements_of<T>(*inputs[i]);
  launch(work, result.device().index(), stream, elements, xpu::items(static_cast<std::uint64_t>(elements)));
}

template <std::size_t count>
bool all_lie_alike(const std::array<const at::Tensor*, count>& inputs) {
  const at::Tensor& first = *inputs[0];
  const at::ScalarType type = first.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || !is_dense(first)) return false;
  for (std::size_t i = 1; i < count; ++i) {
    if (!lie_alike(first, *inputs[i])) return false;
  }
  return true;
}

}  // namespace loops

/// Where the elements of the inputs lie alike and a loop knows their type: `Function<T>` over them, into a new tensor. Else undefined, and
/// nothing has happened. The parameters, numbers, are the function's members.
template <template <typename> typename Function, std::size_t count, typename... Parameters>
at::Tensor map(const std::array<const at::Tensor*, count>& inputs, const Parameters&... parameters) {
  if (!loops::all_lie_alike(inputs)) return {};
  const at::Tensor& first = *inputs[0];
  const xpu::Stream stream = current_stream(first.device().index());
  at::Tensor result = empty_as(first, stream);
  if (first.scalar_type() == at::kFloat) {
    loops::launch_loop<Function, float>(result, stream, inputs, parameters...);
  } else {
    loops::launch_loop<Function, double>(result, stream, inputs, parameters...);
  }
  return result;
}

/// The same into a tensor that there is, which may be one of the inputs; false where it is not for a loop.
template <template <typename> typename Function, std::size_t count, typename... Parameters>
bool map_into(const at::Tensor& result, const std::array<const at::Tensor*, count>& inputs, const Parameters&... parameters) {
  if (!loops::all_lie_alike(inputs) || !loops::lie_alike(*inputs[0], result)) return false;
  for (const at::Tensor* const input : inputs) {
    if (!input->is_same(result) && input->is_alias_of(result) && input->storage_offset() != result.storage_offset()) return false;
  }
  const xpu::Stream stream = current_stream(result.device().index());
  if (result.scalar_type() == at::kFloat) {
    loops::launch_loop<Function, float>(result, stream, inputs, parameters...);
  } else {
    loops::launch_loop<Function, double>(result, stream, inputs, parameters...);
  }
  return true;
}

}  // namespace xpu_torch
