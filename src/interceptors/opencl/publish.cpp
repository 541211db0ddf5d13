#include "interceptors/opencl/publish.hpp"

#include <algorithm>

#include "interceptors/opencl/layer_state.hpp"

namespace xpu::interceptors::opencl {
namespace {

template <typename Description>
void publish_object(probe::ObjectKind kind, probe::Id id, const Description& description) noexcept {
  if (const probe::Subscriber* listener = probe::subscriber()) listener->object(kind, id, probe::ObjectEvent::created, &description);
}

template <typename Handle>
std::uint64_t native_of(const std::atomic<Handle>& handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle.load(std::memory_order_relaxed));
}

}  // namespace

void publish(const Device& device) noexcept {
  probe::DeviceDescription description;
  description.parent = device.parent;
  description.name = probe::text_of(device.name);
  description.driver = probe::text_of(device.driver);
  std::copy_n(device.uuid, sizeof description.uuid, description.uuid);
  description.pci_domain = device.pci_domain;
  std::copy_n(device.pci, sizeof description.pci, description.pci);
  description.clock_domain = device.clock.domain();
  description.native = native_of(device.handle);
  description.vendor = probe::text_of(device.vendor);
  description.driver_version = probe::text_of(device.driver_version);
  description.total_memory_bytes = device.total_memory_bytes;
  description.max_allocation_bytes = device.max_allocation_bytes;
  description.local_memory_bytes = device.local_memory_bytes;
  description.max_work_group_size = device.max_work_group_size;
  description.compute_units = device.compute_units;
  description.max_clock_mhz = device.max_clock_mhz;
  publish_object(probe::ObjectKind::device, device.id, description);
}

void publish(const Context& context) noexcept {
  probe::Id ids[Context::kMaxDevices];
  for (std::uint32_t index = 0; index < context.device_count; ++index) ids[index] = context.devices[index]->id;
  publish_object(probe::ObjectKind::context, context.id,
                 probe::ContextDescription{.native = native_of(context.handle), .device_count = context.device_count, .devices = ids});
}

void publish(const Queue& queue) noexcept {
  publish_object(probe::ObjectKind::queue, queue.id,
                 probe::QueueDescription{.context = id_of(queue.context),
                                         .device = id_of(queue.device),
                                         .properties = queue.properties.program_properties,
                                         .native = native_of(queue.handle),
                                         .out_of_order = queue.is_out_of_order.load(std::memory_order_relaxed),
                                         .published_before = queue.sequence.load(std::memory_order_relaxed)});
}

void publish(const Program& program) noexcept {
  publish_object(
      probe::ObjectKind::module, program.id,
      probe::ModuleDescription{
          .context = program.context, .name = probe::text_of(program.name), .source_bytes = program.source_bytes, .hash = program.hash});
}

void publish(const Kernel& kernel) noexcept {
  publish_object(probe::ObjectKind::kernel, kernel.id,
                 probe::KernelDescription{.name = probe::text_of(kernel.name),
                                          .module = kernel.program,
                                          .device = kernel.device,
                                          .native = native_of(kernel.handle),
                                          .local_bytes = kernel.local_bytes,
                                          .private_bytes = kernel.private_bytes,
                                          .sub_group = kernel.sub_group});
}

void publish_end(probe::ObjectKind kind, probe::Id id) noexcept {
  if (const probe::Subscriber* listener = probe::subscriber()) listener->object(kind, id, probe::ObjectEvent::destroyed, nullptr);
}

void publish_memory(Context* context, probe::MemoryAction action, probe::MemoryType type, std::uint64_t address,
                    std::uint64_t bytes) noexcept {
  std::uint64_t total_bytes = 0;
  if (context != nullptr) {
    const bool is_new = action == probe::MemoryAction::allocate;
    total_bytes = is_new ? context->alive_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes
                         : context->alive_bytes.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  }
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr || !wants(*listener, probe::kMemory)) return;
  listener->memory({.time_ns = now_ns(),
                    .address = address,
                    .bytes = bytes,
                    .total_bytes = total_bytes,
                    .device = context != nullptr && context->device_count == 1 ? context->devices[0]->id : 0,
                    .context = id_of(context),
                    .action = action,
                    .type = type});
}

void republish_objects() noexcept {
  if (probe::subscriber() == nullptr) return;
  const auto publish_it = [](const auto& object) { publish(object); };
  g_objects.devices.for_each_alive(publish_it);
  g_objects.contexts.for_each_alive(publish_it);
  g_objects.programs.for_each_alive(publish_it);
  g_objects.kernels.for_each_alive([](const Kernel& kernel) {
    if (kernel.description.load(std::memory_order_acquire) == Kernel::Description::published) publish(kernel);
  });
  g_objects.queues.for_each_alive(publish_it);
}

}  // namespace xpu::interceptors::opencl
