#include "kernel_launch.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <limits>
#include <mutex>

#include "device_allocator.hpp"

namespace xpu_torch {
namespace {

std::uint64_t most_items_of_any_group(int device) {
  const xpu::DeviceProperties& properties = check(xpu::Device::get(device)).properties();
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  // 0 is "no limit"
  if (properties.max_work_group_size != 0) most = properties.max_work_group_size;
  for (const std::uint64_t of_dimension : properties.max_work_item_sizes) {
    if (of_dimension != 0) most = std::min(most, of_dimension);
  }
  return most;
}

at::Tensor tensor_over(int device, const xpu::Stream& stream, std::size_t bytes, caffe2::TypeMeta type) {
  void* const address = allocate_on(stream.memory_ref(), device, bytes);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(address, address, &free_block, device_of(device)),
                       &device_allocator(), /*resizable=*/true);
  return at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(kDispatchKey), type);
}

}  // namespace

const DeviceKernel& KernelOfDevices::make(int device) {
  static std::mutex& mutex = *new std::mutex();
  const std::lock_guard lock(mutex);
  auto& place = made_[static_cast<std::size_t>(device)];
  if (const DeviceKernel* const made = place.load(std::memory_order_acquire)) return *made;
  const xpu::KernelArgument argument{"work", xpu::ArgumentType::structure, xpu::ArgumentType::none, argument_bytes_, 0};
  const auto one = [&](bool is_short) {
    return check(xpu::Kernel::from_function(name_, function_, {&argument, 1}, {.short_and_independent = is_short}, device));
  };
  const auto* const made = new DeviceKernel{one(true), one(false), most_items_of_any_group(device)};
  place.store(made, std::memory_order_release);
  return *made;
}

at::Tensor empty_on(int device, const xpu::Stream& stream, c10::IntArrayRef sizes, caffe2::TypeMeta type) {
  at::Tensor made = tensor_over(device, stream, at::detail::computeStorageNbytesContiguous(sizes, type.itemsize()), type);
  made.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return made;
}

at::Tensor empty_as(const at::Tensor& dense, const xpu::Stream& stream) {
  if (dense.is_contiguous()) return empty_on(dense.device().index(), stream, dense.sizes(), dense.dtype());
  at::Tensor made = tensor_over(dense.device().index(), stream, dense.nbytes(), dense.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(dense.sizes(), dense.strides());
  return made;
}

}  // namespace xpu_torch
