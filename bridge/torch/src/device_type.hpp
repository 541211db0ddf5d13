#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/DispatchKey.h>

/// Which of PyTorch's device types this module serves. The sources are compiled twice: for XPU, and for PrivateUse1, where a wheel has CUDA
/// built in and can have no second accelerator. A process loads one of the two.
#if defined(XPU_TORCH_PRIVATEUSE1)
#define XPU_TORCH_KEY PrivateUse1
#define XPU_TORCH_AUTOGRAD_KEY AutogradPrivateUse1
#define XPU_TORCH_SPARSE_KEY SparsePrivateUse1
#define XPU_TORCH_SPARSE_CSR_KEY SparseCsrPrivateUse1
#else
#define XPU_TORCH_KEY XPU
#define XPU_TORCH_AUTOGRAD_KEY AutogradXPU
#define XPU_TORCH_SPARSE_KEY SparseXPU
#define XPU_TORCH_SPARSE_CSR_KEY SparseCsrXPU
#endif

namespace xpu_torch {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::XPU_TORCH_KEY;
inline constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::XPU_TORCH_KEY;

inline c10::Device device_of(int index) { return {kDeviceType, static_cast<c10::DeviceIndex>(index)}; }

}  // namespace xpu_torch
