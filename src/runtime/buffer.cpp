#include "xpu/runtime/buffer.hpp"

#include <utility>

#include "runtime/callbacks.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu {

using namespace runtime;

namespace {

/// The allocator of a live buffer of this kind, which is there.
memory::Allocator& allocator_of(DeviceState& device, MemoryKind kind) { return **device.memory.buffer_allocator(device, kind); }
memory::HostCachingAllocator& host_allocator_of(DeviceState& device) { return **device.memory.host_allocator(device); }

bool is_busy(StreamState& stream) {
  const std::shared_ptr<hal::Queue> queue = hold_queue(stream);
  if (queue == nullptr) return false;
  const probe::Scope scope;
  const Result<bool> has_ended = queue->query();
  return has_ended && !*has_ended;  // on a lost device nothing runs
}

void record_use_of(DeviceState& device, MemoryKind kind, void* data, const StreamState& stream) {
  if (kind == MemoryKind::host) {
    host_allocator_of(device).record_use(data, memory_ref(stream));
  } else {
    allocator_of(device, kind).record_use(data, memory_ref(stream));
  }
}

Result<void*> allocate_from(DeviceState& device, std::size_t bytes, MemoryKind kind, const memory::StreamRef& stream) {
  if (kind == MemoryKind::host) {
    XPU_TRY_ASSIGN(memory::HostCachingAllocator * allocator, device.memory.host_allocator(device));
    return allocator->allocate(bytes);
  }
  XPU_TRY_ASSIGN(memory::Allocator * allocator, device.memory.buffer_allocator(device, kind));
  return allocator->allocate(bytes, stream);
}

}  // namespace

Result<Buffer> Buffer::allocate(std::size_t bytes, MemoryKind kind, int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  return allocate_on(*device, bytes, kind, nullptr);
}

Result<Buffer> Buffer::allocate(std::size_t bytes, const Stream& stream) {
  XPU_TRY(ensure_initialized());
  XPU_TRY(check_not_released(*stream.state_));
  return allocate_on(*stream.state_->device, bytes, MemoryKind::device, &stream);
}

Result<Buffer> Buffer::allocate_on(DeviceState& device, std::size_t bytes, MemoryKind kind, const Stream* stream) {
  if (bytes == 0) return Error{ErrorCode::invalid_argument, "a buffer of 0 bytes was asked for, it must have at least 1"};
  void* data = nullptr;
  {
    PublishedCall call(&ApiNames::allocate);
    // Memory of no stream is reused when whoever used it is known to be done: id 0 is no stream's.
    const memory::StreamRef owner = stream == nullptr ? memory::StreamRef{} : memory_ref(*stream->state_);
    XPU_TRY_ASSIGN(data, call.finish(allocate_from(device, bytes, kind, owner)));
  }
  device.memory.publish_buffer(device, kind, data, bytes);
  reached(gpu_trace::Point::memory_allocation, data);
  return Buffer(data, bytes, kind, device.index, stream != nullptr);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      kind_(other.kind_),
      is_of_one_stream_(other.is_of_one_stream_),
      device_(other.device_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    kind_ = other.kind_;
    is_of_one_stream_ = other.is_of_one_stream_;
    device_ = other.device_;
  }
  return *this;
}

Buffer::~Buffer() { release(); }

void Buffer::record_use(const Stream& stream) const {
  if (data_ == nullptr || !is_running()) return;
  record_use_of(*enumeration().devices[static_cast<std::size_t>(device_)], kind_, data_, *stream.state_);
}

void Buffer::release() noexcept {
  if (data_ == nullptr) return;
  // At exit and in a forked child the memory goes with the process.
  if (is_running()) {
    DeviceState& device = *enumeration().devices[static_cast<std::size_t>(device_)];
    reached(gpu_trace::Point::memory_deallocation, data_);
    const PublishedCall call(&ApiNames::free);
    if (!is_of_one_stream_) {
      for_each_stream(device, [&](StreamState& stream) {
        if (is_busy(stream)) record_use_of(device, kind_, data_, stream);
      });
    }
    // Told before its address can be another block's.
    device.memory.publish_end_of_buffer(device, kind_, data_, size_bytes_);
    if (kind_ == MemoryKind::host) {
      static_cast<void>(host_allocator_of(device).free(data_));
    } else {
      static_cast<void>(allocator_of(device, kind_).free(data_));
    }
  }
  data_ = nullptr;
}

}  // namespace xpu
