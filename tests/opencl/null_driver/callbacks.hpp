#pragma once

#include "null_driver/objects.hpp"

namespace xpu::null_driver {

/// Calls `function` when the event reaches `status` (CL_SUBMITTED, CL_RUNNING, CL_COMPLETE). If it has already, the call happens here and
/// now on this thread; otherwise on the driver's only thread, which the first such callback starts.
void add_callback(cl_event event, cl_int status, void(CL_CALLBACK* function)(cl_event, cl_int, void*), void* user_data);

/// An event without a known end got one.
void event_ended(cl_event event);

/// No callback begins after this: the process is exiting, or the driver is being unloaded.
void stop_callbacks();

/// Around fork(2). The child has no thread of callbacks and starts its own when it needs one; callbacks of the parent's events do not
/// happen twice.
void lock_callbacks_for_fork();
void unlock_callbacks_after_fork(bool in_child);

}  // namespace xpu::null_driver
