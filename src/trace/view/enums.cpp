#include "xpu/trace/view/enums.hpp"

namespace xpu::trace::view {

const char* to_string(ResultCode code) noexcept {
  switch (code) {
    case ResultCode::success: return "PTI_SUCCESS";
    case ResultCode::end_of_buffer: return "PTI_STATUS_END_OF_BUFFER";
    case ResultCode::not_implemented: return "PTI_ERROR_NOT_IMPLEMENTED";
    case ResultCode::bad_argument: return "PTI_ERROR_BAD_ARGUMENT";
    case ResultCode::no_callbacks_set: return "PTI_ERROR_NO_CALLBACKS_SET";
    case ResultCode::external_id_queue_empty: return "PTI_ERROR_EXTERNAL_ID_QUEUE_EMPTY";
    case ResultCode::bad_timestamp: return "PTI_ERROR_BAD_TIMESTAMP";
    case ResultCode::bad_api_id: return "PTI_ERROR_BAD_API_ID";
    case ResultCode::no_gpu_views_enabled: return "PTI_ERROR_NO_GPU_VIEWS_ENABLED";
    case ResultCode::driver: return "PTI_ERROR_DRIVER";
    case ResultCode::tracing_not_initialized: return "PTI_ERROR_TRACING_NOT_INITIALIZED";
    case ResultCode::local_profiling_not_supported: return "PTI_ERROR_L0_LOCAL_PROFILING_NOT_SUPPORTED";
    case ResultCode::metrics_collection_not_enabled: return "PTI_ERROR_METRICS_COLLECTION_NOT_ENABLED";
    case ResultCode::metrics_collection_not_disabled: return "PTI_ERROR_METRICS_COLLECTION_NOT_DISABLED";
    case ResultCode::metrics_collection_not_paused: return "PTI_ERROR_METRICS_COLLECTION_NOT_PAUSED";
    case ResultCode::metrics_collection_already_paused: return "PTI_ERROR_METRICS_COLLECTION_ALREADY_PAUSED";
    case ResultCode::metrics_collection_already_enabled: return "PTI_ERROR_METRICS_COLLECTION_ALREADY_ENABLED";
    case ResultCode::metrics_bad_collection_configuration: return "PTI_ERROR_METRICS_BAD_COLLECTION_CONFIGURATION";
    case ResultCode::metrics_no_data_collected: return "PTI_ERROR_METRICS_NO_DATA_COLLECTED";
    case ResultCode::scope_metric_not_found: return "PTI_ERROR_METRICS_SCOPE_METRIC_NOT_FOUND";
    case ResultCode::scope_not_a_single_group: return "PTI_ERROR_METRICS_SCOPE_NOT_A_SINGLE_GROUP";
    case ResultCode::scope_out_of_memory: return "PTI_ERROR_METRICS_SCOPE_OUT_OF_MEMORY";
    case ResultCode::scope_collection_buffer_too_small: return "PTI_ERROR_METRICS_SCOPE_COLLECTION_BUFFER_TOO_SMALL";
    case ResultCode::scope_insufficient_buffer: return "PTI_ERROR_METRICS_SCOPE_INSUFFICIENT_BUFFER";
    case ResultCode::scope_invalid_collection_buffer: return "PTI_ERROR_METRICS_SCOPE_INVALID_COLLECTION_BUFFER";
    case ResultCode::scope_partial_buffer: return "PTI_WARN_METRICS_SCOPE_PARTIAL_BUFFER";
    case ResultCode::scope_buffer_not_finalized: return "PTI_WARN_BUFFER_NOT_FINALIZED";
    case ResultCode::scope_device_type_not_uniform: return "PTI_ERROR_METRICS_SCOPE_DEVICE_TYPE_NOT_UNIFORM";
    case ResultCode::internal: return "PTI_ERROR_INTERNAL";
    case ResultCode::sampling_already_enabled: return "PTI_ERROR_PC_SAMPLING_ALREADY_ENABLED";
    case ResultCode::sampling_not_configured: return "PTI_ERROR_PC_SAMPLING_NOT_CONFIGURED";
    case ResultCode::sampling_already_configured: return "PTI_ERROR_PC_SAMPLING_ALREADY_CONFIGURED";
    case ResultCode::sampling_already_started: return "PTI_ERROR_PC_SAMPLING_ALREADY_STARTED";
    case ResultCode::sampling_not_started: return "PTI_ERROR_PC_SAMPLING_NOT_STARTED";
    case ResultCode::sampling_already_stopped: return "PTI_ERROR_PC_SAMPLING_ALREADY_STOPPED";
    case ResultCode::sampling_not_stopped: return "PTI_ERROR_PC_SAMPLING_NOT_STOPPED";
    case ResultCode::sampling_unsupported: return "PTI_ERROR_PC_SAMPLING_UNSUPPORTED";
  }
  return "INVALID";
}

const char* to_string(ViewKind kind) noexcept {
  switch (kind) {
    case ViewKind::invalid: return "INVALID";
    case ViewKind::kernel: return "kernel";
    case ViewKind::cpu_kernel: return "cpu_kernel";
    case ViewKind::driver_api: return "driver_api";
    case ViewKind::reserved: return "reserved";
    case ViewKind::overhead: return "overhead";
    case ViewKind::runtime_api: return "runtime_api";
    case ViewKind::external_correlation: return "external_correlation";
    case ViewKind::memory_copy: return "memory_copy";
    case ViewKind::memory_fill: return "memory_fill";
    case ViewKind::peer_copy: return "peer_copy";
    case ViewKind::synchronization: return "synchronization";
    case ViewKind::communication: return "communication";
  }
  return "INVALID";
}

const char* to_string(SynchronizationType type) noexcept {
  switch (type) {
    case SynchronizationType::unknown: return "unknown";
    case SynchronizationType::barrier_execution: return "barrier_execution";
    case SynchronizationType::barrier_memory: return "barrier_memory";
    case SynchronizationType::host_fence: return "host_fence";
    case SynchronizationType::host_event: return "host_event";
    case SynchronizationType::host_command_list: return "host_command_list";
    case SynchronizationType::host_command_queue: return "host_command_queue";
    case SynchronizationType::host_device: return "host_device";
  }
  return "INVALID";
}

const char* to_string(ViewMemoryType type) noexcept {
  switch (type) {
    case ViewMemoryType::user: return "Host (User Allocated)";
    case ViewMemoryType::host: return "Host (Driver Allocated)";
    case ViewMemoryType::device: return "Device";
    case ViewMemoryType::shared: return "Shared";
  }
  return "INVALID";
}

const char* to_string(CopyType type) noexcept {
  switch (type) {
    case CopyType::m2m: return "M2M";
    case CopyType::m2h: return "M2H";
    case CopyType::m2d: return "M2D";
    case CopyType::m2s: return "M2S";
    case CopyType::h2m: return "H2M";
    case CopyType::h2h: return "H2H";
    case CopyType::h2d: return "H2D";
    case CopyType::h2s: return "H2S";
    case CopyType::d2m: return "D2M";
    case CopyType::d2h: return "D2H";
    case CopyType::d2d: return "D2D";
    case CopyType::d2s: return "D2S";
    case CopyType::s2m: return "S2M";
    case CopyType::s2h: return "S2H";
    case CopyType::s2d: return "S2D";
    case CopyType::s2s: return "S2S";
  }
  return "INVALID";
}

const char* to_string(ExternalKind kind) noexcept {
  switch (kind) {
    case ExternalKind::invalid: return "INVALID";
    case ExternalKind::unknown: return "unknown";
    case ExternalKind::custom_0: return "custom_0";
    case ExternalKind::custom_1: return "custom_1";
    case ExternalKind::custom_2: return "custom_2";
    case ExternalKind::custom_3: return "custom_3";
  }
  return "INVALID";
}

const char* to_string(OverheadKind kind) noexcept {
  switch (kind) {
    case OverheadKind::invalid: return "INVALID";
    case OverheadKind::unknown: return "unknown";
    case OverheadKind::resource: return "resource";
    case OverheadKind::buffer_flush: return "buffer_flush";
    case OverheadKind::driver: return "driver";
    case OverheadKind::time: return "time";
  }
  return "INVALID";
}

const char* to_string(ApiGroup group) noexcept {
  switch (group) {
    case ApiGroup::reserved: return "reserved";
    case ApiGroup::level_zero: return "level_zero";
    case ApiGroup::opencl: return "opencl";
    case ApiGroup::sycl: return "sycl";
    case ApiGroup::hybrid_sycl_level_zero: return "hybrid_sycl_level_zero";
    case ApiGroup::hybrid_sycl_opencl: return "hybrid_sycl_opencl";
    case ApiGroup::xpu: return "xpu";
    case ApiGroup::all: return "all";
  }
  return "INVALID";
}

const char* to_string(ApiClass api_class) noexcept {
  switch (api_class) {
    case ApiClass::reserved: return "reserved";
    case ApiClass::gpu_operation_core: return "gpu_operation_core";
    case ApiClass::host_operation_synchronization: return "host_operation_synchronization";
    case ApiClass::all: return "all";
  }
  return "INVALID";
}

const char* to_string(CallbackDomain domain) noexcept {
  switch (domain) {
    case CallbackDomain::invalid: return "INVALID";
    case CallbackDomain::context_created: return "context_created";
    case CallbackDomain::module_loaded: return "module_loaded";
    case CallbackDomain::module_unloaded: return "module_unloaded";
    case CallbackDomain::operation_appended: return "operation_appended";
    case CallbackDomain::operation_dispatched: return "operation_dispatched";
    case CallbackDomain::operation_completed: return "operation_completed";
    case CallbackDomain::host_synchronization: return "host_synchronization";
    case CallbackDomain::kernel_created: return "kernel_created";
    case CallbackDomain::kernel_destroyed: return "kernel_destroyed";
    case CallbackDomain::driver_api: return "driver_api";
    case CallbackDomain::internal_threads: return "internal_threads";
    case CallbackDomain::internal_event: return "internal_event";
  }
  return "INVALID";
}

const char* to_string(CallbackPhase phase) noexcept {
  switch (phase) {
    case CallbackPhase::invalid: return "INVALID";
    case CallbackPhase::api_enter: return "api_enter";
    case CallbackPhase::api_exit: return "api_exit";
    case CallbackPhase::thread_start: return "thread_start";
    case CallbackPhase::thread_end: return "thread_end";
    case CallbackPhase::internal_event: return "internal_event";
  }
  return "INVALID";
}

const char* to_string(MetricValueType type) noexcept {
  switch (type) {
    case MetricValueType::uint32: return "uint32";
    case MetricValueType::uint64: return "uint64";
    case MetricValueType::float32: return "float32";
    case MetricValueType::float64: return "float64";
    case MetricValueType::bool8: return "bool8";
    case MetricValueType::string: return "string";
    case MetricValueType::uint8: return "uint8";
    case MetricValueType::uint16: return "uint16";
  }
  return "INVALID";
}

const char* to_string(MetricGroupType type) noexcept {
  switch (type) {
    case MetricGroupType::event: return "event";
    case MetricGroupType::time: return "time";
    case MetricGroupType::trace: return "trace";
  }
  return "INVALID";
}

const char* to_string(MetricScopeMode mode) noexcept {
  switch (mode) {
    case MetricScopeMode::invalid: return "INVALID";
    case MetricScopeMode::auto_kernel: return "auto_kernel";
    case MetricScopeMode::user: return "user";
  }
  return "INVALID";
}

}  // namespace xpu::trace::view
