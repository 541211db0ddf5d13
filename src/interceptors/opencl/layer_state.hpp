#pragma once

#include <atomic>
#include <cstdint>

#include "base/probe.hpp"
#include "interceptors/opencl/opencl_headers.hpp"

namespace xpu::interceptors::opencl {

/// What the whole layer shares. Constant-initialised, trivially destroyed and never freed: programs call OpenCL from static destructors.
struct LayerState {
  cl_icd_dispatch
      target{};  ///< What lies below us: all our own calls go there, never through libOpenCL. Written once, before the loader knows us.
  std::atomic<bool> down{false};  ///< The process ends: every wrapper passes straight through.
};

extern constinit LayerState g_layer;

inline const cl_icd_dispatch& target() noexcept { return g_layer.target; }

/// The subscriber, if a call of this thread is to be published at all.
inline const probe::Subscriber* listener_or_null() noexcept {
  const probe::Subscriber* listener = probe::subscriber();
  return listener == nullptr || g_layer.down.load(std::memory_order_relaxed) ? nullptr : listener;
}

/// Whether objects that this thread makes and releases are to be followed. Inside a scope the objects are published by whoever opened it.
inline bool is_tracking() noexcept { return listener_or_null() != nullptr && !probe::inside_scope(); }

inline bool wants(const probe::Subscriber& listener, probe::Wanted what) noexcept {
  return (listener.wanted.load(std::memory_order_relaxed) & what) != 0;
}

}  // namespace xpu::interceptors::opencl
