#include <memory>
#include <new>

#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/transfers.hpp"

namespace xpu::interceptors::opencl {

void* Wrappers::clSVMAlloc(cl_context context, cl_svm_mem_flags flags, std::size_t bytes, cl_uint alignment) {
  Call call(Entry::clSVMAlloc);
  void* const address = target().clSVMAlloc(context, flags, bytes, alignment);
  if (address != nullptr && is_tracking()) shared_block_created(address, context, bytes);
  return call.finish(address, address != nullptr ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

void Wrappers::clSVMFree(cl_context context, void* address) {
  Call call(Entry::clSVMFree);
  // Before the driver frees it: another thread may get the same address at once.
  if (address != nullptr && is_tracking()) shared_block_freed(address);
  target().clSVMFree(context, address);
  call.finish(CL_SUCCESS);
}

namespace {

/// The program's callback of clEnqueueSVMFree, or the driver's own freeing, behind ours.
struct FreeRequest {
  void(CL_CALLBACK* function)(cl_command_queue, cl_uint, void*[], void*);
  void* user_data;
};

void CL_CALLBACK free_blocks(cl_command_queue queue, cl_uint count, void* addresses[], void* user_data) {
  const std::unique_ptr<FreeRequest> request(static_cast<FreeRequest*>(user_data));
  for (cl_uint index = 0; addresses != nullptr && index < count; ++index) shared_block_freed(addresses[index]);
  request->function(queue, count, addresses, request->user_data);
}

}  // namespace

cl_int Wrappers::clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void* addresses[],
                                  void(CL_CALLBACK* function)(cl_command_queue, cl_uint, void*[], void*), void* user_data,
                                  cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueSVMFree, probe::Command::shared_free, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueSVMFree(queue, count, addresses, function, user_data, wait_count, wait_list, event));
  }
  // With a callback the program frees, when the command runs. Without one the driver does, and the blocks are gone for the program now.
  if (function == nullptr) {
    const cl_int result =
        command.finish(target().clEnqueueSVMFree(queue, count, addresses, nullptr, user_data, wait_count, wait_list, command.start()));
    for (cl_uint index = 0; result == CL_SUCCESS && index < count; ++index) shared_block_freed(addresses[index]);
    return result;
  }
  std::unique_ptr<FreeRequest> request(new (std::nothrow) FreeRequest{function, user_data});
  const bool is_ours = request != nullptr;
  const cl_int result =
      command.finish(target().clEnqueueSVMFree(queue, count, addresses, is_ours ? free_blocks : function,
                                               is_ours ? request.get() : user_data, wait_count, wait_list, command.start()));
  if (result == CL_SUCCESS) static_cast<void>(request.release());  // the callback's now
  return result;
}

cl_int Wrappers::clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool is_blocking, void* destination, const void* source, std::size_t bytes,
                                    cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueSVMMemcpy, probe::Command::copy, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueSVMMemcpy(queue, is_blocking, destination, source, bytes, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = copy_between(in_shared_or_host(source), in_shared_or_host(destination), bytes);
  command.set_copy(detail);
  return command.finish_transfer(
      target().clEnqueueSVMMemcpy(queue, is_blocking, destination, source, bytes, wait_count, wait_list, command.start()), is_blocking);
}

cl_int Wrappers::clEnqueueSVMMemFill(cl_command_queue queue, void* destination, const void* pattern, std::size_t pattern_bytes,
                                     std::size_t bytes, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueSVMMemFill, probe::Command::fill, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueSVMMemFill(queue, destination, pattern, pattern_bytes, bytes, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = fill_of(in_shared_or_host(destination), pattern, pattern_bytes, bytes);
  command.set_copy(detail);
  return command.finish(
      target().clEnqueueSVMMemFill(queue, destination, pattern, pattern_bytes, bytes, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueSVMMap(cl_command_queue queue, cl_bool is_blocking, cl_map_flags flags, void* address, std::size_t bytes,
                                 cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueSVMMap, probe::Command::map, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueSVMMap(queue, is_blocking, flags, address, bytes, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = map_of(in_shared_or_host(address), address, flags, bytes);
  command.set_copy(detail);
  return command.finish_transfer(
      target().clEnqueueSVMMap(queue, is_blocking, flags, address, bytes, wait_count, wait_list, command.start()), is_blocking);
}

cl_int Wrappers::clEnqueueSVMUnmap(cl_command_queue queue, void* address, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueSVMUnmap, probe::Command::unmap, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueSVMUnmap(queue, address, wait_count, wait_list, event));
  const probe::CopyDetail detail = copy_between(in_host(address), in_shared_or_host(address), 0);
  command.set_copy(detail);
  return command.finish(target().clEnqueueSVMUnmap(queue, address, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void** addresses, const std::size_t* sizes,
                                        cl_mem_migration_flags flags, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueSVMMigrateMem, probe::Command::migrate, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueSVMMigrateMem(queue, count, addresses, sizes, flags, wait_count, wait_list, event));
  }
  // A size of 0, or no sizes, means the whole block.
  std::uint64_t bytes = 0;
  for (cl_uint index = 0; addresses != nullptr && index < count; ++index) {
    if (sizes != nullptr && sizes[index] != 0) {
      bytes += sizes[index];
    } else if (const SharedBlock* block = shared_block_at(addresses[index])) {
      bytes += block->bytes;
    }
  }
  const Place first = addresses != nullptr && count != 0 ? in_shared_or_host(addresses[0]) : Place{};
  const probe::CopyDetail detail = migration_of(first, (flags & CL_MIGRATE_MEM_OBJECT_HOST) != 0, bytes);
  command.set_copy(detail);
  return command.finish(target().clEnqueueSVMMigrateMem(queue, count, addresses, sizes, flags, wait_count, wait_list, command.start()));
}

}  // namespace xpu::interceptors::opencl
