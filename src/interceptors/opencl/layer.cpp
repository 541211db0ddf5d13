#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/probe.hpp"
#include "base/process.hpp"
#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/lifecycle.hpp"
#include "interceptors/opencl/opencl_headers.hpp"
#include "interceptors/opencl/publish.hpp"
#include "interceptors/opencl/wrappers.hpp"
#include "xpu/base/version.hpp"

/// The four functions that loaders look for. ocl-icd and the Khronos loader both drop a layer whose initialisation fails, so that a program
/// which is not recorded runs without us.
namespace xpu::interceptors::opencl {

constinit LayerState g_layer;

namespace {

constexpr cl_uint kEntries = sizeof(cl_icd_dispatch) / sizeof(void*);

constinit base::Mutex g_init_mutex;
constinit bool g_is_initialised XPU_GUARDED_BY(g_init_mutex) = false;
constinit cl_icd_dispatch g_first_table{};

/// Keeps the object that `address` lies in mapped until the process ends: programs unload the loader before exit, and what drains at exit
/// would then call into nothing.
void pin_object_of(const void* address, const void** last_base) noexcept {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr || info.dli_fbase == *last_base) return;
  *last_base = info.dli_fbase;
  dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/// The loader, other layers between it and us, and ourselves. The handle is kept for ever, which is the point.
void pin_libraries(const cl_icd_dispatch& target_table) noexcept {
  const void* entries[kEntries];
  std::memcpy(entries, &target_table, sizeof target_table);
  const void* last_base = nullptr;
  for (const void* entry : entries) pin_object_of(entry, &last_base);
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"}) dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  pin_object_of(reinterpret_cast<const void*>(&pin_object_of), &last_base);
}

/// Whether this process is to be recorded at all.
bool is_wanted() noexcept {
  if (base::has_raised_privileges()) return false;
  if (xpu_probe_abi() != probe::kAbi) {
    XPU_LOG_ERROR("opencl",
                  "this layer speaks version {} of the probe and libxpu.so version {}: install both from one build; nothing is recorded",
                  probe::kAbi, xpu_probe_abi());
    return false;
  }
  return probe::subscriber() != nullptr;
}

cl_int initialise(cl_uint entry_count, const cl_icd_dispatch* below, cl_uint* entry_count_ret, const cl_icd_dispatch** table_ret) noexcept {
  if (below == nullptr || entry_count_ret == nullptr || table_ret == nullptr) return CL_INVALID_VALUE;
  if (!is_wanted()) return CL_INVALID_OPERATION;

  // A loader may know fewer entries than we do, or more: those beyond ours stay its own.
  cl_icd_dispatch target_table{};
  std::memcpy(&target_table, below, std::min(entry_count, kEntries) * sizeof(void*));
  const bool with_calls = wants(*probe::subscriber(), probe::kCalls);

  const base::MutexLock lock(g_init_mutex);
  // The loader may keep the pointer.
  cl_icd_dispatch* table = g_is_initialised ? new (std::nothrow) cl_icd_dispatch : &g_first_table;
  if (table == nullptr) return CL_OUT_OF_HOST_MEMORY;
  if (!g_is_initialised) {
    g_is_initialised = true;
    g_layer.target = target_table;
    pin_libraries(target_table);
    intern_api_names();
    start_lifecycle();
    probe::register_publisher(republish_objects);
    probe::register_harvester(harvest_now);
    probe::announce_publisher(probe::kOpenClLayerPublishes);
    build_table(target_table, with_calls, *table);
  } else {
    // A second loader in the process. What it makes are objects of the same drivers, which our first target reaches as well, but what does
    // not begin with an object is its own business: it may know other platforms.
    pin_libraries(target_table);
    build_table(target_table, with_calls, *table);
    table->clGetPlatformIDs = target_table.clGetPlatformIDs;
    table->clCreateContextFromType = target_table.clCreateContextFromType;
    table->clUnloadCompiler = target_table.clUnloadCompiler;
    table->clGetExtensionFunctionAddress = target_table.clGetExtensionFunctionAddress;
  }
  *table_ret = table;
  *entry_count_ret = kEntries;
  return CL_SUCCESS;
}

cl_int answer(const void* data, std::size_t bytes, std::size_t room, void* value, std::size_t* bytes_ret) noexcept {
  if (value == nullptr && bytes_ret == nullptr) return CL_INVALID_VALUE;
  if (value != nullptr) {
    if (room < bytes) return CL_INVALID_VALUE;
    std::memcpy(value, data, bytes);
  }
  if (bytes_ret != nullptr) *bytes_ret = bytes;
  return CL_SUCCESS;
}

}  // namespace
}  // namespace xpu::interceptors::opencl

using namespace xpu::interceptors::opencl;  // NOLINT(google-build-using-namespace): only C functions follow

extern "C" {

XPU_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, std::size_t room, void* value, std::size_t* bytes_ret) {
  constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  constexpr char kName[] = "libxpu OpenCL recording layer";
  switch (name) {
    case CL_LAYER_API_VERSION: return answer(&kVersion, sizeof kVersion, room, value, bytes_ret);
    case CL_LAYER_NAME: return answer(kName, sizeof kName, room, value, bytes_ret);
    default: return CL_INVALID_VALUE;
  }
}

XPU_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entry_count, const cl_icd_dispatch* below, cl_uint* entry_count_ret,
                                          const cl_icd_dispatch** table_ret) {
  return initialise(entry_count, below, entry_count_ret, table_ret);
}

XPU_EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entry_count, const cl_icd_dispatch* below, cl_uint* entry_count_ret,
                                                        const cl_icd_dispatch** table_ret, const LayerProperties* properties) {
  static_cast<void>(properties);  // none is defined
  return initialise(entry_count, below, entry_count_ret, table_ret);
}

XPU_EXPORT cl_int CL_API_CALL clDeinitLayer() {
  shut_down();
  return CL_SUCCESS;
}

}  // extern "C"
