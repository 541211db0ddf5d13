#include "operand.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstring>
#include <deque>

namespace xpu_torch {
namespace {

struct Pool {
  std::deque<at::Tensor> tensors;  // references stay good while it grows
  std::size_t used = 0;
};
thread_local Pool t_pool;

at::Tensor make_cpu_tensor() {
  const c10::InferenceMode mode(false);  // it outlives the mode of whoever comes first
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)), nullptr, false);
  return at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                  caffe2::TypeMeta::Make<float>());
}

}  // namespace

Operand operand_of(const at::Tensor& tensor) {
  Operand operand;
  operand.type = tensor.scalar_type();
  operand.dimensions = static_cast<std::int8_t>(tensor.dim());
  std::memcpy(operand.sizes, tensor.sizes().data(), static_cast<std::size_t>(tensor.dim()) * sizeof(std::int64_t));
  std::memcpy(operand.strides, tensor.strides().data(), static_cast<std::size_t>(tensor.dim()) * sizeof(std::int64_t));
  const auto* const bytes = static_cast<const std::byte*>(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->data());
  operand.elements = const_cast<std::byte*>(bytes) + static_cast<std::size_t>(tensor.storage_offset()) * tensor.itemsize();
  operand.is_number = tensor.device().is_cpu();
  if (operand.is_number) std::memcpy(operand.number, operand.elements, tensor.itemsize());
  return operand;
}

Operand operand_of(const std::optional<at::Tensor>& tensor) {
  if (tensor && tensor->defined()) return operand_of(*tensor);
  Operand operand;
  operand.type = at::ScalarType::Undefined;
  return operand;
}

Operand result_operand_of(const at::Tensor& tensor) {
  static_cast<void>(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->mutable_data());  // a lazy copy becomes one
  return operand_of(tensor);
}

double value_of(const at::Tensor& number) {
  const void* const value = number.const_data_ptr();
  switch (number.scalar_type()) {
    case at::ScalarType::Double: return *static_cast<const double*>(value);
    case at::ScalarType::Long: return static_cast<double>(*static_cast<const std::int64_t*>(value));
    case at::ScalarType::Bool: return *static_cast<const bool*>(value) ? 1 : 0;
    default: return number.item().toDouble();
  }
}

CpuTensors::CpuTensors()
    : begin_(t_pool.used), without_autograd_(c10::autograd_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView)) {}
CpuTensors::~CpuTensors() { t_pool.used = begin_; }

at::Tensor& CpuTensors::of(const Operand& operand) {
  Pool& pool = t_pool;
  if (pool.used == pool.tensors.size()) pool.tensors.push_back(make_cpu_tensor());
  at::Tensor& tensor = pool.tensors[pool.used++];
  if (operand.type == at::ScalarType::Undefined) {
    tensor.reset();
    return tensor;
  }
  // Somebody may have kept it, or its bytes, against the rule.
  if (!tensor.defined() || tensor.use_count() != 1 || tensor.storage().use_count() != 1) tensor = make_cpu_tensor();
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const std::size_t dimensions = static_cast<std::size_t>(operand.dimensions);
  const c10::IntArrayRef sizes(operand.sizes, dimensions), strides(operand.strides, dimensions);
  const auto type = c10::scalarTypeToTypeMeta(operand.type);
  if (type != impl.dtype()) impl.set_storage_and_dtype(impl.storage(), type);
  if (impl.dim() == 0) impl.set_wrapped_number(false);
  impl.set_sizes_and_strides(sizes, strides);
  c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
  // PyTorch only reads a number; the bytes are the launch's.
  void* const elements = operand.is_number ? const_cast<std::byte*>(operand.number) : operand.elements;
  storage.set_data_ptr_noswap(c10::DataPtr(elements, c10::Device(c10::DeviceType::CPU)));
  storage.set_nbytes(at::detail::computeStorageNbytes(sizes, strides, type.itemsize()));
  if (operand.is_number) impl.set_wrapped_number(true);
  return tensor;
}

}  // namespace xpu_torch
