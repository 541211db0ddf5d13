#pragma once

#include <sys/types.h>

#include <cstdint>

#include "null_driver/null_clock.hpp"

namespace xpu::null_driver {

/// What XPU_NULL_FAULTS asks for (comma list). "Every N-th" counts over the whole process from 1; 0 means never.
struct Faults {
  bool no_profiling = false;              // no_profiling: profiling info is never available
  bool zero_times = false;                // zero_times: all stamps read 0
  bool backward = false;                  // backward: END reads 1000 ns before START
  bool no_timer = false;                  // no_timer: the timer queries answer CL_INVALID_OPERATION
  bool dead_in_children = false;          // dead_in_children: in a process forked later the timer never answers
  bool refuse_profiling_queues = false;   // refuse_profiling_queues: no queue with CL_QUEUE_PROFILING_ENABLE
  std::uint64_t fail_enqueue = 0;         // fail_enqueue=N: every N-th enqueue is refused with CL_OUT_OF_RESOURCES
  std::uint64_t fail_command = 0;         // fail_command=N: every N-th command ends with status -5 and has no profiling info
  std::uint64_t null_event = 0;           // null_event=N: every N-th command that was asked for an event returns success and a null event
  std::uint64_t late = 0;                 // late=N: profiling info of every N-th command appears 1 ms after it completed
  std::int64_t step_ns = 0;               // step=NS@COUNT: the device clock jumps by NS ...
  std::uint64_t step_after_commands = 0;  // ... when COUNT commands have been accepted

  /// One test on the enqueue path instead of five.
  bool any_on_enqueue() const noexcept { return (fail_enqueue | fail_command | null_event | late | step_after_commands) != 0; }
};

/// The environment, read once when the driver is loaded.
struct Settings {
  std::uint64_t duration_ns = 0;        // XPU_NULL_DURATION_NS: device time of each command
  std::uint64_t enqueue_ns = 0;         // XPU_NULL_ENQUEUE_NS: busy host time inside each enqueue
  std::uint64_t timer_bracket_ns = 0;   // XPU_NULL_TIMER_BRACKET_NS: busy host time inside clGetDeviceAndHostTimer
  std::uint32_t platform_count = 1;     // XPU_NULL_PLATFORMS
  std::uint32_t device_count = 1;       // XPU_NULL_DEVICES, of each platform
  const char* platform_name = nullptr;  // XPU_NULL_PLATFORM_NAME; platforms after the first have their number appended
  const char* calls_path = nullptr;     // XPU_NULL_CALLS: where the counts of driver calls go at exit; null: calls are not counted
  Faults faults;
  bool enqueue_faults = false;  // faults.any_on_enqueue()
  pid_t process = 0;            // that loaded the driver
  ClockParameters clock;        // without the step
};

/// Has nothing to destroy: the driver answers calls made while the process exits.
extern const Settings settings;

/// With the fault dead_in_children, in such a child: never returns.
void hang_in_child() noexcept;

/// Reads a fault list; words that it does not know are reported on standard error, because a misspelt fault would make a test pass in vain.
Faults parse_faults(const char* text);

}  // namespace xpu::null_driver
