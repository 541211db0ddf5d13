#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/probe.hpp"
#include "interceptors/opencl/device_clock.hpp"
#include "interceptors/opencl/opencl_headers.hpp"
#include "interceptors/opencl/queue_properties.hpp"
#include "interceptors/opencl/registry.hpp"

/// What we know about the objects that programs hold handles of (registry.hpp says how they live). A handle that was never seen created is
/// asked about when it is first used.
namespace xpu::interceptors::opencl {

class CommandRing;

struct Device : Tracked<Device, cl_device_id> {
  std::uint32_t version = 0;  ///< 10 x major + minor of the device's OpenCL; 0 = unknown. Younger entry points must not be called.
  bool has_sub_groups = false;
  probe::Id parent = 0;
  probe::Id name = 0, driver = 0;  ///< Text ids.
  std::uint8_t uuid[16] = {};
  std::uint32_t pci_domain = 0;
  std::uint8_t pci[4] = {};
  probe::Id vendor = 0, driver_version = 0;  ///< Text ids.
  std::uint64_t total_memory_bytes = 0, max_allocation_bytes = 0, local_memory_bytes = 0, max_work_group_size = 0;
  std::uint32_t compute_units = 0, max_clock_mhz = 0;
  DeviceClock clock;
};

struct Context : Tracked<Context, cl_context> {
  static constexpr std::size_t kMaxDevices = 64;
  std::uint32_t device_count = 0;
  Device* devices[kMaxDevices] = {};
  std::atomic<std::uint64_t> alive_bytes{0};
};

struct Queue : Tracked<Queue, cl_command_queue> {
  Context* context = nullptr;            ///< Null when unknown, like the device.
  std::atomic<Device*> device{nullptr};  ///< Also looked at by the harvester, while the object may become another queue's.
  QueueProperties properties;
  bool has_list = false;                      ///< Made by clCreateCommandQueueWithProperties: `properties` holds its list.
  bool is_on_device = false;                  ///< Takes no commands from the host.
  std::atomic<bool> program_profiles{false};  ///< The program itself asked for profiling.
  std::atomic<bool> is_timed{false};          ///< The driver's queue has profiling.
  std::atomic<bool> is_out_of_order{false};
  std::atomic<std::uint32_t> sequence{0};    ///< Commands that the driver accepted while somebody listened.
  std::atomic<CommandRing*> rings{nullptr};  ///< Of every thread; grows only.
};

struct Program : Tracked<Program, cl_program> {
  probe::Id context = 0;
  probe::Id name = 0;  ///< Text id: how it was made.
  std::uint64_t source_bytes = 0, hash = 0;
};

struct Kernel : Tracked<Kernel, cl_kernel> {
  probe::Id name = 0;  ///< Text id; 0 = not asked yet.
  probe::Id program = 0;
  probe::Id device = 0;  ///< Of its first launch.
  std::uint32_t local_bytes = 0, private_bytes = 0, sub_group = 0;
  enum class Description : std::uint8_t { missing, being_asked_for, published };
  std::atomic<Description> description{Description::missing};
};

struct Memory : Tracked<Memory, cl_mem> {
  Context* context = nullptr;
  std::uint64_t bytes = 0;          ///< That it allocated: 0 for sub-buffers and images made of buffers.
  std::uint32_t element_bytes = 0;  ///< Of an image.
  probe::MemoryType type = probe::MemoryType::unknown;
};

/// Memory of clSVMAlloc; the handle is its address.
struct SharedBlock : Tracked<SharedBlock, void*> {
  Context* context = nullptr;
  std::uint64_t bytes = 0;
};

struct Registries {
  Registry<Device, cl_device_id> devices;
  Registry<Context, cl_context> contexts;
  Registry<Queue, cl_command_queue> queues;
  Registry<Program, cl_program> programs;
  Registry<Kernel, cl_kernel> kernels;
  Registry<Memory, cl_mem> memory;
  Registry<SharedBlock, void*> shared;
};
extern constinit Registries g_objects;

inline probe::Id id_of(const Device* device) noexcept { return device != nullptr ? device->id : 0; }
inline probe::Id id_of(const Context* context) noexcept { return context != nullptr ? context->id : 0; }

/// Known, or asked about and published now. Null for a handle that the driver does not know either.
Device* device_of(cl_device_id handle) noexcept;
Context* context_of(cl_context handle) noexcept;
Queue* queue_of(cl_command_queue handle) noexcept;
Program* program_of(cl_program handle) noexcept;
[[gnu::noinline]] Kernel* kernel_of(cl_kernel handle) noexcept;
Memory* memory_of(cl_mem handle) noexcept;
/// The block that `address` lies in; null when none does.
SharedBlock* shared_block_at(const void* address) noexcept;

/// The program made an object and holds the one reference.
void context_created(cl_context handle) noexcept;
void queue_created(cl_command_queue handle, cl_context context, cl_device_id device, const QueueProperties& properties, bool has_list,
                   bool is_timed) noexcept;
void program_created(cl_program handle, cl_context context, const char* how, std::uint64_t source_bytes, std::uint64_t hash) noexcept;
/// `name` may be null: it is asked for at the first launch.
void kernel_created(cl_kernel handle, cl_program program, const char* name) noexcept;
void kernel_cloned(cl_kernel handle, cl_kernel source) noexcept;
void memory_created(cl_mem handle, cl_context context, std::uint64_t bytes, probe::MemoryType type, std::uint32_t element_bytes) noexcept;
void shared_block_created(void* address, cl_context context, std::uint64_t bytes) noexcept;

/// The program lets go of one reference. Called before the driver is: once it has freed an object, another thread may get the same handle
/// for a new one.
void device_released(cl_device_id handle) noexcept;
void context_released(cl_context handle) noexcept;
void queue_released(cl_command_queue handle) noexcept;
void program_released(cl_program handle) noexcept;
void kernel_released(cl_kernel handle) noexcept;
void memory_released(cl_mem handle) noexcept;
void shared_block_freed(const void* address) noexcept;

/// Asks once, at its first launch, what a kernel needs on `device` (may be null), and publishes it.
[[gnu::noinline]] void describe_kernel(Kernel& kernel, cl_kernel handle, const Device* device) noexcept;

}  // namespace xpu::interceptors::opencl
