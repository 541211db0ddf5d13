#pragma once

namespace xpu_torch {

/// Whether PyTorch uses our hooks. Not so where something asked for the accelerator before this module was loaded: PyTorch then keeps what
/// it found, which is nothing, for the life of the process.
bool hooks_are_ours();

}  // namespace xpu_torch
