#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "alias.hpp"
#include "fall_back.hpp"
#include "generator.hpp"
#include "run_on_stream.hpp"

// Every operator that has no kernel of its own: the CPU's kernel works on aliases of the device's tensors, in its place in the stream. No
// bytes are copied, and results stay in the device's memory.
namespace xpu_torch {
namespace {

/// "fallback aten::add.out": not the operator's own name, or a profile would show the two as one. Kept for ever.
const std::string& record_name(const c10::OperatorHandle& op) {
  thread_local auto& names = *new std::unordered_map<const void*, std::string>();
  std::string& name = names[&op.schema()];
  if (name.empty()) name = "fallback " + c10::toString(op.operator_name());
  return name;
}

/// The arguments of one call on their way to the CPU and back.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack), device_(xpu::Device::current()) {}

  void run() {
    arguments_to_cpu();
    const xpu::Geometry geometry = geometry_of(aliases_.empty() ? at::Tensor() : aliases_.front().on_device);
    run_on_stream(record_name(op_), device_, geometry, [&] { op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_); });
    adopt_changes();
    results_to_device();
  }

 private:
  struct Alias {
    at::Tensor on_device, on_cpu;
    void* bytes;  // as they were before the call
  };

  at::Tensor to_cpu(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kDeviceType) return tensor;
    for (const Alias& alias : aliases_) {
      if (alias.on_device.is_same(tensor)) return alias.on_cpu;
    }
    if (aliases_.empty()) device_ = tensor.device().index();
    const auto beside = std::find_if(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
      return alias.on_device.has_storage() && tensor.has_storage() && alias.on_device.is_alias_of(tensor);
    });
    at::Tensor on_cpu = beside == aliases_.end() ? cpu_alias(tensor) : cpu_alias_beside(tensor, beside->on_cpu);
    aliases_.push_back({tensor, std::move(on_cpu), tensor.storage().unsafeGetStorageImpl()->mutable_data()});
    return aliases_.back().on_cpu;
  }

  static bool is_list_of_lists(c10::ArrayRef<c10::IValue> list) { return !list.empty() && list.front().isList(); }

  c10::IValue to_cpu(const c10::IValue& value) {
    if (value.isTensor()) return to_cpu(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_cpu(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        list.push_back(tensor ? std::optional(to_cpu(*tensor)) : std::nullopt);
      return list;
    }
    if (!value.isList() || !is_list_of_lists(value.toListRef())) return value;
    // Lists of lists: those of torch.distributed.
    c10::List<c10::IValue> list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, to_cpu(list.get(i)));
    return list;
  }

  void arguments_to_cpu() {
    const auto& arguments = op_.schema().arguments();
    const auto values = torch::jit::last(stack_, arguments.size());
    auto* const begin = const_cast<c10::IValue*>(values.data());
    // The tensors first: they say which device it is about.
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      begin[i] = to_cpu(begin[i]);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      c10::IValue& value = begin[i];
      if (value.isDevice() && value.toDevice().type() == kDeviceType) {
        if (aliases_.empty()) device_ = resolve_device(value.toDevice().index());
        value = c10::Device(c10::DeviceType::CPU);
      } else if (value.isGenerator()) {
        value = generator_on_cpu(value.toGenerator());
      } else if (value.isNone() && arguments[i].name() == "generator") {
        value = generator_on_cpu(default_generator(device_));
      }
    }
  }

  // A tensor that the operator wrote to may have another shape now, other bytes where these were too few, and, as a result that is
  // conjugated only when somebody looks (lu_solve), another meaning.
  void adopt_changes() {
    for (Alias& alias : aliases_) {
      auto* const storage = alias.on_device.storage().unsafeGetStorageImpl();
      auto* const worked_on = alias.on_cpu.storage().unsafeGetStorageImpl();
      if (worked_on->mutable_data() != alias.bytes && storage->mutable_data() == alias.bytes) adopt(*storage, *worked_on, device_);
      alias.on_device._set_conj(alias.on_cpu.is_conj());
      alias.on_device._set_neg(alias.on_cpu.is_neg());
      if (!alias.on_device.sizes().equals(alias.on_cpu.sizes()) || !alias.on_device.strides().equals(alias.on_cpu.strides()) ||
          alias.on_device.storage_offset() != alias.on_cpu.storage_offset()) {
        alias.on_device.unsafeGetTensorImpl()->set_sizes_and_strides(alias.on_cpu.sizes(), alias.on_cpu.strides(),
                                                                     alias.on_cpu.storage_offset());
      }
    }
  }

  at::Tensor to_device(at::Tensor&& result) {
    if (!result.defined() || result.device().type() != c10::DeviceType::CPU) return std::move(result);
    for (const Alias& alias : aliases_) {
      if (alias.on_cpu.is_same(result)) return alias.on_device;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(result.has_storage() && !result.is_quantized(), op_.operator_name(), " makes a tensor of layout ",
                                result.layout(), " and type ", result.dtype(), ", which device ", device_of(device_),
                                " does not have; move its input to the CPU first");
    for (const Alias& alias : aliases_) {
      if (alias.on_cpu.storage().is_alias_of(result.storage())) return device_view(result, alias.on_device.storage());
    }
    // New bytes: several results may share them.
    for (const auto& [made, storage] : new_storages_) {
      if (made == result.storage().unsafeGetStorageImpl()) return device_view(result, storage);
    }
    const auto* const made = result.storage().unsafeGetStorageImpl();
    new_storages_.emplace_back(made, take_over(result.storage(), device_));
    kept_.push_back(result);  // its address stands for it above
    return device_view(result, new_storages_.back().second);
  }

  c10::IValue to_device(c10::IValue&& value) {
    if (value.isTensor()) return to_device(std::move(value).toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (at::Tensor& tensor : value.toTensorVector()) list.push_back(to_device(std::move(tensor)));
      return list;
    }
    if (!value.isList() || !is_list_of_lists(value.toListRef())) return std::move(value);
    c10::List<c10::IValue> list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, to_device(c10::IValue(list.get(i))));
    return list;
  }

  void results_to_device() {
    const std::size_t count = op_.schema().returns().size();
    auto* const begin = stack_.data() + (stack_.size() - count);
    for (std::size_t i = 0; i < count; ++i) {
      begin[i] = to_device(std::move(begin[i]));
    }
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  int device_;
  c10::SmallVector<Alias, 6> aliases_;
  c10::SmallVector<std::pair<const c10::StorageImpl*, c10::Storage>, 2> new_storages_;
  c10::SmallVector<at::Tensor, 2> kept_;
};

void refuse_sparse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), " is not there for sparse tensors of device ", kDeviceType,
                              "; move them to the CPU first");
}

}  // namespace

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }

TORCH_LIBRARY_IMPL(_, XPU_TORCH_KEY, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }
TORCH_LIBRARY_IMPL(_, XPU_TORCH_SPARSE_KEY, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>()); }
TORCH_LIBRARY_IMPL(_, XPU_TORCH_SPARSE_CSR_KEY, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>()); }

// PyTorch has one implementation of these for every device but the CPU and a few others. The first four then look for a kernel by the
// device's type, and a CPU wheel has none for this one; the rest go a way round over other operators, with other rounding. Led here, they
// are the CPU's.
TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  for (const char* const name : {"mode", "mode.values", "conj_physical.out", "conj_physical_", "addr", "addr.out"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&fall_back>());
  }
}

}  // namespace xpu_torch
