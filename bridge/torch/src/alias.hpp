#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <utility>

#include "xpu/memory/stream_ref.hpp"

/// The same bytes as tensors of two devices: where host and device share memory, PyTorch's CPU kernels can work on a device's tensors
/// without a copy.
namespace xpu_torch {

/// A CPU tensor over the bytes of a device tensor, with its sizes, strides and bits, which keeps them alive; any other tensor as it is.
/// Error NotImplementedError for a tensor without a storage of bytes (sparse).
at::Tensor cpu_alias(const at::Tensor& tensor);
/// The same where there is a CPU alias of a tensor with the same storage: they share one, too, and the CPU sees what overlaps.
at::Tensor cpu_alias_beside(const at::Tensor& tensor, const at::Tensor& other_alias);
/// A tensor like `geometry` over the bytes of a device's storage.
at::Tensor device_view(const at::Tensor& geometry, c10::Storage storage);
/// What a CPU kernel made, as a storage of the device: its bytes are taken over where they are device memory (`DeviceMemoryForCpu`), else
/// copied.
c10::Storage take_over(const c10::Storage& made, int device);
/// The same into a storage that there is: it has the bytes of `grown` afterwards.
void adopt(c10::StorageImpl& storage, c10::StorageImpl& grown, int device);

/// While one lives, memory that this thread takes for CPU tensors is the device's, of that stream.
class DeviceMemoryForCpu {
 public:
  DeviceMemoryForCpu(int device, const xpu::memory::StreamRef& stream) noexcept;
  ~DeviceMemoryForCpu();
  DeviceMemoryForCpu(const DeviceMemoryForCpu&) = delete;
  DeviceMemoryForCpu& operator=(const DeviceMemoryForCpu&) = delete;

  int device() const noexcept { return device_; }
  const xpu::memory::StreamRef& stream() const noexcept { return stream_; }

 private:
  const int device_;
  const xpu::memory::StreamRef stream_;
  const DeviceMemoryForCpu* const outer_;
};

/// While one lives, the first CPU tensor of exactly so many bytes that this thread makes lies here: an operator that makes its result
/// itself makes it where it belongs. Whoever asks looks whether it did. For operators that make tensors and take no memory in another way.
class ResultMemoryForCpu {
 public:
  ResultMemoryForCpu(void* address, std::size_t bytes) noexcept;
  ~ResultMemoryForCpu();
  ResultMemoryForCpu(const ResultMemoryForCpu&) = delete;
  ResultMemoryForCpu& operator=(const ResultMemoryForCpu&) = delete;

  /// The memory, if it is of this size and nobody has it yet; else null.
  void* take(std::size_t bytes) noexcept { return bytes == bytes_ ? std::exchange(address_, nullptr) : nullptr; }

 private:
  void* address_;
  const std::size_t bytes_;
  ResultMemoryForCpu* const outer_;
};

/// From now on DeviceMemoryForCpu and ResultMemoryForCpu have an effect: PyTorch's allocator of CPU memory becomes one that asks for them,
/// and else passes on.
void install_cpu_allocator();

}  // namespace xpu_torch
