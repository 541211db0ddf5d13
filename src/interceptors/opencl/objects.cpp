#include "interceptors/opencl/objects.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "interceptors/opencl/command_ring.hpp"
#include "interceptors/opencl/publish.hpp"
#include "interceptors/opencl/queries.hpp"

namespace xpu::interceptors::opencl {

constinit Registries g_objects;

namespace {

constexpr std::size_t kTextRoom = 1024;

bool has_no_pending_commands(const Queue& queue) noexcept {
  for (CommandRing* ring = queue.rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    if (!ring->is_empty()) return false;
  }
  return true;
}

/// 10 x major + minor of "OpenCL 3.0 PoCL …"; 0 when it is not such a text.
std::uint32_t parse_version(std::string_view text) noexcept {
  constexpr std::string_view kPrefix = "OpenCL ";
  if (text.substr(0, kPrefix.size()) != kPrefix) return 0;
  text.remove_prefix(kPrefix.size());
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  if (text.size() < 3 || !is_digit(text[0]) || text[1] != '.' || !is_digit(text[2])) return 0;
  return static_cast<std::uint32_t>(text[0] - '0') * 10 + static_cast<std::uint32_t>(text[2] - '0');
}

void describe_device(Device& device, cl_device_id handle) noexcept {
  const auto info = target().clGetDeviceInfo;
  char text[kTextRoom];
  device.version = parse_version(ask_text(info, handle, CL_DEVICE_VERSION, text));
  device.name = probe::intern(ask_text(info, handle, CL_DEVICE_NAME, text));

  char driver[2 * kTextRoom];
  std::size_t length = 0;
  const auto append = [&](std::string_view part) {
    if (part.empty()) return;
    if (length != 0) driver[length++] = ' ';
    length += part.copy(driver + length, kTextRoom - 1);
  };
  // A driver of a version that has an entry point may still lack it, and the loader would jump into nothing: optional ones are called only
  // where the driver says that what they are for exists.
  bool has_host_timer = false;
  if (const auto platform = ask<cl_platform_id>(info, handle, CL_DEVICE_PLATFORM, nullptr)) {
    has_host_timer = device.version >= 21 && ask<cl_ulong>(target().clGetPlatformInfo, platform, CL_PLATFORM_HOST_TIMER_RESOLUTION, 0) != 0;
    append(ask_text(target().clGetPlatformInfo, platform, CL_PLATFORM_NAME, text));
  }
  const std::string_view driver_version = ask_text(info, handle, CL_DRIVER_VERSION, text);
  append(driver_version);
  device.driver = probe::intern({driver, length});
  const auto id_unless_empty = [](std::string_view known) { return known.empty() ? 0 : probe::intern(known); };
  device.driver_version = id_unless_empty(driver_version);
  device.vendor = id_unless_empty(ask_text(info, handle, CL_DEVICE_VENDOR, text));
  device.total_memory_bytes = ask<cl_ulong>(info, handle, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
  device.max_allocation_bytes = ask<cl_ulong>(info, handle, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
  device.local_memory_bytes = ask<cl_ulong>(info, handle, CL_DEVICE_LOCAL_MEM_SIZE, 0);
  device.max_work_group_size = ask<std::size_t>(info, handle, CL_DEVICE_MAX_WORK_GROUP_SIZE, 0);
  device.compute_units = ask<cl_uint>(info, handle, CL_DEVICE_MAX_COMPUTE_UNITS, 0);
  device.max_clock_mhz = ask<cl_uint>(info, handle, CL_DEVICE_MAX_CLOCK_FREQUENCY, 0);

  struct Uuid {
    std::uint8_t bytes[CL_UUID_SIZE_KHR];
  };
  const auto uuid = ask<Uuid>(info, handle, CL_DEVICE_UUID_KHR, {});
  std::copy_n(uuid.bytes, sizeof device.uuid, device.uuid);
  const auto pci = ask<cl_device_pci_bus_info_khr>(info, handle, CL_DEVICE_PCI_BUS_INFO_KHR, {});
  device.pci_domain = pci.pci_domain;
  device.pci[0] = static_cast<std::uint8_t>(pci.pci_bus);
  device.pci[1] = static_cast<std::uint8_t>(pci.pci_device);
  device.pci[2] = static_cast<std::uint8_t>(pci.pci_function);

  const auto parent = device.version >= 12 ? ask<cl_device_id>(info, handle, CL_DEVICE_PARENT_DEVICE, nullptr) : nullptr;
  device.parent = parent != nullptr ? id_of(device_of(parent)) : 0;
  const auto tick_ns = ask<std::size_t>(info, handle, CL_DEVICE_PROFILING_TIMER_RESOLUTION, 1);
  // A part of a device has the clock of the whole, and the whole cannot be released: at the end of the process its handle is still good.
  cl_device_id whole = handle;
  for (int depth = 0; device.version >= 12 && depth < 8; ++depth) {
    const auto above = ask<cl_device_id>(info, whole, CL_DEVICE_PARENT_DEVICE, nullptr);
    if (above == nullptr) break;
    whole = above;
  }
  device.clock.open(whole, device.id, has_host_timer && target().clGetDeviceAndHostTimer != nullptr, tick_ns);
  device.has_sub_groups = device.version >= 21 && ask<cl_uint>(info, handle, CL_DEVICE_MAX_NUM_SUB_GROUPS, 0) != 0;
}

/// The program's references to an object that was made out of our sight.
template <typename Function, typename Handle, typename Name>
std::uint32_t ask_references(Function function, Handle handle, Name name) noexcept {
  return std::max<cl_uint>(ask<cl_uint>(function, handle, name, 1), 1);
}

/// `add`, and the end of what the handle meant before.
template <typename Object, typename Handle>
void add_new(Registry<Object, Handle>& registry, Handle handle, Object* object, probe::ObjectKind kind) noexcept {
  Object* previous = registry.add(handle, object, 1);
  if (previous == nullptr) return;
  if (previous != object && kind != probe::ObjectKind::memory) publish_end(kind, previous->id);
  registry.give_back(previous);
}

void fill_kernel(Kernel& kernel, probe::Id program, probe::Id name) noexcept {
  kernel.id = probe::new_object_id(probe::ObjectKind::kernel);
  kernel.name = name;
  kernel.program = program;
  kernel.device = 0;
  kernel.description.store(Kernel::Description::missing, std::memory_order_relaxed);
}

bool is_published(const Kernel& kernel) noexcept {
  return kernel.description.load(std::memory_order_acquire) == Kernel::Description::published;
}

void add_kernel(cl_kernel handle, probe::Id program, probe::Id name) noexcept {
  Kernel* kernel = g_objects.kernels.take();
  if (kernel == nullptr) return;
  fill_kernel(*kernel, program, name);
  Kernel* previous = g_objects.kernels.add(handle, kernel, 1);
  if (previous == nullptr) return;
  if (previous != kernel && is_published(*previous)) publish_end(probe::ObjectKind::kernel, previous->id);
  g_objects.kernels.give_back(previous);
}

void fill_queue(Queue& queue, cl_context context, cl_device_id device, const QueueProperties& properties) noexcept {
  queue.id = probe::new_object_id(probe::ObjectKind::queue);
  queue.context = context_of(context);
  queue.device.store(device_of(device), std::memory_order_release);
  queue.properties = properties;
  queue.is_on_device = (properties.program_properties & CL_QUEUE_ON_DEVICE) != 0;
  queue.program_profiles.store((properties.program_properties & CL_QUEUE_PROFILING_ENABLE) != 0, std::memory_order_relaxed);
  queue.is_out_of_order.store((properties.program_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0, std::memory_order_relaxed);
  queue.sequence.store(0, std::memory_order_relaxed);
}

}  // namespace

// ---- known or asked about

// Devices are never used again: their clocks and the queues on them keep pointers. Only sub-devices ever go.
Device* device_of(cl_device_id handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (Device* known = g_objects.devices.find(handle)) return known;
  cl_device_type type = 0;
  if (target().clGetDeviceInfo == nullptr || target().clGetDeviceInfo(handle, CL_DEVICE_TYPE, sizeof type, &type, nullptr) != CL_SUCCESS)
    return nullptr;
  Device* device = g_objects.devices.take([](const Device&) { return false; });
  if (device == nullptr) return nullptr;
  device->id = probe::new_object_id(probe::ObjectKind::device);
  describe_device(*device, handle);
  Device* winner =
      g_objects.devices.add_if_unknown(handle, device, ask_references(target().clGetDeviceInfo, handle, CL_DEVICE_REFERENCE_COUNT));
  if (winner == device) publish(*device);
  return winner;
}

Context* context_of(cl_context handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (Context* known = g_objects.contexts.find(handle)) return known;
  cl_device_id devices[Context::kMaxDevices];
  std::size_t bytes = 0;
  const auto info = target().clGetContextInfo;
  if (info == nullptr || info(handle, CL_CONTEXT_DEVICES, 0, nullptr, &bytes) != CL_SUCCESS) return nullptr;
  const bool fits = bytes <= sizeof devices && info(handle, CL_CONTEXT_DEVICES, bytes, devices, nullptr) == CL_SUCCESS;
  // Not used again either: what was made in a context may outlive the program's references to it.
  Context* context = g_objects.contexts.take([](const Context&) { return false; });
  if (context == nullptr) return nullptr;
  context->id = probe::new_object_id(probe::ObjectKind::context);
  for (std::size_t index = 0; fits && index < bytes / sizeof(cl_device_id); ++index) {
    if (Device* device = device_of(devices[index])) context->devices[context->device_count++] = device;
  }
  Context* winner = g_objects.contexts.add_if_unknown(handle, context, ask_references(info, handle, CL_CONTEXT_REFERENCE_COUNT));
  if (winner == context) publish(*context);
  return winner;
}

Queue* queue_of(cl_command_queue handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (Queue* known = g_objects.queues.find(handle)) return known;
  const auto info = target().clGetCommandQueueInfo;
  cl_command_queue_properties properties = 0;
  if (info == nullptr || info(handle, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr) != CL_SUCCESS) return nullptr;
  Queue* queue = g_objects.queues.take(has_no_pending_commands);
  if (queue == nullptr) return nullptr;
  QueueProperties as_it_is;
  as_it_is.program_properties = properties;
  fill_queue(*queue, ask<cl_context>(info, handle, CL_QUEUE_CONTEXT, nullptr), ask<cl_device_id>(info, handle, CL_QUEUE_DEVICE, nullptr),
             as_it_is);
  queue->has_list = false;
  queue->is_timed.store((properties & CL_QUEUE_PROFILING_ENABLE) != 0, std::memory_order_relaxed);
  Queue* winner = g_objects.queues.add_if_unknown(handle, queue, ask_references(info, handle, CL_QUEUE_REFERENCE_COUNT));
  if (winner == queue) publish(*queue);
  return winner;
}

Program* program_of(cl_program handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (Program* known = g_objects.programs.find(handle)) return known;
  const auto info = target().clGetProgramInfo;
  const auto context = ask<cl_context>(info, handle, CL_PROGRAM_CONTEXT, nullptr);
  if (context == nullptr) return nullptr;
  Program* program = g_objects.programs.take();
  if (program == nullptr) return nullptr;
  program->id = probe::new_object_id(probe::ObjectKind::module);
  program->context = id_of(context_of(context));
  program->name = 0;
  program->source_bytes = 0;
  program->hash = 0;
  Program* winner = g_objects.programs.add_if_unknown(handle, program, ask_references(info, handle, CL_PROGRAM_REFERENCE_COUNT));
  if (winner == program) publish(*program);
  return winner;
}

Kernel* kernel_of(cl_kernel handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (Kernel* known = g_objects.kernels.find(handle)) return known;
  const auto info = target().clGetKernelInfo;
  const auto program = ask<cl_program>(info, handle, CL_KERNEL_PROGRAM, nullptr);
  if (program == nullptr) return nullptr;
  Kernel* kernel = g_objects.kernels.take();
  if (kernel == nullptr) return nullptr;
  const Program* owner = program_of(program);
  fill_kernel(*kernel, owner != nullptr ? owner->id : 0, 0);
  return g_objects.kernels.add_if_unknown(handle, kernel, ask_references(info, handle, CL_KERNEL_REFERENCE_COUNT));
}

Memory* memory_of(cl_mem handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (Memory* known = g_objects.memory.find(handle)) return known;
  const auto info = target().clGetMemObjectInfo;
  const auto type = ask<cl_mem_object_type>(info, handle, CL_MEM_TYPE, 0);
  if (type == 0) return nullptr;
  Memory* memory = g_objects.memory.take();
  if (memory == nullptr) return nullptr;
  const bool is_image = type != CL_MEM_OBJECT_BUFFER && type != CL_MEM_OBJECT_PIPE;
  memory->context = context_of(ask<cl_context>(info, handle, CL_MEM_CONTEXT, nullptr));
  memory->bytes = 0;  // its allocation was not published, so its end is not either
  memory->type = is_image ? probe::MemoryType::image : probe::MemoryType::device;
  memory->element_bytes =
      is_image ? static_cast<std::uint32_t>(ask<std::size_t>(target().clGetImageInfo, handle, CL_IMAGE_ELEMENT_SIZE, 0)) : 0;
  return g_objects.memory.add_if_unknown(handle, memory, ask_references(info, handle, CL_MEM_REFERENCE_COUNT));
}

SharedBlock* shared_block_at(const void* address) noexcept {
  SharedBlock* found = nullptr;
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  g_objects.shared.for_each_alive([&](SharedBlock& block) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block.handle.load(std::memory_order_relaxed));
    if (where >= begin && where - begin < block.bytes) found = &block;
  });
  return found;
}

// ---- made by the program

void context_created(cl_context handle) noexcept {
  // A handle that is known belonged to a context that went without us: the driver keeps contexts that something still refers to.
  if (Context* old = g_objects.contexts.release(handle)) publish_end(probe::ObjectKind::context, old->id);
  context_of(handle);
}

void queue_created(cl_command_queue handle, cl_context context, cl_device_id device, const QueueProperties& properties, bool has_list,
                   bool is_timed) noexcept {
  Queue* queue = g_objects.queues.take(has_no_pending_commands);
  if (queue == nullptr) return;
  fill_queue(*queue, context, device, properties);
  queue->has_list = has_list;
  queue->is_timed.store(is_timed, std::memory_order_relaxed);
  add_new(g_objects.queues, handle, queue, probe::ObjectKind::queue);
  if (queue->is_for(handle)) publish(*queue);
}

void program_created(cl_program handle, cl_context context, const char* how, std::uint64_t source_bytes, std::uint64_t hash) noexcept {
  Program* program = g_objects.programs.take();
  if (program == nullptr) return;
  program->id = probe::new_object_id(probe::ObjectKind::module);
  program->context = id_of(context_of(context));
  program->name = probe::intern(how);
  program->source_bytes = source_bytes;
  program->hash = hash;
  add_new(g_objects.programs, handle, program, probe::ObjectKind::module);
  if (program->is_for(handle)) publish(*program);
}

void kernel_created(cl_kernel handle, cl_program program, const char* name) noexcept {
  const Program* owner = program_of(program);
  add_kernel(handle, owner != nullptr ? owner->id : 0, name != nullptr ? probe::intern(name) : 0);
}

void kernel_cloned(cl_kernel handle, cl_kernel source) noexcept {
  if (const Kernel* original = kernel_of(source)) add_kernel(handle, original->program, original->name);
}

void memory_created(cl_mem handle, cl_context context, std::uint64_t bytes, probe::MemoryType type, std::uint32_t element_bytes) noexcept {
  Memory* memory = g_objects.memory.take();
  if (memory == nullptr) return;
  memory->context = context_of(context);
  memory->bytes = bytes;
  memory->type = type;
  memory->element_bytes = element_bytes;
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  Memory* previous = g_objects.memory.add(handle, memory, 1);
  if (previous != nullptr) {
    if (previous != memory && previous->bytes != 0)
      publish_memory(previous->context, probe::MemoryAction::release, previous->type, address, previous->bytes);
    g_objects.memory.give_back(previous);
  }
  if (bytes != 0 && memory->is_for(handle)) publish_memory(memory->context, probe::MemoryAction::allocate, type, address, bytes);
}

void shared_block_created(void* address, cl_context context, std::uint64_t bytes) noexcept {
  SharedBlock* block = g_objects.shared.take();
  if (block == nullptr) return;
  block->context = context_of(context);
  block->bytes = bytes;
  if (SharedBlock* previous = g_objects.shared.add(address, block, 1)) g_objects.shared.give_back(previous);
  if (block->is_for(address)) {
    publish_memory(block->context, probe::MemoryAction::allocate, probe::MemoryType::shared, reinterpret_cast<std::uintptr_t>(address),
                   bytes);
  }
}

// ---- let go of

void device_released(cl_device_id handle) noexcept {
  const Device* known = g_objects.devices.find(handle);
  if (known == nullptr || known->parent == 0) return;  // counting means nothing for devices that are no sub-devices
  if (const Device* gone = g_objects.devices.release(handle)) publish_end(probe::ObjectKind::device, gone->id);
}

void context_released(cl_context handle) noexcept {
  const Context* gone = g_objects.contexts.release(handle);
  if (gone == nullptr) return;
  for (Queue* queue = g_objects.queues.first(); queue != nullptr; queue = queue->next) {
    if (queue->context == gone) drain_queue(*queue);
  }
  publish_end(probe::ObjectKind::context, gone->id);
}

void queue_released(cl_command_queue handle) noexcept {
  Queue* gone = g_objects.queues.release(handle);
  if (gone == nullptr) return;
  drain_queue(*gone);
  publish_end(probe::ObjectKind::queue, gone->id);
  g_objects.queues.give_back(gone);
}

void program_released(cl_program handle) noexcept {
  Program* gone = g_objects.programs.release(handle);
  if (gone == nullptr) return;
  publish_end(probe::ObjectKind::module, gone->id);
  g_objects.programs.give_back(gone);
}

void kernel_released(cl_kernel handle) noexcept {
  Kernel* gone = g_objects.kernels.release(handle);
  if (gone == nullptr) return;
  if (is_published(*gone)) publish_end(probe::ObjectKind::kernel, gone->id);
  g_objects.kernels.give_back(gone);
}

void memory_released(cl_mem handle) noexcept {
  Memory* gone = g_objects.memory.release(handle);
  if (gone == nullptr) return;
  if (gone->bytes != 0) {
    publish_memory(gone->context, probe::MemoryAction::release, gone->type, reinterpret_cast<std::uintptr_t>(handle), gone->bytes);
  }
  g_objects.memory.give_back(gone);
}

void shared_block_freed(const void* address) noexcept {
  SharedBlock* gone = g_objects.shared.release(const_cast<void*>(address));  // NOLINT(cppcoreguidelines-pro-type-const-cast): only compared
  if (gone == nullptr) return;
  publish_memory(gone->context, probe::MemoryAction::release, probe::MemoryType::shared, reinterpret_cast<std::uintptr_t>(address),
                 gone->bytes);
  g_objects.shared.give_back(gone);
}

// ---- kernels

void describe_kernel(Kernel& kernel, cl_kernel handle, const Device* device) noexcept {
  auto missing = Kernel::Description::missing;
  if (!kernel.description.compare_exchange_strong(missing, Kernel::Description::being_asked_for, std::memory_order_acq_rel)) return;
  if (kernel.name == 0) {
    char text[4096];
    kernel.name = probe::intern(ask_text(target().clGetKernelInfo, handle, CL_KERNEL_FUNCTION_NAME, text));
  }
  kernel.device = id_of(device);
  kernel.local_bytes = kernel.private_bytes = kernel.sub_group = 0;
  const cl_device_id where = device != nullptr ? device->handle.load(std::memory_order_relaxed) : nullptr;
  const auto ask_bytes = [&](cl_kernel_work_group_info what) {
    cl_ulong bytes = 0;
    if (target().clGetKernelWorkGroupInfo(handle, where, what, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) bytes = 0;
    return static_cast<std::uint32_t>(std::min<cl_ulong>(bytes, ~std::uint32_t{0}));
  };
  if (where != nullptr && target().clGetKernelWorkGroupInfo != nullptr) {
    kernel.local_bytes = ask_bytes(CL_KERNEL_LOCAL_MEM_SIZE);
    kernel.private_bytes = ask_bytes(CL_KERNEL_PRIVATE_MEM_SIZE);
  }
  if (where != nullptr && device->has_sub_groups && target().clGetKernelSubGroupInfo != nullptr) {
    std::size_t local[3] = {1, 1, 1}, size = 0;
    target().clGetKernelWorkGroupInfo(handle, where, CL_KERNEL_WORK_GROUP_SIZE, sizeof local[0], local, nullptr);
    const cl_int result = target().clGetKernelSubGroupInfo(handle, where, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof local, local,
                                                           sizeof size, &size, nullptr);
    if (result == CL_SUCCESS) kernel.sub_group = static_cast<std::uint32_t>(std::min<std::size_t>(size, ~std::uint32_t{0}));
  }
  // A refused call may name no queue: the next one asks again.
  kernel.description.store(device != nullptr ? Kernel::Description::published : Kernel::Description::missing, std::memory_order_release);
  publish(kernel);
}

}  // namespace xpu::interceptors::opencl
