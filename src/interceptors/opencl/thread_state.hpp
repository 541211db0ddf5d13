#pragma once

#include <cstdint>

#include "interceptors/opencl/objects.hpp"

namespace xpu::interceptors::opencl {

class CommandRing;

/// What one thread of the program keeps, so that a launch takes no lock and searches nothing: the object that a handle meant last, in the
/// place that its address says. An entry is believed while its object still carries the handle.
struct ThreadState {
  static constexpr std::size_t kRings = 16;
  static constexpr std::size_t kKernels = 128;

  CommandRing* rings[kRings] = {};
  Kernel* kernels[kKernels] = {};
  std::uint32_t launches = 0;  ///< For sampling what we cost.
};

namespace internal {
extern constinit thread_local ThreadState* t_state;
ThreadState* make_thread_state() noexcept;
}  // namespace internal

/// Null without memory. Goes when the thread ends; calls that come later (destructors of thread-local objects) get a new one.
inline ThreadState* this_thread() noexcept {
  ThreadState* state = internal::t_state;
  return state != nullptr ? state : internal::make_thread_state();
}

/// In a forked child: rings and their owners are the parent's.
void forget_thread_state_after_fork() noexcept;

/// Once, before the first use.
void prepare_thread_states() noexcept;

}  // namespace xpu::interceptors::opencl
