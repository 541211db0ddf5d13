#pragma once

#include "null_driver/objects.hpp"

namespace xpu::null_driver {

constexpr std::size_t kMaxWorkGroup = 1024;
constexpr std::size_t kSubGroupSize = 16;
constexpr cl_ulong kGlobalMemoryBytes = cl_ulong{16} << 30;
constexpr cl_ulong kMaxAllocationBytes = cl_ulong{4} << 30;
constexpr cl_ulong kLocalMemoryBytes = 64 << 10;
constexpr cl_command_queue_properties kHostQueueProperties = CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
constexpr cl_command_queue_properties kDeviceQueueProperties =
    CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;
constexpr cl_uint kMaxDeviceQueueBytes = 1 << 20;

/// The platforms with their devices, made at the first call from the settings. They live for ever.
const std::vector<cl_platform_id>& platforms();

/// What loaders call first.
cl_int icd_platform_ids(cl_uint entries, cl_platform_id* platforms, cl_uint* count);

}  // namespace xpu::null_driver
