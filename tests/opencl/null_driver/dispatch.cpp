#include <pthread.h>
#include <cstdlib>
#include <cstring>

#include "null_driver/api.hpp"
#include "null_driver/call_counts.hpp"
#include "null_driver/callbacks.hpp"
#include "null_driver/platforms.hpp"
#include "null_driver/timeline.hpp"

#define XPU_NULL_EXPORT extern "C" __attribute__((visibility("default")))

namespace xpu::null_driver {
namespace {

/// Calls `function` behind the counter of `entry`; the signature follows from the function.
template <Entry entry, auto function>
struct Counted;

template <Entry entry, class Result, class... Arguments, Result (*function)(Arguments...)>
struct Counted<entry, function> {
  static Result call(Arguments... arguments) {
    count_call(entry);
    return function(arguments...);
  }
};

constexpr cl_icd_dispatch plain_table = [] {
  cl_icd_dispatch table{};
#define XPU_CL_ENTRY(name) table.name = &Api::name;
#include "core_entries.inc"
#define XPU_CL_ENTRY(name) table.name = &Api::name;
#include "null_driver/extension_entries.inc"
  return table;
}();

constexpr cl_icd_dispatch counting_table = [] {
  cl_icd_dispatch table{};
#define XPU_CL_ENTRY(name) table.name = &Counted<Entry::name, &Api::name>::call;
#include "core_entries.inc"
#define XPU_CL_ENTRY(name) table.name = &Counted<Entry::name, &Api::name>::call;
#include "null_driver/extension_entries.inc"
  return table;
}();

/// The environment is read here once more, because other files' variables may not be initialised yet.
bool counts_are_wanted() {
  const char* path = std::getenv("XPU_NULL_CALLS");
  return path != nullptr && *path != '\0';
}

void before_fork() {
  lock_gates_for_fork();
  lock_callbacks_for_fork();
}
void after_fork_in_parent() {
  unlock_callbacks_after_fork(false);
  unlock_gates_after_fork(false);
}
void after_fork_in_child() {
  ++fork_generation;
  unlock_callbacks_after_fork(true);
  unlock_gates_after_fork(true);
  reset_counts_in_child();
}

__attribute__((constructor)) void watch_forks() { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

__attribute__((destructor)) void finish() {
  stop_callbacks();
  write_call_counts();
}

/// The extension of this driver for tests: how many driver calls were made so far, by the calling thread or by the whole process.
cl_ulong clNullCallCountXPU(cl_bool this_thread_only) { return call_count(this_thread_only != CL_FALSE); }

/// The host time at which the fault step=NS@COUNT moved the device clock; ~0 before.
cl_ulong clNullStepHostTimeXPU() { return step_host_time(); }

void* extension_function(const char* name) {
  if (name == nullptr) return nullptr;
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return reinterpret_cast<void*>(&icd_platform_ids);
  // ocl-icd asks for this core function by name before it has a dispatch table.
  if (std::strcmp(name, "clGetPlatformInfo") == 0) return reinterpret_cast<void*>(dispatch_table->clGetPlatformInfo);
  if (std::strcmp(name, "clCreateCommandQueueWithPropertiesKHR") == 0) {
    constexpr auto plain = &Api::clCreateCommandQueueWithProperties;
    constexpr auto counted = &Counted<Entry::clCreateCommandQueueWithPropertiesKHR, plain>::call;
    return counting_calls ? reinterpret_cast<void*>(counted) : reinterpret_cast<void*>(plain);
  }
  if (std::strcmp(name, "clGetKernelSubGroupInfoKHR") == 0) return reinterpret_cast<void*>(dispatch_table->clGetKernelSubGroupInfoKHR);
  if (std::strcmp(name, "clNullCallCountXPU") == 0) return counting_calls ? reinterpret_cast<void*>(&clNullCallCountXPU) : nullptr;
  if (std::strcmp(name, "clNullStepHostTimeXPU") == 0) return reinterpret_cast<void*>(&clNullStepHostTimeXPU);
  return nullptr;
}

}  // namespace

const bool counting_calls = counts_are_wanted();
const cl_icd_dispatch* const dispatch_table = counting_calls ? &counting_table : &plain_table;

Object::Object(Kind kind_of_object) noexcept : dispatch(dispatch_table), kind(kind_of_object) {}

void* Api::clGetExtensionFunctionAddress(const char* name) { return extension_function(name); }

void* Api::clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char* name) {
  return is_valid(platform) ? extension_function(name) : nullptr;
}

}  // namespace xpu::null_driver

XPU_NULL_EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint entries, cl_platform_id* platforms, cl_uint* count) {
  return xpu::null_driver::icd_platform_ids(entries, platforms, count);
}

XPU_NULL_EXPORT void* clGetExtensionFunctionAddress(const char* name) { return xpu::null_driver::Api::clGetExtensionFunctionAddress(name); }

XPU_NULL_EXPORT cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info query, size_t room, void* value, size_t* size_ret) {
  return xpu::null_driver::Api::clGetPlatformInfo(platform, query, room, value, size_ret);
}
