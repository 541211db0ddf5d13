#include <memory>

#include "null_driver/api.hpp"
#include "null_driver/platforms.hpp"
#include "null_driver/timeline.hpp"

using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::submit;

namespace xpu::null_driver {
namespace {

cl_int check_kernel(cl_command_queue queue, cl_kernel kernel) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (!is_valid(kernel)) return CL_INVALID_KERNEL;
  if (kernel->context != queue->context) return CL_INVALID_CONTEXT;
  return kernel->missing_arguments == 0 ? CL_SUCCESS : CL_INVALID_KERNEL_ARGS;
}

/// The one kind of command that really runs: a function of the program, with its copy of the arguments.
class NativeKernel : public HostAction {
 public:
  NativeKernel(void(CL_CALLBACK* function)(void*), std::vector<std::byte> arguments)
      : function_(function), arguments_(std::move(arguments)) {}
  void run() override { function_(arguments_.data()); }
  std::vector<std::byte>& arguments() { return arguments_; }

 private:
  void(CL_CALLBACK* function_)(void*);
  std::vector<std::byte> arguments_;
};

}  // namespace
}  // namespace xpu::null_driver

cl_int Api::clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t*,
                                   const std::size_t* global, const std::size_t* local, cl_uint wait_count, const cl_event* wait_list,
                                   cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_kernel(queue, kernel); code != CL_SUCCESS) return code;
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  if (global == nullptr && local != nullptr) return CL_INVALID_GLOBAL_WORK_SIZE;
  if (local != nullptr) {
    std::size_t items = 1;
    for (cl_uint i = 0; i < dimensions; ++i) {
      if (local[i] == 0) return CL_INVALID_WORK_GROUP_SIZE;
      if (local[i] > xpu::null_driver::kMaxWorkGroup) return CL_INVALID_WORK_ITEM_SIZE;
      items *= local[i];
    }
    if (items > xpu::null_driver::kMaxWorkGroup) return CL_INVALID_WORK_GROUP_SIZE;
  }
  return submit({queue, CL_COMMAND_NDRANGE_KERNEL, wait_count, wait_list, event});
}

cl_int Api::clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = xpu::null_driver::check_kernel(queue, kernel); code != CL_SUCCESS) return code;
  return submit({queue, CL_COMMAND_TASK, wait_count, wait_list, event});
}

cl_int Api::clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK* function)(void*), void* arguments, std::size_t argument_bytes,
                                  cl_uint memory_count, const cl_mem* memories, const void** locations, cl_uint wait_count,
                                  const cl_event* wait_list, cl_event* event) {
  if (!is_valid(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (function == nullptr || (arguments == nullptr) != (argument_bytes == 0) || (memory_count == 0) != (memories == nullptr) ||
      (memory_count == 0) != (locations == nullptr)) {
    return CL_INVALID_VALUE;
  }
  const auto* first = static_cast<const std::byte*>(arguments);
  auto action = std::make_unique<xpu::null_driver::NativeKernel>(function, std::vector<std::byte>(first, first + argument_bytes));
  for (cl_uint i = 0; i < memory_count; ++i) {
    if (!is_valid(memories[i])) return CL_INVALID_MEM_OBJECT;
    // A location points into the program's arguments; the pointer to the bytes goes to the same place of the copy.
    const std::ptrdiff_t offset = static_cast<const std::byte*>(locations[i]) - first;
    if (offset < 0 || static_cast<std::size_t>(offset) + sizeof(void*) > argument_bytes) return CL_INVALID_VALUE;
    std::memcpy(action->arguments().data() + offset, &memories[i]->bytes, sizeof(void*));
  }
  return submit({queue, CL_COMMAND_NATIVE_KERNEL, wait_count, wait_list, event}, std::move(action));
}
