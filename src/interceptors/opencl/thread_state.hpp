#pragma once

#include <cstddef>
#include <cstdint>

#include "base/probe.hpp"
#include "interceptors/opencl/objects.hpp"

namespace xpu::interceptors::opencl {

class CommandRing;

/// What one thread of the program keeps, so that a launch takes no lock and searches nothing: the object that a handle meant last, in the
/// place that its address says. An entry is believed while its object still carries the handle.
struct ThreadState {
  static constexpr std::size_t kRings = 16;
  static constexpr std::size_t kKernels = 128;

  /// Where this thread's probe::Scope counts: its address is asked for once, because it lies in another library.
  const std::uint32_t* scope_depth = &probe::internal::t_scope_depth;
  std::uint32_t until_sample = 1;  ///< Launches until the next one whose cost is measured.
  CommandRing* rings[kRings] = {};
  Kernel* kernels[kKernels] = {};

  template <std::size_t size>
  static std::size_t slot_of(const void* handle) noexcept {
    return hash_of(handle) % size;
  }
};

namespace internal {
/// Initial-exec: eight bytes of the reserve that every process has, and no call at each launch.
extern constinit thread_local ThreadState* t_state __attribute__((tls_model("initial-exec")));
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
