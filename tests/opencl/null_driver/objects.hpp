#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "null_driver/opencl_headers.hpp"
#include "null_driver/settings.hpp"
#include "null_driver/source_parser.hpp"
#include "null_driver/spin_lock.hpp"

/// The objects behind the handles. OpenCL names these types; everything about them is ours.
namespace xpu::null_driver {

enum class Kind : std::uint32_t { none, platform, device, context, queue, memory, sampler, program, kernel, event };

/// What every handle points to. Loaders require the dispatch table first.
///
/// Two counts in one word: the program's (clRetain…, what CL_…_REFERENCE_COUNT answers) in the lower half, the driver's own (an event keeps
/// its queue, a queue its context) in the upper half. The object goes when both are 0, and the program never sees the driver's.
struct Object {
  const cl_icd_dispatch* dispatch;
  Kind kind;
  std::atomic<std::uint64_t> references{1};

  static constexpr std::uint64_t kOneOfDriver = std::uint64_t{1} << 32;

  explicit Object(Kind kind_of_object) noexcept;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  cl_uint reference_count() const noexcept { return static_cast<cl_uint>(references.load(std::memory_order_relaxed)); }
};

struct MemoryCallback {
  void(CL_CALLBACK* function)(cl_mem, void*);
  void* user_data;
};
struct ContextCallback {
  void(CL_CALLBACK* function)(cl_context, void*);
  void* user_data;
};
struct ProgramCallback {
  void(CL_CALLBACK* function)(cl_program, void*);
  void* user_data;
};

/// What a command does on the host when its dependencies are met; most do nothing. Owned by whoever holds the pointer.
struct HostAction {
  virtual ~HostAction() = default;
  virtual void run() = 0;
};

}  // namespace xpu::null_driver

struct _cl_platform_id : xpu::null_driver::Object {
  explicit _cl_platform_id(std::uint32_t index_of_platform);
  std::uint32_t index;
  std::string name;
  std::vector<cl_device_id> devices;
};

struct _cl_device_id : xpu::null_driver::Object {
  _cl_device_id() noexcept : Object(xpu::null_driver::Kind::device) {}
  cl_platform_id platform = nullptr;
  std::uint32_t index = 0;        // among the devices of its platform, or of its parent
  cl_device_id parent = nullptr;  // set in sub-devices, which are counted; the others live for ever
  cl_uint compute_units = 16;
  std::vector<cl_device_partition_property> partition;  // as the program gave it
  std::atomic<cl_command_queue> default_queue{nullptr};
};

struct _cl_context : xpu::null_driver::Object {
  _cl_context() noexcept : Object(xpu::null_driver::Kind::context) {}
  std::vector<cl_device_id> devices;
  std::vector<cl_context_properties> properties;
  xpu::null_driver::SpinLock lock;
  std::vector<xpu::null_driver::ContextCallback> callbacks;  // guarded by lock
};

struct _cl_command_queue : xpu::null_driver::Object {
  _cl_command_queue() noexcept : Object(xpu::null_driver::Kind::queue) {}
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  std::atomic<cl_command_queue_properties> properties{0};
  std::vector<cl_queue_properties> properties_array;  // as the program gave it, terminator included; empty when it gave none
  cl_uint device_queue_size = 0;                      // of a queue on the device, which takes no commands from the host

  xpu::null_driver::SpinLock lock;
  std::uint64_t last_end_ns = 0;     // guarded by lock: when the last of the commands with known times ends
  std::uint64_t barrier_end_ns = 0;  // guarded by lock: out of order, nothing behind the last barrier starts earlier
  std::uint32_t gated = 0;           // guarded by lock: commands that wait for an event without a known end
};

struct _cl_mem : xpu::null_driver::Object {
  _cl_mem() noexcept : Object(xpu::null_driver::Kind::memory) {}
  cl_context context = nullptr;
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  cl_mem_flags flags = 0;
  std::size_t size_bytes = 0;
  void* host_pointer = nullptr;  // what the program passed, only to be answered
  std::byte* bytes = nullptr;    // what map calls hand out
  bool owns_bytes = false;
  cl_mem parent = nullptr;  // of a sub-buffer, or the buffer of an image
  std::size_t offset_bytes = 0;
  std::vector<cl_mem_properties> properties;
  std::atomic<cl_uint> map_count{0};
  cl_image_format format{};
  cl_image_desc description{};  // pitches filled in
  std::size_t element_bytes = 0;
  cl_uint pipe_packet_bytes = 0;
  cl_uint pipe_packets = 0;
  xpu::null_driver::SpinLock lock;
  std::vector<xpu::null_driver::MemoryCallback> callbacks;  // guarded by lock
};

struct _cl_sampler : xpu::null_driver::Object {
  _cl_sampler() noexcept : Object(xpu::null_driver::Kind::sampler) {}
  cl_context context = nullptr;
  cl_bool normalized = CL_TRUE;
  cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
  cl_filter_mode filter = CL_FILTER_NEAREST;
  std::vector<cl_sampler_properties> properties;
};

struct _cl_program : xpu::null_driver::Object {
  _cl_program() noexcept : Object(xpu::null_driver::Kind::program) {}
  cl_context context = nullptr;
  std::string source;
  std::string intermediate_language;
  std::vector<xpu::null_driver::KernelSource> kernels;  // known once built
  std::string options;
  std::string log;
  cl_build_status status = CL_BUILD_NONE;
  cl_program_binary_type binary_type = CL_PROGRAM_BINARY_TYPE_NONE;
  bool from_binary = false;
  std::vector<xpu::null_driver::ProgramCallback> callbacks;
};

struct _cl_kernel : xpu::null_driver::Object {
  _cl_kernel() noexcept : Object(xpu::null_driver::Kind::kernel) {}
  cl_context context = nullptr;
  cl_program program = nullptr;
  xpu::null_driver::KernelSource source;
  // What clSetKernelArg needs, without a look at `source`: launches are measured.
  std::uint32_t argument_count = 0;
  std::uint64_t local_arguments = 0;       // one bit per argument in local memory
  std::uint64_t missing_arguments = 0;     // one bit per argument that was never set
  std::vector<std::uint64_t> local_bytes;  // per argument: the size that was set for local memory
};

struct _cl_event : xpu::null_driver::Object {
  _cl_event() noexcept : Object(xpu::null_driver::Kind::event) {}

  // From a pool of the thread, as real drivers have one: a tracer's cost is measured against this driver, and a heap that is asked for one
  // event at a time would be most of what is seen.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* event) noexcept;

  /// The end of a command that waits, directly or not, for a user event.
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  cl_command_queue queue = nullptr;  // null in user events
  cl_context context = nullptr;
  cl_command_type type = 0;
  bool profiled = false;
  bool late = false;
  std::atomic<bool> seen_complete{false};  // spares clock reads
  // Host times. All but `end_ns` are written before `end_ns` becomes known.
  std::uint64_t queued_ns = 0;
  std::uint64_t submit_ns = 0;
  std::uint64_t start_ns = 0;
  cl_int failure = 0;  // the negative status with which it ends, or 0
  std::atomic<std::uint64_t> end_ns{kUnknown};
};

namespace xpu::null_driver {

template <class T>
bool is_valid(T* object, Kind kind) noexcept {
  return object != nullptr && object->kind == kind;
}
inline bool is_valid(cl_platform_id object) noexcept { return is_valid(object, Kind::platform); }
inline bool is_valid(cl_device_id object) noexcept { return is_valid(object, Kind::device); }
inline bool is_valid(cl_context object) noexcept { return is_valid(object, Kind::context); }
inline bool is_valid(cl_command_queue object) noexcept { return is_valid(object, Kind::queue); }
inline bool is_valid(cl_mem object) noexcept { return is_valid(object, Kind::memory); }
inline bool is_valid(cl_sampler object) noexcept { return is_valid(object, Kind::sampler); }
inline bool is_valid(cl_program object) noexcept { return is_valid(object, Kind::program); }
inline bool is_valid(cl_kernel object) noexcept { return is_valid(object, Kind::kernel); }
inline bool is_valid(cl_event object) noexcept { return is_valid(object, Kind::event); }

/// Called when both counts are 0: gives back what the object keeps and deletes it. One per type, beside the type's entry points.
void destroy(cl_device_id device);
void destroy(cl_context context);
void destroy(cl_command_queue queue);
void destroy(cl_mem memory);
void destroy(cl_sampler sampler);
void destroy(cl_program program);
void destroy(cl_kernel kernel);
void destroy(cl_event event);

template <class T>
void retain(T* object) noexcept {
  object->references.fetch_add(1, std::memory_order_relaxed);
}
template <class T>
void release(T* object) {
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(object);
}

/// The driver's own references.
template <class T>
T* keep(T* object) noexcept {
  object->references.fetch_add(Object::kOneOfDriver, std::memory_order_relaxed);
  return object;
}
template <class T>
void let_go(T* object) {
  if (object->references.fetch_sub(Object::kOneOfDriver, std::memory_order_acq_rel) == Object::kOneOfDriver) destroy(object);
}

bool contains_device(cl_context context, cl_device_id device) noexcept;

}  // namespace xpu::null_driver
