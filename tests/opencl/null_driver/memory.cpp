#include <cstdlib>

#include "null_driver/api.hpp"
#include "null_driver/memory.hpp"
#include "null_driver/platforms.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;

namespace xpu::null_driver {

cl_int check_flags(cl_mem_flags flags, const void* host_pointer) noexcept {
  constexpr cl_mem_flags kAccess = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
  constexpr cl_mem_flags kHost = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  constexpr cl_mem_flags kHostAccess = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
  const auto more_than_one = [&](cl_mem_flags mask) { return ((flags & mask) & ((flags & mask) - 1)) != 0; };
  if (more_than_one(kAccess) || more_than_one(kHostAccess)) return CL_INVALID_VALUE;
  if ((flags & ~(kAccess | kHost | kHostAccess | CL_MEM_ALLOC_HOST_PTR | CL_MEM_KERNEL_READ_AND_WRITE)) != 0) return CL_INVALID_VALUE;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0 && (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0) return CL_INVALID_VALUE;
  if (((flags & kHost) != 0) != (host_pointer != nullptr)) return CL_INVALID_HOST_PTR;
  return CL_SUCCESS;
}

bool allocate(cl_mem memory, void* host_pointer) noexcept {
  memory->host_pointer = host_pointer;
  if ((memory->flags & CL_MEM_USE_HOST_PTR) != 0) {
    memory->bytes = static_cast<std::byte*>(host_pointer);
    return true;
  }
  memory->bytes = static_cast<std::byte*>(std::calloc(memory->size_bytes == 0 ? 1 : memory->size_bytes, 1));
  memory->owns_bytes = true;
  if (memory->bytes != nullptr && (memory->flags & CL_MEM_COPY_HOST_PTR) != 0) std::memcpy(memory->bytes, host_pointer, memory->size_bytes);
  return memory->bytes != nullptr;
}

void destroy(cl_mem memory) {
  for (auto callback = memory->callbacks.rbegin(); callback != memory->callbacks.rend(); ++callback) {
    callback->function(memory, callback->user_data);
  }
  if (memory->owns_bytes) std::free(memory->bytes);
  if (memory->parent != nullptr) let_go(memory->parent);
  let_go(memory->context);
  delete memory;
}

namespace {

cl_mem create_buffer(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags, std::size_t size_bytes,
                     void* host_pointer, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (properties != nullptr && properties[0] != 0) return refuse(error, CL_INVALID_PROPERTY);  // none is known
  if (size_bytes == 0 || size_bytes > kMaxAllocationBytes) return refuse(error, CL_INVALID_BUFFER_SIZE);
  if (const cl_int code = check_flags(flags, host_pointer); code != CL_SUCCESS) return refuse(error, code);
  auto* memory = new _cl_mem;
  memory->context = keep(context);
  memory->flags = flags == 0 ? CL_MEM_READ_WRITE : flags;
  memory->size_bytes = size_bytes;
  memory->properties = copy_properties(properties);
  if (!allocate(memory, host_pointer)) {
    destroy(memory);
    return refuse(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  }
  return created(error, memory);
}

}  // namespace
}  // namespace xpu::null_driver

cl_mem Api::clCreateBuffer(cl_context context, cl_mem_flags flags, std::size_t size_bytes, void* host_pointer, cl_int* error) {
  return xpu::null_driver::create_buffer(context, nullptr, flags, size_bytes, host_pointer, error);
}

cl_mem Api::clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                         std::size_t size_bytes, void* host_pointer, cl_int* error) {
  return xpu::null_driver::create_buffer(context, properties, flags, size_bytes, host_pointer, error);
}

cl_mem Api::clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* info, cl_int* error) {
  if (!is_valid(buffer) || buffer->type != CL_MEM_OBJECT_BUFFER || buffer->parent != nullptr) return refuse(error, CL_INVALID_MEM_OBJECT);
  if (type != CL_BUFFER_CREATE_TYPE_REGION || info == nullptr) return refuse(error, CL_INVALID_VALUE);
  const auto& region = *static_cast<const cl_buffer_region*>(info);
  if (region.size == 0) return refuse(error, CL_INVALID_BUFFER_SIZE);
  if (region.origin > buffer->size_bytes || region.size > buffer->size_bytes - region.origin) return refuse(error, CL_INVALID_VALUE);
  if (region.origin % 128 != 0) return refuse(error, CL_MISALIGNED_SUB_BUFFER_OFFSET);
  auto* memory = new _cl_mem;
  memory->context = xpu::null_driver::keep(buffer->context);
  memory->parent = xpu::null_driver::keep(buffer);
  memory->flags = flags == 0 ? buffer->flags : flags;
  memory->size_bytes = region.size;
  memory->offset_bytes = region.origin;
  memory->bytes = buffer->bytes + region.origin;
  if (buffer->host_pointer != nullptr) memory->host_pointer = static_cast<std::byte*>(buffer->host_pointer) + region.origin;
  return xpu::null_driver::created(error, memory);
}

cl_int Api::clRetainMemObject(cl_mem memory) {
  if (!is_valid(memory)) return CL_INVALID_MEM_OBJECT;
  xpu::null_driver::retain(memory);
  return CL_SUCCESS;
}

cl_int Api::clReleaseMemObject(cl_mem memory) {
  if (!is_valid(memory)) return CL_INVALID_MEM_OBJECT;
  xpu::null_driver::release(memory);
  return CL_SUCCESS;
}

cl_int Api::clSetMemObjectDestructorCallback(cl_mem memory, void(CL_CALLBACK* function)(cl_mem, void*), void* user_data) {
  if (!is_valid(memory)) return CL_INVALID_MEM_OBJECT;
  if (function == nullptr) return CL_INVALID_VALUE;
  memory->lock.lock();
  memory->callbacks.push_back({function, user_data});
  memory->lock.unlock();
  return CL_SUCCESS;
}

cl_int Api::clGetMemObjectInfo(cl_mem memory, cl_mem_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(memory)) return CL_INVALID_MEM_OBJECT;
  switch (query) {
    case CL_MEM_TYPE: return answer<cl_mem_object_type>(memory->type, room, value, size_ret);
    case CL_MEM_FLAGS: return answer<cl_mem_flags>(memory->flags, room, value, size_ret);
    case CL_MEM_SIZE: return answer<std::size_t>(memory->size_bytes, room, value, size_ret);
    case CL_MEM_HOST_PTR:
      return answer<void*>((memory->flags & CL_MEM_USE_HOST_PTR) != 0 ? memory->host_pointer : nullptr, room, value, size_ret);
    case CL_MEM_MAP_COUNT: return answer<cl_uint>(memory->map_count.load(std::memory_order_relaxed), room, value, size_ret);
    case CL_MEM_REFERENCE_COUNT: return answer<cl_uint>(memory->reference_count(), room, value, size_ret);
    case CL_MEM_CONTEXT: return answer<cl_context>(memory->context, room, value, size_ret);
    case CL_MEM_ASSOCIATED_MEMOBJECT: return answer<cl_mem>(memory->parent, room, value, size_ret);
    case CL_MEM_OFFSET: return answer<std::size_t>(memory->offset_bytes, room, value, size_ret);
    case CL_MEM_USES_SVM_POINTER: return answer<cl_bool>(CL_FALSE, room, value, size_ret);
    case CL_MEM_PROPERTIES: return xpu::null_driver::answer_list(memory->properties, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

void* Api::clSVMAlloc(cl_context context, cl_svm_mem_flags flags, std::size_t size_bytes, cl_uint alignment) {
  constexpr cl_uint kLargestAlignment = 128;
  if (!is_valid(context) || size_bytes == 0 || size_bytes > xpu::null_driver::kMaxAllocationBytes) return nullptr;
  if ((flags & CL_MEM_SVM_ATOMICS) != 0 || (alignment & (alignment - 1)) != 0 || alignment > kLargestAlignment) return nullptr;
  void* pointer = nullptr;
  return posix_memalign(&pointer, kLargestAlignment, size_bytes) == 0 ? pointer : nullptr;
}

void Api::clSVMFree(cl_context, void* pointer) { std::free(pointer); }
