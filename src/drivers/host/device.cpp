#include "drivers/host/device.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "drivers/host/event.hpp"
#include "drivers/host/processor.hpp"
#include "drivers/host/queue.hpp"
#include "drivers/host/queue_registry.hpp"
#include "hal/function_module.hpp"

namespace xpu::drivers::host {
namespace {

hal::Capabilities capabilities_of(const Options& options) {
  const bool has_workers = options.executor != Executor::caller;
  hal::Capabilities capabilities;
  capabilities.module_formats = hal::kFunctionModuleFormats;
  capabilities.priority_levels = has_workers ? 3 : 1;
  capabilities.virtual_memory = true;
  capabilities.host_memory_access = true;
  capabilities.timed_events = true;
  capabilities.timed_operations = true;
  capabilities.blocking_events = true;
  capabilities.native_queues = true;
  capabilities.concurrent_operations = has_workers && options.threads > 1;
  return capabilities;
}

hal::ClockInfo monotonic_clock() {
  hal::ClockInfo clock;
  clock.same_as = ClockDomain::monotonic;
  return clock;
}

}  // namespace

HostDevice::HostDevice(std::shared_ptr<DriverState> driver, std::uint32_t ordinal)
    : driver_(std::move(driver)),
      ordinal_(ordinal),
      properties_(device_properties(driver_->options, ordinal)),
      capabilities_(capabilities_of(driver_->options)),
      clock_(monotonic_clock()),
      device_memory_(hal::MemoryKind::device, driver_->device_budgets[ordinal]),
      host_memory_(hal::MemoryKind::host, driver_->host_budgets[ordinal]),
      shared_memory_(hal::MemoryKind::shared, driver_->device_budgets[ordinal]) {}

Result<hal::ClockReading> HostDevice::read_clock() {
  const std::uint64_t now = now_ns();  // the device's clock is the host's: the reading brackets itself
  return hal::ClockReading{now, now, now};
}

hal::MemoryProvider* HostDevice::memory(hal::MemoryKind kind) noexcept {
  switch (kind) {
    case hal::MemoryKind::device: return &device_memory_;
    case hal::MemoryKind::host: return &host_memory_;
    case hal::MemoryKind::shared: return &shared_memory_;
  }
  return nullptr;
}

Result<std::unique_ptr<hal::Queue>> HostDevice::create_queue(const hal::QueueOptions& options) {
  std::shared_ptr<QueueState> state = make_queue_state(driver_, ordinal_, options);
  if (state == nullptr) return QueueState::closed();
  return std::unique_ptr<hal::Queue>(new HostQueue(std::move(state), options.sink));
}

Result<hal::NativeQueueInfo> HostDevice::inspect_queue(void* native) {
  const std::shared_ptr<QueueState> state = find_queue_state(native);
  if (state == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("{} is no queue of the driver host", fmt::ptr(native))};
  return hal::NativeQueueInfo{state->is_in_order(), &state->driver() == driver_.get(), state->device(), state->priority()};
}

Result<std::unique_ptr<hal::Queue>> HostDevice::adopt_queue(void* native, hal::CompletionSink* sink) {
  std::shared_ptr<QueueState> state = find_queue_state(native);
  if (state == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("{} is no queue of the driver host", fmt::ptr(native))};
  return std::unique_ptr<hal::Queue>(new HostQueue(std::move(state), sink));
}

Result<std::unique_ptr<hal::Event>> HostDevice::create_event(const hal::EventOptions& options) {
  return std::unique_ptr<hal::Event>(new HostEvent(driver_, options));
}

Result<std::unique_ptr<hal::Module>> HostDevice::create_module(const hal::ModuleSource& source) {
  return hal::create_function_module(source);
}

Result<> HostDevice::synchronize_blocking() {
  std::shared_ptr<QueueState> failed_first;
  std::optional<std::uint64_t> order;
  for (std::shared_ptr<QueueState>& queue : queue_states_of(*driver_)) {
    if (queue->device() != ordinal_) continue;
    queue->wait_for_all();
    const std::optional<std::uint64_t> its_order = queue->error_order();
    if (its_order.has_value() && (!order.has_value() || *its_order < *order)) {
      order = its_order;
      failed_first = std::move(queue);
    }
  }
  return failed_first == nullptr ? Result<>() : failed_first->take_error();
}

}  // namespace xpu::drivers::host
