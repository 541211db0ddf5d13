#include "xpu/runtime/buffer.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/callbacks.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu {

using namespace runtime;

namespace {

bool is_out_of_memory(const Error& error) {
  return error.code == ErrorCode::out_of_device_memory || error.code == ErrorCode::out_of_host_memory;
}

/// Before the memory is said to be used up, what is free but for work that has not ended is waited for.
Result<void*> allocate_waiting(DeviceState& device, hal::MemoryProvider& memory, std::size_t bytes) {
  while (true) {
    const std::uint64_t freed = device.deferred_free.freed_count();
    Result<void*> data = [&] {
      const probe::Scope scope;
      return memory.allocate(bytes, 1);
    }();
    if (data || !is_out_of_memory(data.error())) return data;
    // Or another thread waited for it, just after this one asked.
    if (!device.deferred_free.wait_for_one() && device.deferred_free.freed_count() == freed) return data;
  }
}

}  // namespace

Result<Buffer> Buffer::allocate(std::size_t bytes, MemoryKind kind, int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  if (bytes == 0) return Error{ErrorCode::invalid_argument, "a buffer of 0 bytes was asked for, it must have at least 1"};
  hal::MemoryProvider* memory = device->device.load(std::memory_order_acquire)->memory(kind);
  if (memory == nullptr) {
    return Error{ErrorCode::unsupported,
                 fmt::format("device {} ({}) has no {} memory", device->index, device->properties.name, to_string(kind))};
  }
  void* data = nullptr;
  {
    PublishedCall call(&ApiNames::allocate);
    device->deferred_free.poll();
    XPU_TRY_ASSIGN(data, call.finish(allocate_waiting(*device, *memory, bytes)));
  }
  remember_memory(data, bytes, kind, *device);
  const std::uint64_t total = device->allocated_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  publish_memory(*device, probe::MemoryAction::allocate, kind, data, bytes, total);
  reached(gpu_trace::Point::memory_allocation, data);
  return Buffer(data, bytes, kind, device->index);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      kind_(other.kind_),
      device_(other.device_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    kind_ = other.kind_;
    device_ = other.device_;
  }
  return *this;
}

Buffer::~Buffer() { release(); }

void Buffer::release() noexcept {
  if (data_ == nullptr) return;
  // At exit and in a forked child the memory goes with the process.
  if (is_running()) {
    DeviceState& device = *enumeration().devices[static_cast<std::size_t>(device_)];
    reached(gpu_trace::Point::memory_deallocation, data_);
    const PublishedCall call(&ApiNames::free);
    device.deferred_free.poll();
    device.deferred_free.free({data_, size_bytes_, kind_});
  }
  data_ = nullptr;
}

}  // namespace xpu
