#include "generator.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <vector>

#include "devices.hpp"

namespace xpu_torch {

Generator::Generator(int device)
    : c10::GeneratorImpl(device_of(device), c10::DispatchKeySet(kDispatchKey)), on_cpu_(at::detail::createCPUGenerator()) {}

void Generator::set_offset(std::uint64_t offset) {
  TORCH_CHECK_NOT_IMPLEMENTED(offset == 0, "the generator of device ", device(), " has no offset: it can be set to 0 only, not to ",
                              offset);
}

void Generator::set_state(const c10::TensorImpl& state) {
  on_cpu_.set_state(at::Tensor(state.shallow_copy_and_detach(state.version_counter(), true)));
}
c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const { return on_cpu_.get_state().getIntrusivePtr(); }

Generator* Generator::clone_impl() const {
  auto* const copy = new Generator(device().index());
  copy->on_cpu_ = on_cpu_.clone();
  return copy;
}

const at::Generator& default_generator(int device) {
  // Never destroyed: Python's objects for them go late.
  static auto& generators = *[] {
    auto* const made = new std::vector<at::Generator>();
    for (int index = 0; index < device_count(); ++index) {
      made->push_back(at::make_generator<Generator>(index));
      made->back().set_current_seed(c10::default_rng_seed_val);
    }
    return made;
  }();
  const int index = resolve_device(device);
  TORCH_CHECK(static_cast<std::size_t>(index) < generators.size(), "The device index is out of range. It must be in [0, ",
              generators.size(), "), but got ", index, ".");
  return generators[static_cast<std::size_t>(index)];
}

at::Generator new_generator(int device) { return at::make_generator<Generator>(resolve_device(device)); }

at::Generator generator_on_cpu(const at::Generator& generator) {
  if (!generator.defined()) return generator;
  TORCH_CHECK(generator.device().type() == kDeviceType, "Expected a '", kDeviceType, "' device type for generator but found '",
              generator.device().type(), "'");
  return static_cast<const Generator*>(generator.unsafeGetGeneratorImpl())->on_cpu();
}

}  // namespace xpu_torch
