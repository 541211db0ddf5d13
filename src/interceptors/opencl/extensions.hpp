#pragma once

namespace xpu::interceptors::opencl {

/// The driver's clCreateCommandQueueWithPropertiesKHR, which the wrapper of that name calls.
void set_create_queue_khr(void* function) noexcept;

}  // namespace xpu::interceptors::opencl
