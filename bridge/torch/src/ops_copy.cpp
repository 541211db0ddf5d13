#include "copy.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include "cpu_kernel.hpp"
#include "host_allocator.hpp"
#include "run_on_stream.hpp"

// Values from one place to another.
namespace xpu_torch {
namespace {

bool is_ours(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }

// Whether all elements are one run of bytes that means the same in both.
bool are_same_bytes(const at::Tensor& self, const at::Tensor& source) {
  return self.scalar_type() == source.scalar_type() && self.is_neg() == source.is_neg() && self.is_conj() == source.is_conj() &&
         self.strides().equals(source.strides()) && self.sizes().equals(source.sizes()) && self.is_non_overlapping_and_dense();
}

// Later work of `waiting` comes after everything that `other` has now.
void order_behind(const xpu::Stream& waiting, const xpu::Stream& other) {
  if (!(waiting == other)) check(waiting.wait(other));
}

void copy_bytes_on_device(const at::Tensor& self, const at::Tensor& source) {
  const xpu::Stream stream = current_stream(source.device().index());
  const xpu::Stream owner = current_stream(self.device().index());
  order_behind(stream, owner);
  check(stream.copy(self.mutable_data_ptr(), source.const_data_ptr(), self.nbytes()));
  order_behind(owner, stream);
}

void copy_on_cpu(const at::Tensor& source, at::Tensor& self) { self.copy_(source); }
using CopyKernel = CpuKernel<"xpu_copy_elements", decltype(copy_on_cpu), &copy_on_cpu>;

// Other types, or other strides: every element by itself.
void copy_elements(const at::Tensor& self, const at::Tensor& source) {
  if (can_be_operand(self) && can_be_operand(source)) return CopyKernel::launch(self.device().index(), self.numel(), self, source, self);
  at::Tensor destination = cpu_alias(self);
  const at::Tensor from = cpu_alias(source);
  run_on_stream("xpu_copy_elements", self.device().index(), geometry_of(self), [&] { destination.copy_(from); });
}

void copy_on_device(const at::Tensor& self, const at::Tensor& source) {
  if (are_same_bytes(self, source)) {
    copy_bytes_on_device(self, source);
  } else if (self.device() == source.device()) {
    copy_elements(self, source);
  } else {
    const at::Tensor dense = at::empty_like(self, at::TensorOptions().device(source.device()), at::MemoryFormat::Contiguous);
    copy_elements(dense, source);
    at::Tensor arrived = self;
    if (self.is_contiguous()) {
      copy_bytes_on_device(self, dense);
    } else {
      const at::Tensor there = at::empty_like(dense, at::TensorOptions().device(self.device()));
      copy_bytes_on_device(there, dense);
      copy_elements(self, there);
    }
  }
}

void copy_from_host(const at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (!are_same_bytes(self, source)) {
    // The host's values as the device wants them, if they can lie there as they are; else they are spread out there.
    const bool is_dense = self.is_non_overlapping_and_dense() && !self.is_neg() && !self.is_conj();
    const auto on_host = self.options().device(c10::DeviceType::CPU);
    const at::Tensor values = is_dense ? at::empty_strided(self.sizes(), self.strides(), on_host) : at::empty(self.sizes(), on_host);
    values.copy_(source);
    if (is_dense) {
      copy_from_host(self, values, false);
    } else {
      const at::Tensor there = at::empty_like(self, at::MemoryFormat::Contiguous);
      copy_from_host(there, values, false);
      copy_elements(self, there);
    }
    return;
  }
  const xpu::Stream stream = current_stream(self.device().index());
  const void* const bytes = source.const_data_ptr();
  if (non_blocking && is_pinned(bytes)) {
    check(stream.copy(self.mutable_data_ptr(), bytes, self.nbytes()));
    static_cast<void>(pinned_allocator().record_use(bytes, stream.memory_ref()));
  } else {
    check(stream.copy_blocking(self.mutable_data_ptr(), bytes, self.nbytes()));
  }
}

void copy_to_host(const at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (!are_same_bytes(self, source)) {
    const at::Tensor dense = source.is_non_overlapping_and_dense() && !source.is_neg() && !source.is_conj()
                                 ? source
                                 : source.clone(at::MemoryFormat::Contiguous);
    const at::Tensor values = at::empty_strided(dense.sizes(), dense.strides(), dense.options().device(c10::DeviceType::CPU));
    copy_to_host(values, dense, false);
    self.copy_(values);
    return;
  }
  const xpu::Stream stream = current_stream(source.device().index());
  void* const bytes = self.mutable_data_ptr();
  if (non_blocking && is_pinned(bytes)) {
    check(stream.copy(bytes, source.const_data_ptr(), self.nbytes()));
    static_cast<void>(pinned_allocator().record_use(bytes, stream.memory_ref()));
  } else {
    check(stream.copy_blocking(bytes, source.const_data_ptr(), self.nbytes()));
  }
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
  at::Tensor self = destination;
  copy_(self, source, non_blocking);
  return destination;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& destination) {
  destination.resize_(source.sizes());
  return copy_from(source, destination, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  const at::Tensor value = at::empty({}, self.options().device(c10::DeviceType::CPU));
  check(current_stream(self.device().index()).copy_blocking(value.mutable_data_ptr(), self.const_data_ptr(), self.element_size()));
  if (self.is_conj()) value._set_conj(true);
  if (self.is_neg()) value._set_neg(true);
  return value.item();
}

}  // namespace

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source)) return self;
  const at::Tensor from = source.sizes().equals(self.sizes()) ? source : source.expand(self.sizes());
  if (self.numel() == 0) return self;
  const c10::OptionalDeviceGuard guard(is_ours(self) ? self.device() : source.device());
  if (is_ours(self) && is_ours(from)) {
    copy_on_device(self, from);
  } else if (is_ours(self)) {
    TORCH_CHECK_NOT_IMPLEMENTED(from.device().is_cpu(), "cannot copy from ", from.device(), " to ", self.device());
    copy_from_host(self, from, non_blocking);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(self.device().is_cpu(), "cannot copy from ", from.device(), " to ", self.device());
    copy_to_host(self, from, non_blocking);
  }
  return self;
}

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("copy_", &copy_);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar);
}

}  // namespace xpu_torch
