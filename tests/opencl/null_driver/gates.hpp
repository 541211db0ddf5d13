#pragma once

#include <algorithm>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>

#include "null_driver/timeline.hpp"

namespace xpu::null_driver {

/// A command without known times. It holds the driver's references on its event, its queue and the events it waits for.
struct GatedCommand {
  cl_event event;
  std::vector<cl_event> wait_list;
  bool in_order = true;
  bool waits_for_queue = false;
  bool blocks_queue = false;
  bool running_action = false;  // its action runs right now, without the lock
  std::unique_ptr<HostAction> action;
};

/// The commands of the whole process whose times are not known yet, in the order of submission. Rarely used, so one lock is enough.
struct Gates {
  std::mutex mutex;
  std::condition_variable changed;   // some event got its end
  std::list<GatedCommand> commands;  // guarded by mutex
};

/// Never destroyed.
Gates& gates();

/// Gives times to the commands from `first` on whose gates are open and returns their events, each with a reference of the driver that the
/// caller has to give back (after it told the callbacks). `lock` is released while a host action runs.
std::vector<cl_event> open_gates(std::unique_lock<std::mutex>& lock, std::list<GatedCommand>::iterator first);

/// Wakes waiters, hands due callbacks on, and gives the references back. Called without the lock.
void announce(const std::vector<cl_event>& events);

/// The earliest time the wait list allows, at least `earliest_ns`; kUnknown when it contains an event without an end. `failed` tells
/// whether an event in it failed.
std::uint64_t ready_time(cl_uint count, const cl_event* wait_list, std::uint64_t earliest_ns, bool& failed) noexcept;

/// Times of a command that has none yet, and the queue's marks moved behind it. The caller holds the queue's lock.
inline void place_on_timeline(cl_command_queue queue, std::uint64_t ready_ns, bool waits_for_queue, bool blocks_queue, bool failed,
                              std::uint64_t& start_ns, std::uint64_t& end_ns) noexcept {
  const bool in_order = (queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  const std::uint64_t floor_ns = in_order || waits_for_queue ? queue->last_end_ns : queue->barrier_end_ns;
  start_ns = std::max(ready_ns, floor_ns);
  end_ns = failed ? start_ns : start_ns + settings.duration_ns;
  queue->last_end_ns = std::max(queue->last_end_ns, end_ns);
  if (blocks_queue) queue->barrier_end_ns = end_ns;
}

}  // namespace xpu::null_driver
