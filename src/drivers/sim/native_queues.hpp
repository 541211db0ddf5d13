#pragma once

#include <memory>

#include "drivers/sim/timeline.hpp"

namespace xpu::drivers::sim {

/// The living queues of all drivers of this kind in the process: what makes a native handle out of a pointer that anybody may hand in.
/// Thread-safe.
void add_native_queue(const std::shared_ptr<QueueState>& queue);
/// The queue with this handle; null when there is none.
std::shared_ptr<QueueState> find_native_queue(void* handle);

}  // namespace xpu::drivers::sim
