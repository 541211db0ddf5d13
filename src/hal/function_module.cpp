#include "hal/function_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hal/executable_code.hpp"
#include "hal/registered_kernels.hpp"
#include "hal/source_compiler.hpp"

namespace xpu::hal {
namespace {

constexpr std::size_t kNamesInMessage = 10;

std::string list_of_names(const std::vector<std::string>& names) {
  if (names.empty()) return "there are none";
  const std::size_t shown = std::min(names.size(), kNamesInMessage);
  std::string text = fmt::format("there are {}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

class RegisteredModule final : public Module {
 public:
  std::vector<std::string> kernel_names() const override { return registered_kernel_names(); }

  Result<std::shared_ptr<const Kernel>> kernel(std::string_view name) const override {
    if (auto kernel = find_registered_kernel(name)) return kernel;
    return Error{ErrorCode::not_found,
                 fmt::format("no kernel named '{}' is registered in this process: {}", name, list_of_names(kernel_names()))};
  }
};

/// Descriptors that need nobody else to live, except the functions. Immutable once they are shared.
class OwnedDescriptors {
 public:
  explicit OwnedDescriptors(std::span<const KernelDescriptor> descriptors) : descriptors_(descriptors.begin(), descriptors.end()) {
    for (KernelDescriptor& descriptor : descriptors_) {
      descriptor.name = own(descriptor.name);
      auto& arguments = arguments_.emplace_back(descriptor.arguments, descriptor.arguments + descriptor.argument_count);
      for (KernelArgument& argument : arguments) argument.name = own(argument.name);
      descriptor.arguments = arguments.data();
      descriptor.next = nullptr;
    }
  }
  const std::vector<KernelDescriptor>& get() const noexcept { return descriptors_; }
  /// Calls code of the given address instead.
  void set_function(std::size_t index, KernelFunction function) noexcept { descriptors_[index].function = function; }

 private:
  const char* own(const char* text) { return texts_.emplace_back(text == nullptr ? "" : text).c_str(); }

  std::vector<KernelDescriptor> descriptors_;
  std::deque<std::string> texts_;  // a deque, because elements of it stay where they are
  std::deque<std::vector<KernelArgument>> arguments_;
};

class DescribedModule final : public Module {
 public:
  /// Of two descriptors with one name the later counts, as with registered ones. `code` keeps alive what they point to.
  DescribedModule(std::string_view name, std::vector<KernelDescriptor> descriptors, std::shared_ptr<const void> code)
      : name_(name), descriptors_(std::move(descriptors)), code_(std::move(code)) {}

  std::vector<std::string> kernel_names() const override {
    std::vector<std::string> names;
    for (const KernelDescriptor& descriptor : descriptors_) names.emplace_back(descriptor.name);
    return names;
  }

  Result<std::shared_ptr<const Kernel>> kernel(std::string_view name) const override {
    const auto found = std::find_if(descriptors_.rbegin(), descriptors_.rend(),
                                    [&](const KernelDescriptor& descriptor) { return descriptor.name == name; });
    if (found != descriptors_.rend()) return std::shared_ptr<const Kernel>(std::make_shared<const FunctionKernel>(*found, code_));
    return Error{ErrorCode::not_found, fmt::format("module '{}' has no kernel named '{}': {}", name_, name, list_of_names(kernel_names()))};
  }

 private:
  const std::string name_;
  const std::vector<KernelDescriptor> descriptors_;
  const std::shared_ptr<const void> code_;
};

std::unique_ptr<Module> module_of_functions(const ModuleSource& source) {
  auto owned = std::make_shared<const OwnedDescriptors>(source.functions);
  return std::make_unique<DescribedModule>(source.name, owned->get(), owned);
}

Result<std::unique_ptr<Module>> module_of_machine_code(const ModuleSource& source) {
  struct Parts {
    OwnedDescriptors descriptors;
    std::shared_ptr<const ExecutableCode> code;
  };
  XPU_TRY_ASSIGN(auto code, ExecutableCode::copy_of(source.code));
  auto parts = std::make_shared<Parts>(Parts{OwnedDescriptors(source.functions.first(1)), std::move(code)});
  parts->descriptors.set_function(0, reinterpret_cast<KernelFunction>(parts->code->entry()));
  return std::unique_ptr<Module>(std::make_unique<DescribedModule>(source.name, parts->descriptors.get(), parts));
}

Result<std::unique_ptr<Module>> module_of_source(const ModuleSource& source) {
  const std::string_view text(reinterpret_cast<const char*>(source.code.data()), source.code.size());
  XPU_TRY_ASSIGN(auto compiled, compile_source(text, source.name, source.options));
  std::vector<KernelDescriptor> descriptors;
  for (const KernelDescriptor* kernel = compiled->kernels(); kernel != nullptr; kernel = kernel->next) descriptors.push_back(*kernel);
  std::reverse(descriptors.begin(), descriptors.end());  // in the order of the text
  return std::unique_ptr<Module>(std::make_unique<DescribedModule>(source.name, std::move(descriptors), std::move(compiled)));
}

KernelInfo info_of(const KernelDescriptor& descriptor) {
  KernelInfo info;
  info.name = descriptor.name;
  info.arguments.assign(descriptor.arguments, descriptor.arguments + descriptor.argument_count);
  info.argument_bytes = descriptor.argument_bytes;
  info.has_argument_types = std::none_of(info.arguments.begin(), info.arguments.end(),
                                         [](const KernelArgument& argument) { return argument.type == ArgumentType::none; });
  info.facts = descriptor.facts;
  return info;
}

}  // namespace

FunctionKernel::FunctionKernel(const KernelDescriptor& descriptor, std::shared_ptr<const void> code)
    : function_(descriptor.function), info_(info_of(descriptor)), code_(std::move(code)) {}

Result<std::unique_ptr<Module>> create_function_module(const ModuleSource& source) {
  switch (source.format) {
    case ModuleFormat::registered: return std::unique_ptr<Module>(std::make_unique<RegisteredModule>());
    case ModuleFormat::functions: return module_of_functions(source);
    case ModuleFormat::machine_code: return module_of_machine_code(source);
    case ModuleFormat::source_cpp: return module_of_source(source);
    case ModuleFormat::source_opencl:
    case ModuleFormat::spirv: break;
  }
  return Error{ErrorCode::unsupported, fmt::format("the host's processors run no modules of the format {}", to_string(source.format))};
}

}  // namespace xpu::hal
