#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "counting_layer/counters.hpp"
#include "null_driver/opencl_headers.hpp"

#include <CL/cl_layer.h>

#define XPU_LAYER_EXPORT extern "C" __attribute__((visibility("default")))

namespace xpu::counting_layer {
namespace {

constexpr cl_uint kTableEntries = sizeof(cl_icd_dispatch) / sizeof(void*);

cl_icd_dispatch target;  // what is below us: the next layer or the driver
cl_icd_dispatch table;   // what we hand up

/// Calls the entry point `member` of the target and counts what came of it, after it returned. A null queue is counted with the rest: the
/// call was refused.
template <auto member, Entry entry>
struct Counted;

template <class... Arguments, cl_int (CL_API_CALL* cl_icd_dispatch::*member)(cl_command_queue, Arguments...), Entry entry>
struct Counted<member, entry> {
  static cl_int CL_API_CALL call(cl_command_queue queue, Arguments... arguments) {
    const cl_int result = (target.*member)(queue, arguments...);
    count(entry, queue, result == CL_SUCCESS);
    return result;
  }
};

/// Map calls return the pointer and put their result where the last argument points, if that is not null.
template <class... Arguments, void* (CL_API_CALL* cl_icd_dispatch::*member)(cl_command_queue, Arguments...), Entry entry>
struct Counted<member, entry> {
  static void* CL_API_CALL call(cl_command_queue queue, Arguments... arguments) {
    std::tuple<Arguments...> all(arguments...);
    cl_int unwanted = CL_SUCCESS;
    cl_int*& error = std::get<sizeof...(Arguments) - 1>(all);
    if (error == nullptr) error = &unwanted;
    void* pointer = std::apply([&](auto... each) { return (target.*member)(queue, each...); }, all);
    count(entry, queue, *error == CL_SUCCESS);
    return pointer;
  }
};

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* error) {
  cl_command_queue queue = target.clCreateCommandQueue(context, device, properties, error);
  if (queue != nullptr) add_queue(queue);
  return queue;
}

cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device, const cl_queue_properties* properties,
                                                          cl_int* error) {
  cl_command_queue queue = target.clCreateCommandQueueWithProperties(context, device, properties, error);
  if (queue != nullptr) add_queue(queue);
  return queue;
}

cl_int initialize(cl_uint entries, const cl_icd_dispatch* target_table, cl_uint* entries_ret, const cl_icd_dispatch** table_ret) {
  if (target_table == nullptr || entries_ret == nullptr || table_ret == nullptr) return CL_INVALID_VALUE;
  std::memcpy(&target, target_table, std::min(entries, kTableEntries) * sizeof(void*));  // a loader may know fewer entries than we do
  table = target;
#define XPU_COUNTED_ENTRY(name) \
  if (target.name != nullptr) table.name = &Counted<&cl_icd_dispatch::name, Entry::name>::call;
#include "counting_layer/submitting_entries.inc"
  if (target.clCreateCommandQueue != nullptr) table.clCreateCommandQueue = &create_queue;
  if (target.clCreateCommandQueueWithProperties != nullptr) table.clCreateCommandQueueWithProperties = &create_queue_with_properties;
  *entries_ret = kTableEntries;
  *table_ret = &table;
  static const bool once = [] {
    open_counts();
    // A child's counts are its own; the parent's file stays the parent's.
    pthread_atfork(nullptr, nullptr, &open_counts);
    return true;
  }();
  return once ? CL_SUCCESS : CL_INVALID_OPERATION;
}

__attribute__((destructor)) void finish() { write_json(); }

}  // namespace
}  // namespace xpu::counting_layer

XPU_LAYER_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info query, size_t room, void* value, size_t* size_ret) {
  constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  constexpr char kName[] = "xpu test counting layer";
  const void* answer = query == CL_LAYER_API_VERSION ? static_cast<const void*>(&kVersion) : kName;
  const size_t bytes = query == CL_LAYER_API_VERSION ? sizeof kVersion : sizeof kName;
  if (query != CL_LAYER_API_VERSION && query != CL_LAYER_NAME) return CL_INVALID_VALUE;
  if (size_ret != nullptr) *size_ret = bytes;
  if (value == nullptr) return CL_SUCCESS;
  if (room < bytes) return CL_INVALID_VALUE;
  std::memcpy(value, answer, bytes);
  return CL_SUCCESS;
}

XPU_LAYER_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                                                const cl_icd_dispatch** table_ret) {
  return xpu::counting_layer::initialize(entries, target, entries_ret, table_ret);
}

// Declared here because Debian 12's headers know the first layer interface only.
XPU_LAYER_EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                                                              const cl_icd_dispatch** table_ret, const cl_properties*) {
  return xpu::counting_layer::initialize(entries, target, entries_ret, table_ret);
}

XPU_LAYER_EXPORT cl_int CL_API_CALL clDeinitLayer() { return CL_SUCCESS; }
