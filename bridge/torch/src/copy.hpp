#pragma once

#include <ATen/core/Tensor.h>

namespace xpu_torch {

/// Writes the values of `source`, of any device, type and strides, into `self`; one of them is on our device. In the order of the current
/// streams. The host waits for a copy to its memory, and for one from memory that is not pinned, whatever `non_blocking` says: such memory
/// may change, or go, as soon as this returns. With `non_blocking` it waits for nothing else.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking);

}  // namespace xpu_torch
