#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <pthread.h>

#include <string_view>

#include "alias.hpp"
#include "check.hpp"
#include "devices.hpp"

namespace xpu_torch {

/// The sizes of a tensor as a record shows them: the last three, innermost first. One item where there is nothing.
inline xpu::Geometry geometry_of(const at::Tensor& tensor) {
  xpu::Geometry geometry = xpu::items(1);
  if (!tensor.defined() || tensor.numel() == 0) return geometry;
  const auto sizes = tensor.sizes();
  geometry.dimensions = static_cast<std::uint32_t>(std::clamp<std::size_t>(sizes.size(), 1, 3));
  for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), 3); ++i) {
    geometry.global[i] = static_cast<std::uint64_t>(sizes[sizes.size() - 1 - i]);
  }
  return geometry;
}

/// Runs work of the CPU at its place in the device's current stream, and returns when it is done: it has a record of its own, by this name
/// and geometry. What it allocates for CPU tensors is memory of the device. Exceptions come through.
template <typename Function>
void run_on_stream(std::string_view name, int device, const xpu::Geometry& geometry, Function&& function) {
  const xpu::Stream stream = current_stream(device);
  // Another thread may run it; what this one has set for operators holds there, too.
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  const c10::AutogradState autograd = c10::AutogradState::get_tls_state();
  const pthread_t caller = pthread_self();
  check(stream.run_blocking({.name = name, .short_and_independent = false, .geometry = &geometry}, [&] {
    const DeviceMemoryForCpu memory(device, stream.memory_ref());
    if (pthread_equal(caller, pthread_self())) {
      function();
      return;
    }
    const c10::impl::ForceDispatchKeyGuard keys_here(keys);
    const c10::AutogradState former = c10::AutogradState::get_tls_state();
    c10::AutogradState::set_tls_state(autograd);
    struct Restore {
      const c10::AutogradState& state;
      ~Restore() { c10::AutogradState::set_tls_state(state); }
    } restore{former};
    function();
  }));
}

}  // namespace xpu_torch
