#pragma once

/// The library in one include: devices, streams, events, kernels, memory.
#include "xpu/base/result.hpp"
#include "xpu/base/version.hpp"
#include "xpu/hal/kernel_function.hpp"
#include "xpu/runtime/buffer.hpp"
#include "xpu/runtime/device.hpp"
#include "xpu/runtime/event.hpp"
#include "xpu/runtime/gpu_trace.hpp"
#include "xpu/runtime/module.hpp"
#include "xpu/runtime/runtime.hpp"
#include "xpu/runtime/stream.hpp"
