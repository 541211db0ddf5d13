#pragma once

#include <ATen/core/boxing/BoxedKernel.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace xpu_torch {

/// Runs the CPU's kernel of an operator on aliases of the device's tensors, in its place in the current stream, and waits for it.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack);

template <typename Op, typename Schema = typename Op::schema>
struct FallBackToCpu;
template <typename Op, typename Result, typename... Parameters>
struct FallBackToCpu<Op, Result(Parameters...)> {
  static Result call(Parameters... parameters) {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name).template typed<Result(Parameters...)>();
    return c10::impl::BoxedKernelWrapper<Result(Parameters...)>::call(c10::BoxedKernel::makeFromFunction<&fall_back>(), op,
                                                                      c10::DispatchKeySet(), parameters...);
  }
};

/// The same for an operator by its type, `fall_back_to_cpu<at::_ops::add_out>(self, other, alpha, out)`: what a kernel of our own does with
/// the calls that are not for it. Results, changes and errors are the CPU's.
template <typename Op, typename... Arguments>
decltype(auto) fall_back_to_cpu(Arguments&&... arguments) {
  return FallBackToCpu<Op>::call(std::forward<Arguments>(arguments)...);
}

}  // namespace xpu_torch
