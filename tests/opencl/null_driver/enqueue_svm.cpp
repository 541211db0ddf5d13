#include <cstdlib>

#include "null_driver/api.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::submit;

namespace xpu::null_driver {
namespace {

/// Frees the pointers, by the program's own function if it gave one.
class SvmFree : public HostAction {
 public:
  using Function = void(CL_CALLBACK*)(cl_command_queue, cl_uint, void**, void*);

  SvmFree(cl_command_queue queue, std::vector<void*> pointers, Function function, void* user_data)
      : queue_(queue), pointers_(std::move(pointers)), function_(function), user_data_(user_data) {}

  void run() override {
    if (function_ != nullptr) {
      function_(queue_, static_cast<cl_uint>(pointers_.size()), pointers_.data(), user_data_);
      return;
    }
    for (void* pointer : pointers_) std::free(pointer);
  }

 private:
  cl_command_queue queue_;
  std::vector<void*> pointers_;
  Function function_;
  void* user_data_;
};

}  // namespace
}  // namespace xpu::null_driver

cl_int Api::clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void** pointers,
                             void(CL_CALLBACK* function)(cl_command_queue, cl_uint, void**, void*), void* user_data, cl_uint wait_count,
                             const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (count == 0 || pointers == nullptr) return CL_INVALID_VALUE;
  auto action = std::make_unique<xpu::null_driver::SvmFree>(queue, std::vector<void*>(pointers, pointers + count), function, user_data);
  return submit({queue, CL_COMMAND_SVM_FREE, wait_count, wait_list, event}, std::move(action));
}

cl_int Api::clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* destination, const void* source, std::size_t,
                               cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (destination == nullptr || source == nullptr) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_SVM_MEMCPY, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueSVMMemFill(cl_command_queue queue, void* pointer, const void* pattern, std::size_t pattern_bytes, std::size_t bytes,
                                cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (pointer == nullptr || pattern == nullptr || pattern_bytes == 0 || pattern_bytes > 128 || bytes % pattern_bytes != 0)
    return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_SVM_MEMFILL, wait_count, wait_list, event});
}

cl_int Api::clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags, void* pointer, std::size_t bytes, cl_uint wait_count,
                            const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (pointer == nullptr || bytes == 0) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_SVM_MAP, wait_count, wait_list, event, blocking != CL_FALSE});
}

cl_int Api::clEnqueueSVMUnmap(cl_command_queue queue, void* pointer, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (pointer == nullptr) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_SVM_UNMAP, wait_count, wait_list, event});
}

cl_int Api::clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void** pointers, const std::size_t*,
                                   cl_mem_migration_flags flags, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  constexpr cl_mem_migration_flags kAll = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (count == 0 || pointers == nullptr || (flags & ~kAll) != 0) return CL_INVALID_VALUE;
  return submit({queue, CL_COMMAND_SVM_MIGRATE_MEM, wait_count, wait_list, event});
}
