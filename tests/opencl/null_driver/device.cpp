#include <algorithm>
#include <array>

#include "null_driver/api.hpp"
#include "null_driver/platforms.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::settings;

namespace xpu::null_driver {
namespace {

/// Device and driver UUIDs name the driver, the platform and the device, so that two devices never share one.
std::array<cl_uchar, CL_UUID_SIZE_KHR> uuid_of(cl_device_id device, cl_uchar what) {
  std::array<cl_uchar, CL_UUID_SIZE_KHR> uuid = {'x', 'p', 'u', '-', 'n', 'u', 'l', 'l'};
  uuid[8] = what;
  uuid[12] = static_cast<cl_uchar>(device->platform->index);
  uuid[13] = device->parent != nullptr ? static_cast<cl_uchar>(device->parent->index) : static_cast<cl_uchar>(device->index);
  uuid[14] = device->parent != nullptr ? static_cast<cl_uchar>(device->index + 1) : cl_uchar{0};
  return uuid;
}

std::vector<cl_device_id> divide(cl_device_id device, const cl_device_partition_property* properties, const std::vector<cl_uint>& units) {
  std::vector<cl_device_id> parts;
  for (const cl_uint unit : units) {
    auto* part = new _cl_device_id;
    part->platform = device->platform;
    part->index = static_cast<std::uint32_t>(parts.size());
    part->parent = keep(device);
    part->compute_units = unit;
    const cl_device_partition_property* end = properties;
    while (*end != 0) ++end;
    if (properties[0] == CL_DEVICE_PARTITION_BY_COUNTS) ++end;  // the list of counts has a terminator of its own
    part->partition.assign(properties, end + 1);
    parts.push_back(part);
  }
  return parts;
}

/// Every fixed answer that is one number.
struct Number {
  cl_device_info query;
  std::size_t bytes;
  std::uint64_t value;
};

template <class T>
constexpr Number number(cl_device_info query, T value) {
  return {query, sizeof(T), static_cast<std::uint64_t>(value)};
}
constexpr Number flag(cl_device_info query, bool value = true) { return number<cl_bool>(query, value ? CL_TRUE : CL_FALSE); }
constexpr Number count(cl_device_info query, cl_uint value) { return number<cl_uint>(query, value); }
constexpr Number size(cl_device_info query, std::size_t value) { return number<std::size_t>(query, value); }
constexpr Number wide(cl_device_info query, cl_ulong value) { return number<cl_ulong>(query, value); }

constexpr cl_device_fp_config kFloats =
    CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_ROUND_TO_ZERO | CL_FP_ROUND_TO_INF | CL_FP_FMA;

constexpr Number kNumbers[] = {
    wide(CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU),
    count(CL_DEVICE_VENDOR_ID, 0x58505500),
    count(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 3),
    size(CL_DEVICE_MAX_WORK_GROUP_SIZE, kMaxWorkGroup),
    count(CL_DEVICE_MAX_CLOCK_FREQUENCY, 1000),
    count(CL_DEVICE_ADDRESS_BITS, 64),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, 1),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, 1),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, 1),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, 1),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 1),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, 1),
    count(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, 0),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, 1),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, 1),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, 1),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, 1),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, 1),
    count(CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, 0),
    wide(CL_DEVICE_MAX_MEM_ALLOC_SIZE, kMaxAllocationBytes),
    flag(CL_DEVICE_IMAGE_SUPPORT),
    count(CL_DEVICE_MAX_READ_IMAGE_ARGS, 128),
    count(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, 64),
    count(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, 64),
    size(CL_DEVICE_IMAGE2D_MAX_WIDTH, 16384),
    size(CL_DEVICE_IMAGE2D_MAX_HEIGHT, 16384),
    size(CL_DEVICE_IMAGE3D_MAX_WIDTH, 2048),
    size(CL_DEVICE_IMAGE3D_MAX_HEIGHT, 2048),
    size(CL_DEVICE_IMAGE3D_MAX_DEPTH, 2048),
    size(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 65536),
    size(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, 2048),
    count(CL_DEVICE_MAX_SAMPLERS, 16),
    count(CL_DEVICE_IMAGE_PITCH_ALIGNMENT, 1),
    count(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, 1),
    count(CL_DEVICE_MAX_PIPE_ARGS, 16),
    count(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, 1),
    count(CL_DEVICE_PIPE_MAX_PACKET_SIZE, 1024),
    size(CL_DEVICE_MAX_PARAMETER_SIZE, 4096),
    count(CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024),
    count(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, 128),
    number<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG, kFloats),
    number<cl_device_fp_config>(CL_DEVICE_DOUBLE_FP_CONFIG, kFloats),
    count(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, CL_READ_WRITE_CACHE),
    count(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 64),
    wide(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 1 << 20),
    wide(CL_DEVICE_GLOBAL_MEM_SIZE, kGlobalMemoryBytes),
    wide(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 64 << 10),
    count(CL_DEVICE_MAX_CONSTANT_ARGS, 8),
    size(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, 64 << 10),
    size(CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, 64 << 10),
    count(CL_DEVICE_LOCAL_MEM_TYPE, CL_LOCAL),
    wide(CL_DEVICE_LOCAL_MEM_SIZE, kLocalMemoryBytes),
    flag(CL_DEVICE_ERROR_CORRECTION_SUPPORT, false),
    flag(CL_DEVICE_HOST_UNIFIED_MEMORY),
    flag(CL_DEVICE_ENDIAN_LITTLE),
    flag(CL_DEVICE_AVAILABLE),
    flag(CL_DEVICE_COMPILER_AVAILABLE),
    flag(CL_DEVICE_LINKER_AVAILABLE),
    wide(CL_DEVICE_EXECUTION_CAPABILITIES, CL_EXEC_KERNEL | CL_EXEC_NATIVE_KERNEL),
    wide(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, kHostQueueProperties),
    wide(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
    count(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, 16 << 10),
    count(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, kMaxDeviceQueueBytes),
    count(CL_DEVICE_MAX_ON_DEVICE_QUEUES, 1),
    count(CL_DEVICE_MAX_ON_DEVICE_EVENTS, 1024),
    size(CL_DEVICE_PRINTF_BUFFER_SIZE, 1 << 20),
    flag(CL_DEVICE_PREFERRED_INTEROP_USER_SYNC),
    count(CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 16),
    wide(CL_DEVICE_PARTITION_AFFINITY_DOMAIN, 0),
    wide(CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER),
    count(CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, 0),
    count(CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, 0),
    count(CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, 0),
    count(CL_DEVICE_MAX_NUM_SUB_GROUPS, kMaxWorkGroup / kSubGroupSize),
    flag(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS),
    number<cl_version>(CL_DEVICE_NUMERIC_VERSION, CL_MAKE_VERSION(3, 0, 0)),
    wide(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP),
    wide(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES,
         CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP),
    flag(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT),
    flag(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT),
    flag(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT),
    wide(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, CL_DEVICE_QUEUE_SUPPORTED | CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT),
    flag(CL_DEVICE_PIPE_SUPPORT),
    size(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, kSubGroupSize),
    flag(CL_DEVICE_LUID_VALID_KHR, false),
};

struct Text {
  cl_device_info query;
  std::string_view value;
};
constexpr Text kTexts[] = {
    {CL_DEVICE_VENDOR, "libxpu tests"},
    {CL_DRIVER_VERSION, "1.0"},
    {CL_DEVICE_PROFILE, "FULL_PROFILE"},
    {CL_DEVICE_VERSION, "OpenCL 3.0 xpu-null"},
    {CL_DEVICE_OPENCL_C_VERSION, "OpenCL C 1.2 xpu-null"},
    {CL_DEVICE_BUILT_IN_KERNELS, "null_built_in"},
    {CL_DEVICE_IL_VERSION, "SPIR-V_1.0"},
    {CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, ""},
    {CL_DEVICE_EXTENSIONS,
     "cl_khr_icd cl_khr_fp64 cl_khr_create_command_queue cl_khr_device_uuid cl_khr_pci_bus_info cl_khr_priority_hints "
     "cl_khr_throttle_hints "
     "cl_khr_subgroups cl_khr_il_program"},
};

std::string name_of(cl_device_id device) {
  const cl_device_id root = device->parent != nullptr ? device->parent : device;
  std::string name = "xpu null device";
  if (settings.device_count > 1) name += " " + std::to_string(root->index);
  if (device->parent != nullptr) name += " part " + std::to_string(device->index);
  return name;
}

/// The queries whose answer depends on the device, or is no single number.
cl_int answer_special(cl_device_id device, cl_device_info query, std::size_t room, void* value, std::size_t* size_ret) {
  switch (query) {
    case CL_DEVICE_NAME: return answer_text(name_of(device), room, value, size_ret);
    case CL_DEVICE_PLATFORM: return answer<cl_platform_id>(device->platform, room, value, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return answer<cl_uint>(device->compute_units, room, value, size_ret);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION: return answer<std::size_t>(settings.clock.tick_ns, room, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE: return answer<cl_device_id>(device->parent, room, value, size_ret);
    case CL_DEVICE_REFERENCE_COUNT:
      return answer<cl_uint>(device->parent != nullptr ? device->reference_count() : 1, room, value, size_ret);
    case CL_DEVICE_PARTITION_TYPE: return answer_list(device->partition, room, value, size_ret);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
      return answer<std::array<std::size_t, 3>>({kMaxWorkGroup, kMaxWorkGroup, kMaxWorkGroup}, room, value, size_ret);
    case CL_DEVICE_PARTITION_PROPERTIES:
      return answer<std::array<cl_device_partition_property, 2>>({CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS}, room, value,
                                                                 size_ret);
    case CL_DEVICE_UUID_KHR: return answer<std::array<cl_uchar, CL_UUID_SIZE_KHR>>(uuid_of(device, 'd'), room, value, size_ret);
    case CL_DRIVER_UUID_KHR: {
      auto uuid = uuid_of(device, 'r');
      uuid[13] = uuid[14] = 0;
      return answer<std::array<cl_uchar, CL_UUID_SIZE_KHR>>(uuid, room, value, size_ret);
    }
    case CL_DEVICE_PCI_BUS_INFO_KHR: {
      const cl_device_id root = device->parent != nullptr ? device->parent : device;
      return answer<cl_device_pci_bus_info_khr>({0, device->platform->index + 1, root->index, 0}, room, value, size_ret);
    }
    case CL_DEVICE_ILS_WITH_VERSION: return answer<cl_name_version>({CL_MAKE_VERSION(1, 0, 0), "SPIR-V"}, room, value, size_ret);
    case CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION:
      return answer<cl_name_version>({CL_MAKE_VERSION(1, 0, 0), "null_built_in"}, room, value, size_ret);
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS: return answer<cl_name_version>({CL_MAKE_VERSION(1, 2, 0), "OpenCL C"}, room, value, size_ret);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION: return answer<cl_name_version>({CL_MAKE_VERSION(1, 0, 0), "cl_khr_icd"}, room, value, size_ret);
    case CL_DEVICE_OPENCL_C_FEATURES: return answer_bytes(nullptr, 0, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

}  // namespace

void destroy(cl_device_id device) {
  if (device->parent != nullptr) let_go(device->parent);
  delete device;
}

}  // namespace xpu::null_driver

cl_int Api::clGetDeviceInfo(cl_device_id device, cl_device_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(device)) return CL_INVALID_DEVICE;
  for (const auto& entry : xpu::null_driver::kNumbers) {
    // Little endian: the first bytes of the wide value are the narrow one.
    if (entry.query == query) return xpu::null_driver::answer_bytes(&entry.value, entry.bytes, room, value, size_ret);
  }
  for (const auto& entry : xpu::null_driver::kTexts) {
    if (entry.query == query) return xpu::null_driver::answer_text(entry.value, room, value, size_ret);
  }
  return xpu::null_driver::answer_special(device, query, room, value, size_ret);
}

cl_int Api::clCreateSubDevices(cl_device_id device, const cl_device_partition_property* properties, cl_uint entries, cl_device_id* list,
                               cl_uint* count) {
  if (!is_valid(device)) return CL_INVALID_DEVICE;
  if (properties == nullptr || (list == nullptr && count == nullptr) || (list != nullptr && entries == 0)) return CL_INVALID_VALUE;
  std::vector<cl_uint> units;
  if (properties[0] == CL_DEVICE_PARTITION_EQUALLY) {
    const auto each = static_cast<cl_uint>(properties[1]);
    if (each == 0 || properties[2] != 0) return CL_INVALID_VALUE;
    units.assign(device->compute_units / each, each);
  } else if (properties[0] == CL_DEVICE_PARTITION_BY_COUNTS) {
    cl_uint sum = 0;
    for (const auto* next = properties + 1; *next != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; ++next) {
      units.push_back(static_cast<cl_uint>(*next));
      sum += units.back();
    }
    if (sum > device->compute_units) return CL_INVALID_DEVICE_PARTITION_COUNT;
  } else {
    return CL_INVALID_VALUE;
  }
  if (units.empty()) return CL_DEVICE_PARTITION_FAILED;
  if (list != nullptr) {
    if (entries < units.size()) return CL_INVALID_VALUE;
    const auto parts = xpu::null_driver::divide(device, properties, units);
    std::copy(parts.begin(), parts.end(), list);
  }
  if (count != nullptr) *count = static_cast<cl_uint>(units.size());
  return CL_SUCCESS;
}

cl_int Api::clRetainDevice(cl_device_id device) {
  if (!is_valid(device)) return CL_INVALID_DEVICE;
  if (device->parent != nullptr) xpu::null_driver::retain(device);
  return CL_SUCCESS;
}

cl_int Api::clReleaseDevice(cl_device_id device) {
  if (!is_valid(device)) return CL_INVALID_DEVICE;
  if (device->parent != nullptr) xpu::null_driver::release(device);
  return CL_SUCCESS;
}

cl_int Api::clRetainDeviceEXT(cl_device_id device) { return clRetainDevice(device); }
cl_int Api::clReleaseDeviceEXT(cl_device_id device) { return clReleaseDevice(device); }

namespace {

std::atomic<unsigned> timer_readings{0};

}  // namespace

cl_int Api::clGetDeviceAndHostTimer(cl_device_id device, cl_ulong* device_time, cl_ulong* host_time) {
  if (!is_valid(device)) return CL_INVALID_DEVICE;
  if (device_time == nullptr || host_time == nullptr) return CL_INVALID_VALUE;
  if (settings.faults.no_timer) return CL_INVALID_OPERATION;
  xpu::null_driver::hang_in_child();
  // The reading falls at the start of the delay, then at a quarter of it, …, at its end, and again: no fixed place in the caller's bracket
  // is right.
  const std::uint64_t quarters = timer_readings.fetch_add(1, std::memory_order_relaxed) % 5;
  const std::uint64_t before_ns = settings.timer_bracket_ns * quarters / 4;
  if (before_ns != 0) xpu::null_driver::spin_for(before_ns);
  const std::uint64_t now_ns = xpu::null_driver::host_now_ns();
  *device_time = xpu::null_driver::device_time(now_ns);
  *host_time = now_ns;
  if (before_ns < settings.timer_bracket_ns) xpu::null_driver::spin_for(settings.timer_bracket_ns - before_ns);
  return CL_SUCCESS;
}

cl_int Api::clGetHostTimer(cl_device_id device, cl_ulong* host_time) {
  if (!is_valid(device)) return CL_INVALID_DEVICE;
  if (host_time == nullptr) return CL_INVALID_VALUE;
  if (settings.faults.no_timer) return CL_INVALID_OPERATION;
  *host_time = xpu::null_driver::host_now_ns();
  return CL_SUCCESS;
}
