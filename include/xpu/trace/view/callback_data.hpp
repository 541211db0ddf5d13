#pragma once

#include <cstddef>
#include <cstdint>

#include "xpu/trace/view/enums.hpp"

/// What PTI 1.0 hands to callbacks and asks of devices and metrics: layouts only, for the front end that will fill them.
namespace xpu::trace::view {

struct OperationDetails {
  std::uint32_t operation_kind;  ///< 1 kernel, 2 memory, 3 other.
  std::uint32_t padding_4;
  std::uint64_t operation_id;
  std::uint64_t kernel_handle;
  const char* name;
};

struct OperationCallbackData {
  CallbackDomain domain;
  std::uint32_t list_properties;  ///< Bits: 1 unknown, 2 immediate, 4 mutable.
  void* list_handle;
  void* queue_handle;
  void* device_handle;
  CallbackPhase phase;
  std::uint32_t return_code;
  std::uint32_t correlation;
  std::uint32_t operation_count;
  OperationDetails* operation_details;
};

struct KernelCallbackData {
  CallbackDomain domain;
  CallbackPhase phase;
  std::uint32_t return_code;
  std::uint32_t correlation;
  std::uint64_t kernel_handle;
  std::uint64_t device_kernel_handle;
  void* device_handle;
  void* module_handle;
  const char* name;
};

struct DeviceProperties {
  void* device_handle;
  std::uint8_t pci[4];
  std::uint32_t padding_12;
  const char* model_name;
  std::uint8_t uuid[16];
};

/// Values of metrics for one kernel or scope.
struct MetricScopeRecord {
  std::uint64_t kernel_id;
  void* queue_handle;
  const char* name;
  void* values;
};

struct MetricScopeMetadata {
  std::size_t struct_bytes;
  std::uint64_t metric_count;
  MetricValueType* value_types;
  const char** names;
  const char** units;
};

struct MetricScopeBuffer {
  std::size_t struct_bytes;
  void* device_handle;
  std::uint64_t scope_count;
  std::uint64_t buffer_bytes;
  std::uint64_t first_ns, last_ns;
  const char* group_name;
};

#define XPU_VIEW_AT(record, field, place) static_assert(offsetof(record, field) == place)
XPU_VIEW_AT(OperationDetails, operation_kind, 0);
XPU_VIEW_AT(OperationDetails, operation_id, 8);
XPU_VIEW_AT(OperationDetails, kernel_handle, 16);
XPU_VIEW_AT(OperationDetails, name, 24);
static_assert(sizeof(OperationDetails) == 32);

XPU_VIEW_AT(OperationCallbackData, domain, 0);
XPU_VIEW_AT(OperationCallbackData, list_properties, 4);
XPU_VIEW_AT(OperationCallbackData, list_handle, 8);
XPU_VIEW_AT(OperationCallbackData, queue_handle, 16);
XPU_VIEW_AT(OperationCallbackData, device_handle, 24);
XPU_VIEW_AT(OperationCallbackData, phase, 32);
XPU_VIEW_AT(OperationCallbackData, return_code, 36);
XPU_VIEW_AT(OperationCallbackData, correlation, 40);
XPU_VIEW_AT(OperationCallbackData, operation_count, 44);
XPU_VIEW_AT(OperationCallbackData, operation_details, 48);
static_assert(sizeof(OperationCallbackData) == 56);

XPU_VIEW_AT(KernelCallbackData, domain, 0);
XPU_VIEW_AT(KernelCallbackData, phase, 4);
XPU_VIEW_AT(KernelCallbackData, return_code, 8);
XPU_VIEW_AT(KernelCallbackData, correlation, 12);
XPU_VIEW_AT(KernelCallbackData, kernel_handle, 16);
XPU_VIEW_AT(KernelCallbackData, device_kernel_handle, 24);
XPU_VIEW_AT(KernelCallbackData, device_handle, 32);
XPU_VIEW_AT(KernelCallbackData, module_handle, 40);
XPU_VIEW_AT(KernelCallbackData, name, 48);
static_assert(sizeof(KernelCallbackData) == 56);

XPU_VIEW_AT(DeviceProperties, device_handle, 0);
XPU_VIEW_AT(DeviceProperties, pci, 8);
XPU_VIEW_AT(DeviceProperties, model_name, 16);
XPU_VIEW_AT(DeviceProperties, uuid, 24);
static_assert(sizeof(DeviceProperties) == 40);

XPU_VIEW_AT(MetricScopeRecord, kernel_id, 0);
XPU_VIEW_AT(MetricScopeRecord, queue_handle, 8);
XPU_VIEW_AT(MetricScopeRecord, name, 16);
XPU_VIEW_AT(MetricScopeRecord, values, 24);
static_assert(sizeof(MetricScopeRecord) == 32);

XPU_VIEW_AT(MetricScopeMetadata, struct_bytes, 0);
XPU_VIEW_AT(MetricScopeMetadata, metric_count, 8);
XPU_VIEW_AT(MetricScopeMetadata, value_types, 16);
XPU_VIEW_AT(MetricScopeMetadata, names, 24);
XPU_VIEW_AT(MetricScopeMetadata, units, 32);
static_assert(sizeof(MetricScopeMetadata) == 40);

XPU_VIEW_AT(MetricScopeBuffer, struct_bytes, 0);
XPU_VIEW_AT(MetricScopeBuffer, device_handle, 8);
XPU_VIEW_AT(MetricScopeBuffer, scope_count, 16);
XPU_VIEW_AT(MetricScopeBuffer, buffer_bytes, 24);
XPU_VIEW_AT(MetricScopeBuffer, first_ns, 32);
XPU_VIEW_AT(MetricScopeBuffer, last_ns, 40);
XPU_VIEW_AT(MetricScopeBuffer, group_name, 48);
static_assert(sizeof(MetricScopeBuffer) == 56);
#undef XPU_VIEW_AT

}  // namespace xpu::trace::view
