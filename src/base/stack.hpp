#pragma once

#include <cstddef>
#include <cstdint>

#include "base/probe.hpp"
#include "xpu/base/export.hpp"

namespace xpu::base {

/// Where a call came from. Addresses are symbolised by whoever reads them, never here. A plain value.
struct CallStack {
  static constexpr std::size_t kMaxFrames = 64;

  std::uint32_t count = 0;               ///< C and C++ frames, innermost first.
  std::uint32_t provided_count = 0;      ///< Frames of an interpreter, innermost first.
  std::uintptr_t addresses[kMaxFrames];  ///< Return addresses.
  probe::Id provided[kMaxFrames];        ///< Interned texts such as "train.py:17 step".
};

/// Writes at most `capacity` texts and returns how many. Called on the thread whose stack is wanted; must not throw.
using StackProvider = std::size_t (*)(probe::Id* texts, std::size_t capacity);
/// An interpreter's frames are invisible to the unwinder, so its binding adds them. One provider; null removes it.
XPU_EXPORT void set_stack_provider(StackProvider provider) noexcept;

/// Loads the unwinder, which allocates and takes the dynamic linker's lock: once, before stacks are captured at places where neither may
/// happen.
XPU_EXPORT void prepare_call_stacks() noexcept;

/// This thread's stack without the frame of this function and without `skip` frames of its callers. About 1 us per 10 frames.
XPU_EXPORT void capture_call_stack(CallStack& stack, std::size_t skip = 0) noexcept;

}  // namespace xpu::base
