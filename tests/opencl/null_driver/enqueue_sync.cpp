#include "null_driver/api.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::submit;

namespace xpu::null_driver {
namespace {

/// Commands on memory objects that other interfaces own: any of ours will do here.
cl_int hand_over(cl_command_queue queue, cl_uint count, const cl_mem* memories, cl_command_type type, cl_uint wait_count,
                 const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if ((count == 0) != (memories == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    if (!is_valid(memories[i])) return CL_INVALID_MEM_OBJECT;
  }
  return submit({queue, type, wait_count, wait_list, event});
}

}  // namespace
}  // namespace xpu::null_driver

cl_int Api::clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  xpu::null_driver::Submission submission{queue, CL_COMMAND_MARKER, wait_count, wait_list, event};
  submission.waits_for_queue = wait_count == 0;
  return submit(submission);
}

cl_int Api::clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  xpu::null_driver::Submission submission{queue, CL_COMMAND_BARRIER, wait_count, wait_list, event};
  submission.waits_for_queue = wait_count == 0;
  submission.blocks_queue = true;
  return submit(submission);
}

cl_int Api::clEnqueueMarker(cl_command_queue queue, cl_event* event) {
  return event == nullptr ? CL_INVALID_VALUE : clEnqueueMarkerWithWaitList(queue, 0, nullptr, event);
}

cl_int Api::clEnqueueBarrier(cl_command_queue queue) { return clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr); }

cl_int Api::clEnqueueWaitForEvents(cl_command_queue queue, cl_uint count, const cl_event* events) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (count == 0 || events == nullptr) return CL_INVALID_VALUE;
  const cl_int code = clEnqueueBarrierWithWaitList(queue, count, events, nullptr);
  return code == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : code;
}

cl_int Api::clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem* memories, cl_mem_migration_flags flags,
                                       cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  constexpr cl_mem_migration_flags kAll = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (count == 0 || (flags & ~kAll) != 0) return CL_INVALID_VALUE;
  return xpu::null_driver::hand_over(queue, count, memories, CL_COMMAND_MIGRATE_MEM_OBJECTS, wait_count, wait_list, event);
}

cl_int Api::clEnqueueAcquireGLObjects(cl_command_queue queue, cl_uint count, const cl_mem* memories, cl_uint wait_count,
                                      const cl_event* wait_list, cl_event* event) {
  return xpu::null_driver::hand_over(queue, count, memories, CL_COMMAND_ACQUIRE_GL_OBJECTS, wait_count, wait_list, event);
}

cl_int Api::clEnqueueReleaseGLObjects(cl_command_queue queue, cl_uint count, const cl_mem* memories, cl_uint wait_count,
                                      const cl_event* wait_list, cl_event* event) {
  return xpu::null_driver::hand_over(queue, count, memories, CL_COMMAND_RELEASE_GL_OBJECTS, wait_count, wait_list, event);
}

cl_int Api::clEnqueueAcquireEGLObjectsKHR(cl_command_queue queue, cl_uint count, const cl_mem* memories, cl_uint wait_count,
                                          const cl_event* wait_list, cl_event* event) {
  return xpu::null_driver::hand_over(queue, count, memories, CL_COMMAND_ACQUIRE_EGL_OBJECTS_KHR, wait_count, wait_list, event);
}

cl_int Api::clEnqueueReleaseEGLObjectsKHR(cl_command_queue queue, cl_uint count, const cl_mem* memories, cl_uint wait_count,
                                          const cl_event* wait_list, cl_event* event) {
  return xpu::null_driver::hand_over(queue, count, memories, CL_COMMAND_RELEASE_EGL_OBJECTS_KHR, wait_count, wait_list, event);
}
