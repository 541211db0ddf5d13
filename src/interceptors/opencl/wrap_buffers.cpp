#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/transfers.hpp"

namespace xpu::interceptors::opencl {

cl_int Wrappers::clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, std::size_t offset, std::size_t bytes,
                                     void* host, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueReadBuffer, probe::Command::read, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueReadBuffer(queue, buffer, is_blocking, offset, bytes, host, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = copy_between(in_memory(buffer), in_host(host), bytes);
  command.set_copy(detail);
  return command.finish_transfer(
      target().clEnqueueReadBuffer(queue, buffer, is_blocking, offset, bytes, host, wait_count, wait_list, command.start()), is_blocking);
}

cl_int Wrappers::clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, std::size_t offset, std::size_t bytes,
                                      const void* host, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueWriteBuffer, probe::Command::write, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueWriteBuffer(queue, buffer, is_blocking, offset, bytes, host, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = copy_between(in_host(host), in_memory(buffer), bytes);
  command.set_copy(detail);
  return command.finish_transfer(
      target().clEnqueueWriteBuffer(queue, buffer, is_blocking, offset, bytes, host, wait_count, wait_list, command.start()), is_blocking);
}

cl_int Wrappers::clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, std::size_t source_offset,
                                     std::size_t destination_offset, std::size_t bytes, cl_uint wait_count, const cl_event* wait_list,
                                     cl_event* event) {
  Command command(Entry::clEnqueueCopyBuffer, probe::Command::copy, queue, event);
  if (!command.is_recorded()) {
    return command.pass(
        target().clEnqueueCopyBuffer(queue, source, destination, source_offset, destination_offset, bytes, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = copy_between(in_memory(source), in_memory(destination), bytes);
  command.set_copy(detail);
  return command.finish(target().clEnqueueCopyBuffer(queue, source, destination, source_offset, destination_offset, bytes, wait_count,
                                                     wait_list, command.start()));
}

cl_int Wrappers::clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, const std::size_t* buffer_origin,
                                         const std::size_t* host_origin, const std::size_t* region, std::size_t buffer_row_pitch,
                                         std::size_t buffer_slice_pitch, std::size_t host_row_pitch, std::size_t host_slice_pitch,
                                         void* host, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueReadBufferRect, probe::Command::read, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueReadBufferRect(queue, buffer, is_blocking, buffer_origin, host_origin, region, buffer_row_pitch,
                                                         buffer_slice_pitch, host_row_pitch, host_slice_pitch, host, wait_count, wait_list,
                                                         event));
  }
  const probe::Rectangle rectangle =
      rectangle_of(buffer_origin, host_origin, region, {buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch});
  const probe::CopyDetail detail =
      copy_between(in_memory(buffer), in_host(host), volume_of(region), probe::CopyForm::rectangle, &rectangle);
  command.set_copy(detail);
  return command.finish_transfer(
      target().clEnqueueReadBufferRect(queue, buffer, is_blocking, buffer_origin, host_origin, region, buffer_row_pitch, buffer_slice_pitch,
                                       host_row_pitch, host_slice_pitch, host, wait_count, wait_list, command.start()),
      is_blocking);
}

cl_int Wrappers::clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, const std::size_t* buffer_origin,
                                          const std::size_t* host_origin, const std::size_t* region, std::size_t buffer_row_pitch,
                                          std::size_t buffer_slice_pitch, std::size_t host_row_pitch, std::size_t host_slice_pitch,
                                          const void* host, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueWriteBufferRect, probe::Command::write, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueWriteBufferRect(queue, buffer, is_blocking, buffer_origin, host_origin, region, buffer_row_pitch,
                                                          buffer_slice_pitch, host_row_pitch, host_slice_pitch, host, wait_count, wait_list,
                                                          event));
  }
  const probe::Rectangle rectangle =
      rectangle_of(host_origin, buffer_origin, region, {host_row_pitch, host_slice_pitch, buffer_row_pitch, buffer_slice_pitch});
  const probe::CopyDetail detail =
      copy_between(in_host(host), in_memory(buffer), volume_of(region), probe::CopyForm::rectangle, &rectangle);
  command.set_copy(detail);
  return command.finish_transfer(
      target().clEnqueueWriteBufferRect(queue, buffer, is_blocking, buffer_origin, host_origin, region, buffer_row_pitch,
                                        buffer_slice_pitch, host_row_pitch, host_slice_pitch, host, wait_count, wait_list, command.start()),
      is_blocking);
}

cl_int Wrappers::clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const std::size_t* source_origin,
                                         const std::size_t* destination_origin, const std::size_t* region, std::size_t source_row_pitch,
                                         std::size_t source_slice_pitch, std::size_t destination_row_pitch,
                                         std::size_t destination_slice_pitch, cl_uint wait_count, const cl_event* wait_list,
                                         cl_event* event) {
  Command command(Entry::clEnqueueCopyBufferRect, probe::Command::copy, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueCopyBufferRect(queue, source, destination, source_origin, destination_origin, region,
                                                         source_row_pitch, source_slice_pitch, destination_row_pitch,
                                                         destination_slice_pitch, wait_count, wait_list, event));
  }
  const probe::Rectangle rectangle = rectangle_of(source_origin, destination_origin, region,
                                                  {source_row_pitch, source_slice_pitch, destination_row_pitch, destination_slice_pitch});
  const probe::CopyDetail detail =
      copy_between(in_memory(source), in_memory(destination), volume_of(region), probe::CopyForm::rectangle, &rectangle);
  command.set_copy(detail);
  return command.finish(target().clEnqueueCopyBufferRect(queue, source, destination, source_origin, destination_origin, region,
                                                         source_row_pitch, source_slice_pitch, destination_row_pitch,
                                                         destination_slice_pitch, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, std::size_t pattern_bytes,
                                     std::size_t offset, std::size_t bytes, cl_uint wait_count, const cl_event* wait_list,
                                     cl_event* event) {
  Command command(Entry::clEnqueueFillBuffer, probe::Command::fill, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset, bytes, wait_count, wait_list, event));
  }
  const probe::CopyDetail detail = fill_of(in_memory(buffer), pattern, pattern_bytes, bytes);
  command.set_copy(detail);
  return command.finish(
      target().clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset, bytes, wait_count, wait_list, command.start()));
}

void* Wrappers::clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, cl_map_flags flags, std::size_t offset,
                                   std::size_t bytes, cl_uint wait_count, const cl_event* wait_list, cl_event* event, cl_int* error_ret) {
  Command command(Entry::clEnqueueMapBuffer, probe::Command::map, queue, event);
  cl_int error = CL_SUCCESS;
  if (!command.is_recorded()) {
    void* const result =
        target().clEnqueueMapBuffer(queue, buffer, is_blocking, flags, offset, bytes, wait_count, wait_list, event, &error);
    command.pass(error);
    if (error_ret != nullptr) *error_ret = error;
    return result;
  }
  const probe::CopyDetail detail = map_of(in_memory(buffer), nullptr, flags, bytes);
  command.set_copy(detail);
  void* const result =
      target().clEnqueueMapBuffer(queue, buffer, is_blocking, flags, offset, bytes, wait_count, wait_list, command.start(), &error);
  command.finish_transfer(error, is_blocking);
  if (error_ret != nullptr) *error_ret = error;
  return result;
}

cl_int Wrappers::clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint wait_count, const cl_event* wait_list,
                                         cl_event* event) {
  Command command(Entry::clEnqueueUnmapMemObject, probe::Command::unmap, queue, event);
  if (!command.is_recorded()) return command.pass(target().clEnqueueUnmapMemObject(queue, memory, mapped, wait_count, wait_list, event));
  const probe::CopyDetail detail = copy_between(in_host(mapped), in_memory(memory), 0);
  command.set_copy(detail);
  return command.finish(target().clEnqueueUnmapMemObject(queue, memory, mapped, wait_count, wait_list, command.start()));
}

cl_int Wrappers::clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint memory_count, const cl_mem* memory_list,
                                            cl_mem_migration_flags flags, cl_uint wait_count, const cl_event* wait_list, cl_event* event) {
  Command command(Entry::clEnqueueMigrateMemObjects, probe::Command::migrate, queue, event);
  if (!command.is_recorded()) {
    return command.pass(target().clEnqueueMigrateMemObjects(queue, memory_count, memory_list, flags, wait_count, wait_list, event));
  }
  std::uint64_t bytes = 0;
  for (cl_uint index = 0; memory_list != nullptr && index < memory_count; ++index) bytes += bytes_of(memory_list[index]);
  const Place first = memory_list != nullptr && memory_count != 0 ? in_memory(memory_list[0]) : Place{};
  const probe::CopyDetail detail = migration_of(first, (flags & CL_MIGRATE_MEM_OBJECT_HOST) != 0, bytes);
  command.set_copy(detail);
  return command.finish(
      target().clEnqueueMigrateMemObjects(queue, memory_count, memory_list, flags, wait_count, wait_list, command.start()));
}

}  // namespace xpu::interceptors::opencl
