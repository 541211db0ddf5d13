#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/host/queue_state.hpp"

/// All queues of all drivers of this kind in the process, so that an address can be told from a native queue without reading it.
/// Thread-safe.
namespace xpu::drivers::host {

/// Registered until it is destroyed. Null when the driver is exiting.
std::shared_ptr<QueueState> make_queue_state(std::shared_ptr<DriverState> driver, std::uint32_t device, const hal::QueueOptions& options);

/// Null when no queue lives at this address.
std::shared_ptr<QueueState> find_queue_state(const void* native);

std::vector<std::shared_ptr<QueueState>> queue_states_of(const DriverState& driver);

}  // namespace xpu::drivers::host
