#pragma once

#include <cstddef>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"

namespace xpu {

class Stream;
namespace runtime {
struct DeviceState;
}

using hal::MemoryKind;

/// A block of memory of one device, out of the device's caching allocator (see Device::allocator). Movable, one owner.
///
/// A buffer is either for all streams or for one of them. That of all streams may be used by any as soon as it is there: what was submitted
/// to the device's streams before its end may use it, and its memory serves again when that work has ended. That of one stream costs less,
/// because a stream's work is in order: its memory may serve the same stream at once. Whoever uses it on another stream says so with
/// `record_use`, and makes that stream wait for whatever used the memory before.
///
/// Nothing waits for work to end but an allocation that would fail without it.
class XPU_EXPORT Buffer {
 public:
  /// For all streams. `device` negative: the current one. Errors: invalid_argument for 0 bytes or an `XPU_MEMORY_CONF` that makes no sense,
  /// out_of_device_memory (or host), unsupported for a kind that the device does not have.
  static Result<Buffer> allocate(std::size_t bytes, MemoryKind kind = MemoryKind::device, int device = -1);
  /// Device memory for this stream. The same errors.
  static Result<Buffer> allocate(std::size_t bytes, const Stream& stream);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Work of this stream that was submitted, or will be before the buffer's end, uses it. Needless for a buffer of all streams.
  void record_use(const Stream& stream) const;

  void* data() const noexcept { return data_; }
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  MemoryKind kind() const noexcept { return kind_; }
  int device() const noexcept { return device_; }

 private:
  Buffer(void* data, std::size_t size_bytes, MemoryKind kind, int device, bool is_of_one_stream) noexcept
      : data_(data), size_bytes_(size_bytes), kind_(kind), is_of_one_stream_(is_of_one_stream), device_(device) {}
  static Result<Buffer> allocate_on(runtime::DeviceState& device, std::size_t bytes, MemoryKind kind, const Stream* stream);
  void release() noexcept;

  void* data_;
  std::size_t size_bytes_;
  MemoryKind kind_;
  bool is_of_one_stream_;
  int device_;
};

}  // namespace xpu
