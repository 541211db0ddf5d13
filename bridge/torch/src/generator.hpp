#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include "device_type.hpp"

namespace xpu_torch {

/// Random numbers of a device: those of a CPU generator, because the kernels that draw them are the CPU's. Its state is that generator's.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(int device);

  void set_current_seed(std::uint64_t seed) override { on_cpu_.set_current_seed(seed); }
  std::uint64_t current_seed() const override { return on_cpu_.current_seed(); }
  std::uint64_t seed() override { return on_cpu_.seed(); }
  /// This kind of generator has no offset: 0, and any other one is refused.
  void set_offset(std::uint64_t offset) override;
  std::uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  const at::Generator& on_cpu() const noexcept { return on_cpu_; }

 private:
  Generator* clone_impl() const override;
  at::Generator on_cpu_;
};

/// Of a device; made at the first call, lives for ever.
const at::Generator& default_generator(int device);
at::Generator new_generator(int device);
/// The generator that a kernel of the CPU can use instead of one of ours; none for none. Error for one of another device.
at::Generator generator_on_cpu(const at::Generator& generator);

}  // namespace xpu_torch
