#include "alias.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

#include "check.hpp"
#include "device_allocator.hpp"
#include "devices.hpp"

namespace xpu_torch {
namespace {

thread_local const DeviceMemoryForCpu* t_memory = nullptr;
thread_local ResultMemoryForCpu* t_result = nullptr;

/// The process's allocator of CPU memory: a look at two thread-local words, then PyTorch's own.
class CpuAllocator final : public c10::Allocator {
 public:
  explicit CpuAllocator(c10::Allocator& own) : own_(own) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (t_result != nullptr) [[unlikely]] {
      // Without a context: there is nothing to free.
      if (void* const address = t_result->take(bytes)) return {address, c10::Device(c10::DeviceType::CPU)};
    }
    const DeviceMemoryForCpu* const memory = t_memory;
    if (memory == nullptr) return own_.allocate(bytes);
    void* const address = allocate_on(memory->stream(), memory->device(), bytes);
    return {address, address, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  // For whoever allocates without a DataPtr (oneDNN's scratch memory): it may be freed outside of the operator, and be of either kind.
  c10::DeleterFnPtr raw_deleter() const override { return &free_of_either; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override { default_copy_data(destination, source, bytes); }

 private:
  static void free_of_either(void* address);
  c10::Allocator& own_;
};

CpuAllocator& our_cpu_allocator() {
  static CpuAllocator& only = *new CpuAllocator(*c10::GetAllocator(c10::DeviceType::CPU));
  return only;
}

void CpuAllocator::free_of_either(void* address) {
  if (address == nullptr) return;
  if (device_of_block(address) >= 0) {
    free_block(address);
  } else {
    our_cpu_allocator().own_.raw_deleter()(address);
  }
}

void drop_storage(void* storage) { c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(storage)); }

// Bytes of `storage` that keep it alive.
c10::DataPtr shared_bytes(const c10::Storage& storage, c10::Device device) {
  auto* const held = storage.unsafeGetStorageImpl();
  c10::raw::intrusive_ptr::incref(held);
  return {held->mutable_data(), held, &drop_storage, device};
}

at::Tensor with_geometry_of(const at::Tensor& tensor, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.is_conj()) made._set_conj(true);
  if (tensor.is_neg()) made._set_neg(true);
  return made;
}

}  // namespace

at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != kDeviceType) return tensor;
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.has_storage() && !tensor.is_quantized(), "device ", tensor.device(),
                              " has dense tensors only, not one of layout ", tensor.layout(), " and type ", tensor.dtype());
  const c10::Storage& storage = tensor.storage();
  c10::Storage alias(c10::Storage::use_byte_size_t(), storage.nbytes(), shared_bytes(storage, c10::Device(c10::DeviceType::CPU)),
                     &our_cpu_allocator(), /*resizable=*/true);
  return with_geometry_of(tensor, std::move(alias), c10::DispatchKey::CPU);
}

at::Tensor cpu_alias_beside(const at::Tensor& tensor, const at::Tensor& other_alias) {
  return with_geometry_of(tensor, other_alias.storage(), c10::DispatchKey::CPU);
}

at::Tensor device_view(const at::Tensor& geometry, c10::Storage storage) {
  return with_geometry_of(geometry, std::move(storage), kDispatchKey);
}

c10::Storage take_over(const c10::Storage& made, int device) {
  c10::DataPtr bytes;
  auto* const impl = made.unsafeGetStorageImpl();
  if (impl->nbytes() == 0 || impl->data() == nullptr) {
    bytes = c10::DataPtr(nullptr, device_of(device));
  } else if (impl->data_ptr().get_deleter() != &free_block) {
    const xpu::Stream stream = current_stream(device);
    void* const copy = allocate_on(stream.memory_ref(), device, impl->nbytes());
    bytes = c10::DataPtr(copy, copy, &free_block, device_of(device));
    check(stream.copy_blocking(copy, impl->data(), impl->nbytes()));
  } else if (made.use_count() > 1) {
    bytes = shared_bytes(made, device_of(device));
  } else {
    bytes = std::move(impl->mutable_data_ptr());
    bytes.unsafe_set_device(device_of(device));
  }
  return c10::Storage(c10::Storage::use_byte_size_t(), impl->nbytes(), std::move(bytes), &device_allocator(), /*resizable=*/true);
}

void adopt(c10::StorageImpl& storage, c10::StorageImpl& grown, int device) {
  c10::DataPtr bytes = std::move(grown.mutable_data_ptr());
  bytes.unsafe_set_device(device_of(device));
  storage.set_data_ptr_noswap(std::move(bytes));
  storage.set_nbytes(grown.nbytes());
}

DeviceMemoryForCpu::DeviceMemoryForCpu(int device, const xpu::memory::StreamRef& stream) noexcept
    : device_(device), stream_(stream), outer_(t_memory) {
  t_memory = this;
}
DeviceMemoryForCpu::~DeviceMemoryForCpu() { t_memory = outer_; }

ResultMemoryForCpu::ResultMemoryForCpu(void* address, std::size_t bytes) noexcept
    : address_(address), bytes_(bytes), outer_(std::exchange(t_result, this)) {}
ResultMemoryForCpu::~ResultMemoryForCpu() { t_result = outer_; }

void install_cpu_allocator() { c10::SetAllocator(c10::DeviceType::CPU, &our_cpu_allocator(), /*priority=*/100); }

}  // namespace xpu_torch
