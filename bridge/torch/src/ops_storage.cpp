#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_efficientzerotensor_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "check.hpp"
#include "device_allocator.hpp"
#include "devices.hpp"
#include "storage.hpp"

// Operators that make tensors, or give them other bytes and another shape, and touch no values.
namespace xpu_torch {

void resize_storage(const c10::Storage& storage, std::size_t bytes) {
  auto& impl = *storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl.resizable(), "Trying to resize storage that is not resizable");
  const int device = impl.device().index();
  c10::DataPtr made = [&] {
    const c10::DeviceGuard guard(impl.device());
    return device_allocator().allocate(bytes);
  }();
  const std::size_t kept = std::min(bytes, impl.nbytes());
  if (kept != 0) check(current_stream(device).copy(made.get(), impl.data(), kept));
  impl.set_data_ptr_noswap(std::move(made));
  impl.set_nbytes(bytes);
}

namespace {

using c10::IntArrayRef;
using std::optional;

c10::Device device_or_current(optional<c10::Device> device) {
  return device_of(device ? resolve_device(device->index()) : xpu::Device::current());
}
void check_not_pinned(optional<bool> pin_memory) { TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned"); }
void check_strided(optional<c10::Layout> layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::Layout::Strided) == c10::Layout::Strided, "device ", kDeviceType,
                              " has strided tensors only, not ", *layout);
}

at::Tensor empty(IntArrayRef size, optional<at::ScalarType> type, optional<c10::Layout> layout, optional<c10::Device> device,
                 optional<bool> pin_memory, optional<at::MemoryFormat> format) {
  check_not_pinned(pin_memory);
  check_strided(layout);
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(size, &device_allocator(), c10::DispatchKeySet(kDispatchKey), c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(IntArrayRef size, IntArrayRef stride, optional<at::ScalarType> type, optional<c10::Layout> layout,
                         optional<c10::Device> device, optional<bool> pin_memory) {
  check_not_pinned(pin_memory);
  check_strided(layout);
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_strided_generic(size, stride, &device_allocator(), c10::DispatchKeySet(kDispatchKey),
                                           c10::dtype_or_default(type));
}

// The elements are zeros here as everywhere else: a tensor of zeros without bytes could not be given to the CPU's kernels.
at::Tensor efficient_zeros(IntArrayRef size, optional<at::ScalarType> type, optional<c10::Layout>, optional<c10::Device> device,
                           optional<bool>) {
  return at::zeros(size, at::TensorOptions().dtype(type).device(device_or_current(device)));
}

void grow_storage_for(c10::TensorImpl& tensor) {
  const std::size_t wanted = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.dtype().itemsize(),
                                                              static_cast<std::size_t>(tensor.storage_offset()));
  if (tensor.numel() != 0 && wanted > tensor.storage().nbytes()) resize_storage(tensor.storage(), wanted);
}

const at::Tensor& resize_(const at::Tensor& self, IntArrayRef size, optional<at::MemoryFormat> format) {
  auto& impl = *self.unsafeGetTensorImpl();
  // With the sizes that it has a tensor keeps its strides, whatever they are.
  if (!self.sizes().equals(size)) {
    impl.set_sizes_contiguous(size);
    grow_storage_for(impl);
  }
  if (format) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl.empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_to_storage_at(at::Tensor& self, at::Storage storage, std::int64_t offset, IntArrayRef size, IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(storage), offset, size, stride, /*check_offset_in_bounds=*/false);
  auto& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(offset);
  if (stride.data() != nullptr) {
    impl.set_sizes_and_strides(size, stride);
  } else {
    impl.set_sizes_contiguous(size);
  }
  grow_storage_for(impl);
  return self;
}
at::Tensor& set_to_storage(at::Tensor& self, at::Storage storage) {
  const auto length = static_cast<std::int64_t>(storage.nbytes() / self.dtype().itemsize());
  return set_to_storage_at(self, std::move(storage), 0, {length}, {});
}
at::Tensor& set_to_nothing(at::Tensor& self) {
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, self.device()), &device_allocator(), /*resizable=*/true);
  return set_to_storage_at(self, std::move(none), 0, {0}, {});
}

void record_stream(at::Tensor& self, c10::Stream stream) { device_allocator().recordStream(self.storage().data_ptr(), stream); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_efficientzerotensor", &efficient_zeros);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage_storage_offset", &set_to_storage_at);
  library.impl("set_.source_Storage", &set_to_storage);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("set_", &set_to_nothing);
  library.impl("record_stream", &record_stream);
}

}  // namespace xpu_torch
