#pragma once

namespace xpu_torch {

/// From now on every operator of PyTorch, and every range of torch.profiler.record_function, is a range of `xpu/annotate.h`, so that a
/// recording names the operator that launched a kernel. Once.
void publish_operators();

}  // namespace xpu_torch
