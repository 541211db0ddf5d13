#pragma once

#include <atomic>
#include <cstdint>

#include "xpu/runtime/gpu_trace.hpp"

namespace xpu::runtime {

extern constinit std::atomic<std::uint32_t> g_callback_count;
void call_callbacks(gpu_trace::Point point, std::uintptr_t first, std::uintptr_t second) noexcept;

/// Calls whoever is registered for the point. With no lock of the runtime held, except that a stream's own is when an event is recorded or
/// waited for within one of its functions.
inline void reached(gpu_trace::Point point, const void* first = nullptr, const void* second = nullptr) noexcept {
  if (g_callback_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    call_callbacks(point, reinterpret_cast<std::uintptr_t>(first), reinterpret_cast<std::uintptr_t>(second));
}

}  // namespace xpu::runtime
