#include "xpu/runtime/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/launch_check.hpp"
#include "runtime/publishing.hpp"
#include "runtime/state.hpp"

namespace xpu {

namespace runtime {

struct ModuleState {
  ModuleState(std::unique_ptr<hal::Module> owned, const DeviceState* its_device) noexcept : module(std::move(owned)), device(its_device) {}
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;

  std::shared_ptr<hal::Module> module;
  const DeviceState* device;

  ~ModuleState() {
    if (!is_running()) keep_for_ever(std::move(module));
  }
};

namespace {

/// Offsets and sizes where the caller left them out.
Result<std::vector<KernelArgument>> complete_arguments(std::string_view kernel, std::span<const KernelArgument> given) {
  std::vector<KernelArgument> arguments(given.begin(), given.end());
  std::uint32_t end = 0;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    KernelArgument& argument = arguments[index];
    std::uint32_t size = 0;
    switch (argument.type) {
      case ArgumentType::none: break;
      case ArgumentType::boolean:
      case ArgumentType::i8:
      case ArgumentType::u8: size = 1; break;
      case ArgumentType::i16:
      case ArgumentType::u16: size = 2; break;
      case ArgumentType::i32:
      case ArgumentType::u32:
      case ArgumentType::f32: size = 4; break;
      case ArgumentType::i64:
      case ArgumentType::u64:
      case ArgumentType::f64:
      case ArgumentType::pointer: size = 8; break;
      case ArgumentType::structure: size = argument.size_bytes; break;
    }
    if (size == 0 || (argument.size_bytes != 0 && argument.size_bytes != size)) {
      return Error{ErrorCode::invalid_argument, fmt::format("argument {} of kernel '{}' cannot be a {} of {} bytes", index, kernel,
                                                            to_string(argument), argument.size_bytes)};
    }
    argument.size_bytes = size;
    if (argument.offset_bytes == 0 && index != 0) {
      const std::uint32_t alignment = argument.type == ArgumentType::structure ? 8 : size;
      argument.offset_bytes = (end + alignment - 1) / alignment * alignment;
    }
    if (argument.offset_bytes < end) {
      return Error{ErrorCode::invalid_argument, fmt::format("argument {} of kernel '{}' lies at byte {}, but the one before ends at {}",
                                                            index, kernel, argument.offset_bytes, end)};
    }
    end = argument.offset_bytes + size;
  }
  return arguments;
}

KernelDescriptor describe(const std::string& name, KernelFunction function, const std::vector<KernelArgument>& arguments,
                          const KernelFacts& facts) {
  KernelDescriptor descriptor;
  descriptor.name = name.c_str();
  descriptor.function = function;
  descriptor.arguments = arguments.data();
  descriptor.argument_count = static_cast<std::uint32_t>(arguments.size());
  descriptor.argument_bytes = arguments.empty() ? 0 : arguments.back().offset_bytes + arguments.back().size_bytes;
  descriptor.facts = facts;
  return descriptor;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

const hal::KernelInfo& Kernel::info() const noexcept { return state_->kernel->info(); }
int Kernel::device() const noexcept { return state_->device->index; }

Result<Kernel> Kernel::registered(std::string_view name, int device) {
  XPU_TRY_ASSIGN(const Module module, Module::registered(device));
  return module.kernel(name);
}

Result<Kernel> Kernel::from_function(std::string_view name, KernelFunction function, std::span<const KernelArgument> arguments,
                                     const KernelFacts& facts, int device) {
  if (function == nullptr) return Error{ErrorCode::invalid_argument, fmt::format("the function of kernel '{}' is null", name)};
  XPU_TRY_ASSIGN(const std::vector<KernelArgument> complete, complete_arguments(name, arguments));
  const std::string owned_name(name);
  const KernelDescriptor descriptor = describe(owned_name, function, complete, facts);
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::functions;
  source.name = name;
  source.functions = {&descriptor, 1};
  XPU_TRY_ASSIGN(const Module module, Module::from(source, device));
  return module.kernel(name);
}

Result<Module> Module::from(const hal::ModuleSource& source, int device_index) {
  XPU_TRY_ASSIGN(DeviceState * device, use_device(device_index));
  hal::Device* opened = device->device.load(std::memory_order_acquire);
  if ((opened->capabilities().module_formats & 1u << static_cast<unsigned>(source.format)) == 0) {
    return Error{ErrorCode::unsupported, fmt::format("device {} ({}) takes no modules of format {}", device->index, device->properties.name,
                                                     to_string(source.format))};
  }
  PublishedCall call(&ApiNames::create_module);
  const probe::Scope scope;
  XPU_TRY_ASSIGN(std::unique_ptr<hal::Module> module, call.finish(opened->create_module(source)));
  return Module(std::make_shared<ModuleState>(std::move(module), device));
}

Result<Module> Module::from_source(std::string_view text, const ModuleOptions& options) {
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::source_cpp;
  source.name = options.name.empty() ? "module" : options.name;
  source.code = std::as_bytes(std::span(text));
  source.options = options.compiler;
  return from(source, options.device);
}

Result<Module> Module::from_machine_code(std::span<const std::byte> code, std::string_view kernel,
                                         std::span<const KernelArgument> arguments, const KernelFacts& facts,
                                         const ModuleOptions& options) {
  if (code.empty()) return Error{ErrorCode::invalid_argument, fmt::format("the machine code of kernel '{}' has 0 bytes", kernel)};
  XPU_TRY_ASSIGN(const std::vector<KernelArgument> complete, complete_arguments(kernel, arguments));
  const std::string owned_name(kernel);
  const KernelDescriptor descriptor = describe(owned_name, nullptr, complete, facts);
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::machine_code;
  source.name = options.name.empty() ? kernel : options.name;
  source.code = code;
  source.functions = {&descriptor, 1};
  return from(source, options.device);
}

Result<Module> Module::registered(int device) {
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::registered;
  source.name = "registered";
  return from(source, device);
}

std::vector<std::string> Module::kernel_names() const { return state_->module->kernel_names(); }

Result<Kernel> Module::kernel(std::string_view name) const {
  XPU_TRY(ensure_initialized());
  XPU_TRY_ASSIGN(std::shared_ptr<const hal::Kernel> kernel, state_->module->kernel(name));
  const std::uint64_t device_limit = state_->device->properties.max_parameter_bytes;
  const std::uint64_t limit = device_limit == 0 ? kMaxArgumentBytes : std::min<std::uint64_t>(device_limit, kMaxArgumentBytes);
  if (kernel->info().argument_bytes > limit) {
    return Error{ErrorCode::unsupported, fmt::format("the arguments of kernel '{}' take {} bytes, at most {} are possible", name,
                                                     kernel->info().argument_bytes, limit)};
  }
  const probe::Id id = kernel_id(*state_->device, name, &kernel->info());
  return Kernel(std::make_shared<KernelState>(std::move(kernel), state_->device, id));
}

}  // namespace xpu
