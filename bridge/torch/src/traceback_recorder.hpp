#pragma once

#include <memory>

#include "xpu/memory/history.hpp"

namespace xpu_torch {

/// Stacks as PyTorch records them: frames of Python and TorchScript, and those of C++ when asked for.
std::shared_ptr<xpu::memory::StackRecorder> make_traceback_recorder(bool with_cpp);

}  // namespace xpu_torch
