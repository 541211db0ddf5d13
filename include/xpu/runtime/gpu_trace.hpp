#pragma once

#include <cstdint>
#include <functional>

#include "xpu/base/export.hpp"

/// Functions that the runtime calls on its own thread at ten points, for tools that check how a program uses streams and memory. Arguments
/// are addresses: of an event, a queue (both as the driver knows them) or memory. An exception that a function lets out is logged once and
/// goes no further. Calls come after the fact but for deletions, which come before. A function may call the runtime and these functions.
///
/// Thread-safe. While nothing is registered a point costs one load.
namespace xpu::gpu_trace {

enum class Point : std::uint8_t {
  event_creation,          ///< (event)
  event_deletion,          ///< (event), only of one that was created
  event_record,            ///< (event, queue)
  event_wait,              ///< (event, queue)
  memory_allocation,       ///< (address)
  memory_deallocation,     ///< (address)
  stream_creation,         ///< (queue)
  device_synchronization,  ///< ()
  stream_synchronization,  ///< (queue)
  event_synchronization,   ///< (event)
};

/// Arguments that a point does not have are 0.
using Callback = std::function<void(std::uintptr_t first, std::uintptr_t second)>;

/// Functions of one point are called in the order of registration. The result names it for `remove_callback`.
XPU_EXPORT std::uint64_t add_callback(Point point, Callback callback);
/// False when it is not there (any more). A call that is under way ends.
XPU_EXPORT bool remove_callback(std::uint64_t id);
XPU_EXPORT void clear_callbacks();

}  // namespace xpu::gpu_trace
