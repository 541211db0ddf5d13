#pragma once

#include <cstdint>

#include "xpu/base/export.hpp"

/// The numbers of PTI 1.0 under names of ours: code that was written for PTI compares records with these values.
///
/// All are 32 bits wide, as PTI's are. Each `to_string` returns a static text and "INVALID" for a number that is none of its enumeration.
namespace xpu::trace::view {

/// What a function of the view interface answers. `to_string` gives PTI's own names ("PTI_ERROR_BAD_ARGUMENT"), for which people search.
enum class ResultCode : std::uint32_t {
  success = 0,
  end_of_buffer = 1,
  not_implemented = 2,
  bad_argument = 3,
  no_callbacks_set = 4,
  external_id_queue_empty = 5,
  bad_timestamp = 6,
  bad_api_id = 7,
  no_gpu_views_enabled = 8,
  driver = 50,
  tracing_not_initialized = 51,
  local_profiling_not_supported = 52,
  metrics_collection_not_enabled = 100,
  metrics_collection_not_disabled = 101,
  metrics_collection_not_paused = 102,
  metrics_collection_already_paused = 103,
  metrics_collection_already_enabled = 104,
  metrics_bad_collection_configuration = 105,
  metrics_no_data_collected = 106,
  scope_metric_not_found = 151,
  scope_not_a_single_group = 152,
  scope_out_of_memory = 153,
  scope_collection_buffer_too_small = 154,
  scope_insufficient_buffer = 155,
  scope_invalid_collection_buffer = 156,
  scope_partial_buffer = 157,        ///< A warning.
  scope_buffer_not_finalized = 158,  ///< A warning.
  scope_device_type_not_uniform = 159,
  internal = 200,
  sampling_already_enabled = 250,
  sampling_not_configured = 251,
  sampling_already_configured = 252,
  sampling_already_started = 253,
  sampling_not_started = 254,
  sampling_already_stopped = 255,
  sampling_not_stopped = 256,
  sampling_unsupported = 257,
};

enum class ViewKind : std::uint32_t {
  invalid = 0,
  kernel = 1,
  cpu_kernel = 2,  ///< PTI never implemented it, nor do we: our CPU devices write `kernel`.
  driver_api = 3,
  reserved = 4,
  overhead = 5,
  runtime_api = 6,
  external_correlation = 7,
  memory_copy = 8,
  memory_fill = 9,
  peer_copy = 10,
  synchronization = 11,
  communication = 12,
};
inline constexpr std::uint32_t kViewKinds = 13;

enum class SynchronizationType : std::uint32_t {
  unknown = 0,
  barrier_execution = 1,
  barrier_memory = 2,
  host_fence = 3,
  host_event = 4,
  host_command_list = 5,
  host_command_queue = 6,
  host_device = 7,
};

/// `to_string`: "Host (User Allocated)", "Host (Driver Allocated)", "Device", "Shared".
enum class ViewMemoryType : std::uint32_t { user = 0, host = 1, device = 2, shared = 3 };

/// From the first letter to the second: M user memory, H host memory of the driver, D device, S shared. `to_string`: "M2M" to "S2S".
enum class CopyType : std::uint32_t {
  m2m = 0,
  m2h = 1,
  m2d = 2,
  m2s = 3,
  h2m = 4,
  h2h = 5,
  h2d = 6,
  h2s = 7,
  d2m = 8,
  d2h = 9,
  d2d = 10,
  d2s = 11,
  s2m = 12,
  s2h = 13,
  s2d = 14,
  s2s = 15,
};
constexpr CopyType copy_type(ViewMemoryType source, ViewMemoryType destination) noexcept {
  return static_cast<CopyType>(4 * static_cast<std::uint32_t>(source) + static_cast<std::uint32_t>(destination));
}

/// Whose ids an external id belongs to; also the `family` of an external-correlation wire record.
enum class ExternalKind : std::uint32_t { invalid = 0, unknown = 1, custom_0 = 2, custom_1 = 3, custom_2 = 4, custom_3 = 5 };
inline constexpr std::uint32_t kExternalKinds = 5;  ///< Without `invalid`.

enum class OverheadKind : std::uint32_t { invalid = 0, unknown = 1, resource = 2, buffer_flush = 3, driver = 4, time = 5 };

enum class ApiGroup : std::uint32_t {
  reserved = 0,
  level_zero = 1,
  opencl = 2,
  sycl = 3,
  hybrid_sycl_level_zero = 4,
  hybrid_sycl_opencl = 5,
  xpu = 0x100,  ///< Ours: the calls of libxpu's runtime, for which PTI has no number.
  all = 0x7fffffff,
};

enum class ApiClass : std::uint32_t { reserved = 0, gpu_operation_core = 1, host_operation_synchronization = 2, all = 0x7fffffff };

enum class CallbackDomain : std::uint32_t {
  invalid = 0,
  context_created = 1,
  module_loaded = 2,
  module_unloaded = 3,
  operation_appended = 4,
  operation_dispatched = 5,
  operation_completed = 6,
  host_synchronization = 7,
  kernel_created = 8,
  kernel_destroyed = 9,
  driver_api = 1023,
  internal_threads = 1024,
  internal_event = 1025,
};

enum class CallbackPhase : std::uint32_t { invalid = 0, api_enter = 1, api_exit = 2, thread_start = 3, thread_end = 4, internal_event = 5 };

enum class MetricValueType : std::uint32_t {
  uint32 = 0,
  uint64 = 1,
  float32 = 2,
  float64 = 3,
  bool8 = 4,
  string = 5,
  uint8 = 6,
  uint16 = 7,
};
enum class MetricGroupType : std::uint32_t { event = 1, time = 2, trace = 4 };
enum class MetricScopeMode : std::uint32_t { invalid = 0, auto_kernel = 1, user = 2 };

XPU_EXPORT const char* to_string(ResultCode code) noexcept;
XPU_EXPORT const char* to_string(ViewKind kind) noexcept;
XPU_EXPORT const char* to_string(SynchronizationType type) noexcept;
XPU_EXPORT const char* to_string(ViewMemoryType type) noexcept;
XPU_EXPORT const char* to_string(CopyType type) noexcept;
XPU_EXPORT const char* to_string(ExternalKind kind) noexcept;
XPU_EXPORT const char* to_string(OverheadKind kind) noexcept;
XPU_EXPORT const char* to_string(ApiGroup group) noexcept;
XPU_EXPORT const char* to_string(ApiClass api_class) noexcept;
XPU_EXPORT const char* to_string(CallbackDomain domain) noexcept;
XPU_EXPORT const char* to_string(CallbackPhase phase) noexcept;
XPU_EXPORT const char* to_string(MetricValueType type) noexcept;
XPU_EXPORT const char* to_string(MetricGroupType type) noexcept;
XPU_EXPORT const char* to_string(MetricScopeMode mode) noexcept;

}  // namespace xpu::trace::view
