#pragma once

#include <cstdint>

#include "xpu/base/export.hpp"

namespace xpu {

/// The library's version as text, e.g. "0.1.0". A string literal.
XPU_EXPORT const char* version() noexcept;

}  // namespace xpu

/// The number of the contract between libxpu.so and the components that link to it (probe, operations; later hal). A component
/// compares it with the `XPU_PROBE_ABI` that it was compiled with before its first call, and steps back with one sentence when
/// they differ.
extern "C" XPU_EXPORT std::uint32_t xpu_probe_abi();
