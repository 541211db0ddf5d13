#pragma once

#include <memory>
#include <vector>

#include "null_driver/objects.hpp"

/// When commands run. No command runs anywhere: when it is submitted its start and end follow from the clock, the queue's last end and the
/// ends of the events it waits for, and whether it "is complete" is a comparison with the clock. So no thread is needed.
///
/// The exception are commands that wait, directly or not, for a user event. They are *gated*: they stand in one list for the whole process
/// and get their times from whoever sets the user event.
namespace xpu::null_driver {

struct Submission {
  cl_command_queue queue;
  cl_command_type type;
  cl_uint wait_count;
  const cl_event* wait_list;
  cl_event* event;  // null when the program wants none
  bool blocking = false;
  bool waits_for_queue = false;  // out of order: a marker or barrier without a wait list
  bool blocks_queue = false;     // out of order: a barrier
};

/// Accepts a command, or says why not. Blocking submissions return when the command ended.
cl_int submit(const Submission& submission);

/// The same for a command that does something on the host: `action` runs once its dependencies are met, inside this call, or inside the
/// call that sets the user event.
cl_int submit(const Submission& submission, std::unique_ptr<HostAction> action);

/// Busy waits shortly, sleeps longer.
void wait_until(std::uint64_t host_ns);

/// Host time burnt on purpose.
void spin_for(std::uint64_t duration_ns);

/// Returns when the event ended, with the status it ended with (CL_COMPLETE or negative).
cl_int wait_for(cl_event event);

/// Returns when everything submitted to the queue so far ended.
void wait_for(cl_command_queue queue);

/// The status a program may see now.
cl_int status_of(cl_event event);

/// Ends a user event (status CL_COMPLETE or negative) and opens the gates behind it. False if it had ended before.
bool end_user_event(cl_event event, cl_int status);

/// The device time of an instant on the host's clock, by the driver's parameters and its step so far.
std::uint64_t device_time(std::uint64_t host_ns) noexcept;

/// When the fault step=NS@COUNT moved the clock, ClockParameters::kNoStep before that.
std::uint64_t step_host_time() noexcept;

inline bool is_complete(cl_event event) {
  if (event->seen_complete.load(std::memory_order_relaxed)) return true;
  const std::uint64_t end_ns = event->end_ns.load(std::memory_order_acquire);
  if (end_ns == _cl_event::kUnknown || host_now_ns() < end_ns) return false;
  event->seen_complete.store(true, std::memory_order_relaxed);
  return true;
}

/// Around fork(2): nothing of the list is half changed in the child.
void lock_gates_for_fork();
void unlock_gates_after_fork(bool in_child);

}  // namespace xpu::null_driver
