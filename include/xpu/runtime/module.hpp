#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "xpu/base/export.hpp"
#include "xpu/base/result.hpp"
#include "xpu/hal/module.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu {

class Stream;
namespace runtime {
struct KernelState;
struct ModuleState;
}  // namespace runtime

/// The index space of a launch: `items(n)`, `items(width, height)`, and `in_groups` for a work-group size of one's own.
using hal::Geometry;
constexpr Geometry items(std::uint64_t x) { return {1, {x, 1, 1}, {0, 0, 0}, {0, 0, 0}}; }
constexpr Geometry items(std::uint64_t x, std::uint64_t y) { return {2, {x, y, 1}, {0, 0, 0}, {0, 0, 0}}; }
constexpr Geometry items(std::uint64_t x, std::uint64_t y, std::uint64_t z) { return {3, {x, y, z}, {0, 0, 0}, {0, 0, 0}}; }
constexpr Geometry in_groups(Geometry geometry, std::uint64_t x, std::uint64_t y = 1, std::uint64_t z = 1) {
  geometry.local[0] = x;
  geometry.local[1] = y;
  geometry.local[2] = z;
  return geometry;
}

/// "f32", "pointer to i32", …
XPU_EXPORT std::string to_string(const KernelArgument& argument);

/// A kernel of one device. Cheap to copy; thread-safe; keeps its code alive.
class XPU_EXPORT Kernel {
 public:
  /// A kernel that XPU_KERNEL registered in this process.
  static Result<Kernel> registered(std::string_view name, int device = -1);
  /// A kernel of compiled code: `function` is called once a work-group with the block of arguments that `arguments` describes (types and
  /// names; sizes and offsets are worked out here where they are 0). The function must stay.
  static Result<Kernel> from_function(std::string_view name, KernelFunction function, std::span<const KernelArgument> arguments,
                                      const KernelFacts& facts = {}, int device = -1);
  /// A kernel of a C++ function: `Kernel::from_function<&saxpy>("saxpy", {}, "a", "x", "y")`.
  template <auto function, typename... Names>
  static Result<Kernel> from_function(const char* name, const KernelFacts& facts = {}, Names... names) {
    const kernel_function::Described<function> described(name, facts, names...);
    return from_function(name, described.descriptor.function, {described.descriptor.arguments, described.descriptor.argument_count}, facts);
  }

  const hal::KernelInfo& info() const noexcept;
  const std::string& name() const noexcept { return info().name; }
  int device() const noexcept;

 private:
  friend class Module;
  friend class Stream;
  explicit Kernel(std::shared_ptr<runtime::KernelState> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<runtime::KernelState> state_;
};

struct ModuleOptions {
  int device = -1;            ///< Negative: the current one.
  std::string_view name;      ///< For people; by default "module".
  std::string_view compiler;  ///< Options for the compiler, separated by spaces.
};

/// Code for one device. Cheap to copy; thread-safe; may go before its kernels.
class XPU_EXPORT Module {
 public:
  /// C++ text with XPU_KERNEL (xpu/hal/kernel_function.hpp). The compiler's complaint is the error's message, whole.
  static Result<Module> from_source(std::string_view text, const ModuleOptions& options = {});
  /// Position-independent machine code of one kernel, called as a KernelFunction at its first byte.
  static Result<Module> from_machine_code(std::span<const std::byte> code, std::string_view kernel,
                                          std::span<const KernelArgument> arguments, const KernelFacts& facts = {},
                                          const ModuleOptions& options = {});
  /// Every kernel that XPU_KERNEL registered in this process.
  static Result<Module> registered(int device = -1);
  /// Any other form that the driver takes (SPIR-V, OpenCL C).
  static Result<Module> from(const hal::ModuleSource& source, int device = -1);

  std::vector<std::string> kernel_names() const;
  /// Error not_found, naming those that there are.
  Result<Kernel> kernel(std::string_view name) const;

 private:
  explicit Module(std::shared_ptr<runtime::ModuleState> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<runtime::ModuleState> state_;
};

/// A value handed to a launch, with its type: what `Stream::launch` makes of each argument.
struct ArgumentValue {
  ArgumentType type = ArgumentType::none;
  ArgumentType pointee = ArgumentType::none;
  std::uint16_t reserved = 0;  ///< 0, so that what comes before `value` can be compared as one word.
  std::uint32_t size_bytes = 0;
  const void* value = nullptr;

  template <typename T>
  static ArgumentValue of(const T& value) noexcept {
    if constexpr (std::is_same_v<T, std::nullptr_t>) {
      return {ArgumentType::pointer, ArgumentType::none, 0, sizeof(void*), &value};
    } else {
      static_assert(!std::is_array_v<T>, "an array is passed as a pointer to its first element");
      return {kernel_function::type_of<T>(), kernel_function::pointee_of<T>(), 0, static_cast<std::uint32_t>(sizeof(T)), &value};
    }
  }
};

}  // namespace xpu
