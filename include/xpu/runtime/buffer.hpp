#pragma once

#include <cstddef>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/device.hpp"

namespace xpu {

using hal::MemoryKind;

/// A block of memory of one device. Movable, one owner. Work that was submitted to the device's streams before its end may use it: the
/// memory goes back when that work has ended. Nothing waits for that but an allocation that would fail without it.
class XPU_EXPORT Buffer {
 public:
  /// `device` negative: the current one. Errors: invalid_argument for 0 bytes, out_of_device_memory (or host), unsupported for a kind that
  /// the device does not have.
  static Result<Buffer> allocate(std::size_t bytes, MemoryKind kind = MemoryKind::device, int device = -1);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const noexcept { return data_; }
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  MemoryKind kind() const noexcept { return kind_; }
  int device() const noexcept { return device_; }

 private:
  Buffer(void* data, std::size_t size_bytes, MemoryKind kind, int device) noexcept
      : data_(data), size_bytes_(size_bytes), kind_(kind), device_(device) {}
  void release() noexcept;

  void* data_;
  std::size_t size_bytes_;
  MemoryKind kind_;
  int device_;
};

}  // namespace xpu
