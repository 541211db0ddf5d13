#include "drivers/sim/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "drivers/sim/native_queues.hpp"
#include "drivers/sim/queue.hpp"
#include "hal/function_module.hpp"

namespace xpu::drivers::sim {
namespace {

hal::Capabilities device_capabilities() {
  hal::Capabilities capabilities;
  capabilities.module_formats = hal::kFunctionModuleFormats;
  capabilities.virtual_memory = true;
  capabilities.host_memory_access = true;
  capabilities.timed_events = true;
  capabilities.timed_operations = true;
  capabilities.blocking_events = true;  // waiting only moves the virtual time
  capabilities.native_queues = true;
  return capabilities;
}

}  // namespace

DeviceProperties properties_of(const Program& program, std::uint32_t ordinal) {
  const Clock& clock = program.clocks[std::min<std::size_t>(ordinal, program.clocks.size() - 1)];
  DeviceProperties properties;
  properties.name = fmt::format("libxpu simulated device {}", ordinal);
  properties.platform_name = "libxpu sim";
  properties.vendor = "libxpu";
  properties.driver_version = "1";
  properties.type = DeviceType::accelerator;
  properties.device_id = ordinal;
  properties.uuid.bytes = {'x', 'p', 'u', '-', 's', 'i', 'm', 0, 0, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(ordinal)};
  properties.max_compute_units = 4;
  properties.max_work_group_size = 1024;
  properties.max_work_item_sizes = {1024, 1024, 1024};
  properties.max_group_count = {0x7fffffff, 0xffff, 0xffff};
  properties.max_work_item_dimensions = 3;
  properties.max_num_sub_groups = 64;
  properties.sub_group_sizes = {16};
  properties.max_clock_frequency_mhz = 1000;
  properties.memory_clock_rate_mhz = 1000;
  properties.memory_bus_width_bits = 64;
  properties.address_bits = 64;
  properties.max_parameter_bytes = 4096;
  properties.total_memory_bytes = program.memory_bytes;
  properties.max_allocation_bytes = program.memory_bytes;
  properties.local_memory_bytes = std::uint64_t{64} * 1024;
  properties.cache_line_bytes = 64;
  properties.memory_alignment_bytes = 64;
  properties.has_fp64 = true;
  properties.has_atomic64 = true;
  properties.timer_resolution_ns =
      std::max<std::uint64_t>(1, (std::uint64_t{clock.tick_numerator} + clock.tick_denominator - 1) / clock.tick_denominator);
  properties.native_vector_widths = properties.preferred_vector_widths = {16, 8, 4, 2, 4, 2, 0};
  return properties;
}

SimDevice::SimDevice(std::shared_ptr<Timeline> timeline, std::shared_ptr<DeviceState> state, std::uint64_t origin_ns)
    : timeline_(std::move(timeline)),
      state_(std::move(state)),
      origin_ns_(origin_ns),
      capabilities_(device_capabilities()),
      clock_info_(state_->clock.info()) {}

Result<> SimDevice::check_not_lost() const {
  if (state_->is_lost.load(std::memory_order_acquire)) return device_lost_error(*state_);
  return {};
}

Result<hal::ClockReading> SimDevice::read_clock() {
  XPU_TRY(check_not_lost());
  return state_->clock.read(timeline_->now(), origin_ns_);
}

Result<std::unique_ptr<hal::Queue>> SimDevice::create_queue(const hal::QueueOptions& options) {
  XPU_TRY(check_not_lost());
  if (state_->rules->strikes(FaultKind::queue_refused))
    return Error{ErrorCode::unavailable, "a queue was refused because the program of sim says so"};
  auto queue = timeline_->make_queue(state_, options);
  add_native_queue(queue);
  return std::unique_ptr<hal::Queue>(std::make_unique<SimQueue>(timeline_, std::move(queue), options.sink));
}

Result<hal::NativeQueueInfo> SimDevice::inspect_queue(void* native) {
  const std::shared_ptr<QueueState> queue = find_native_queue(native);
  if (queue == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("{} is no queue of sim", native)};
  return hal::NativeQueueInfo{.is_in_order = !queue->options.out_of_order,
                              .is_same_context = queue->timeline == timeline_.get(),
                              .device = queue->device->ordinal,
                              .priority = queue->options.priority};
}

Result<std::unique_ptr<hal::Queue>> SimDevice::adopt_queue(void* native, hal::CompletionSink* sink) {
  XPU_TRY(check_not_lost());
  std::shared_ptr<QueueState> queue = find_native_queue(native);
  if (queue == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("{} is no queue of sim", native)};
  return std::unique_ptr<hal::Queue>(std::make_unique<SimQueue>(timeline_, std::move(queue), sink));
}

Result<std::unique_ptr<hal::Event>> SimDevice::create_event(const hal::EventOptions&) {
  XPU_TRY(check_not_lost());
  return std::unique_ptr<hal::Event>(std::make_unique<SimEvent>(timeline_, state_));
}

Result<std::unique_ptr<hal::Module>> SimDevice::create_module(const hal::ModuleSource& source) {
  XPU_TRY(check_not_lost());
  return hal::create_function_module(source);
}

Result<> SimDevice::synchronize_blocking() {
  XPU_TRY(timeline_->synchronize(timeline_->tail_of(*state_)));
  if (std::optional<Error> error = timeline_->take_error(*state_)) return *std::move(error);
  return check_not_lost();
}

}  // namespace xpu::drivers::sim
