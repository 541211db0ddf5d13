#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/// Kernels that are compiled C++ functions: how one is written, and what a driver needs to know to call it.
///
///     void saxpy(const xpu::WorkItem& item, float a, const float* x, float* y) { y[item.global_id(0)] += a * x[item.global_id(0)]; }
///     XPU_KERNEL(saxpy, "a", "x", "y");
///
/// The macro deduces the types, so nobody unpacks arguments by hand, and registers the kernel in whatever it is compiled into: a program or
/// a library that links to libxpu (kernels are then in `Module::registered()`), or source text given to `Module::from_source`, which
/// includes this header by itself. A function whose first parameter is a WorkItem is called for every item of the index space, in a loop
/// that compilers vectorise; one whose first parameter is a WorkGroup is called once a group and loops by itself, which is how work before
/// and after a "barrier" is written.
///
/// This header needs nothing but the standard library and is compiled anew with every source text: keep it small.
namespace xpu {

/// What an argument is. `structure` stands for any other trivially copyable type, compared by size.
enum class ArgumentType : std::uint8_t { none, boolean, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, pointer, structure };

/// One parameter of a kernel. Arguments lie in one block in order, each at the next multiple of its alignment.
struct KernelArgument {
  const char* name = "";                      ///< As registered; empty when it was not told.
  ArgumentType type = ArgumentType::none;     ///< Of the parameter itself.
  ArgumentType pointee = ArgumentType::none;  ///< What a pointer points to; `none` = void.
  std::uint32_t size_bytes = 0;
  std::uint32_t offset_bytes = 0;  ///< Of the argument in the block.
};

/// One work-group of a launch, as a kernel function sees it. Dimension 0 is the fastest.
struct WorkGroup {
  std::uint64_t id[3] = {0, 0, 0};     ///< Of this group.
  std::uint64_t count[3] = {1, 1, 1};  ///< Groups of the launch.
  std::uint64_t local[3] = {1, 1, 1};  ///< Items of a full group.
  std::uint64_t global[3] = {1, 1, 1};
  std::uint64_t offset[3] = {0, 0, 0};  ///< Added to every global id.
  std::byte* local_memory = nullptr;    ///< The launch's local memory: one per group, contents undefined at its start; 64-byte aligned.
  std::uint64_t local_memory_bytes = 0;

  /// Items of this group: the last one of a dimension may be smaller.
  std::uint64_t items(int dimension) const noexcept {
    const std::uint64_t left = global[dimension] - id[dimension] * local[dimension];
    return left < local[dimension] ? left : local[dimension];
  }
  /// The global id of this group's first item.
  std::uint64_t first(int dimension) const noexcept { return offset[dimension] + id[dimension] * local[dimension]; }
};

/// One item of a work-group.
struct WorkItem {
  const WorkGroup& group;
  std::uint64_t local[3];
  std::uint64_t global[3];

  std::uint64_t global_id(int dimension) const noexcept { return global[dimension]; }
  std::uint64_t local_id(int dimension) const noexcept { return local[dimension]; }
  std::uint64_t group_id(int dimension) const noexcept { return group.id[dimension]; }
  std::uint64_t global_size(int dimension) const noexcept { return group.global[dimension]; }
};

/// Runs one work-group. `arguments` is the block. The calling convention of machine code that is handed over, too (System V, as C).
using KernelFunction = void (*)(const std::byte* arguments, const WorkGroup* group);

/// What is promised or required of a kernel beside its parameters.
struct KernelFacts {
  /// It is short and waits for nothing that another operation or thread does: a driver may run it on the submitting thread.
  bool short_and_independent = false;
  std::uint32_t local_memory_bytes = 0;         ///< Needed per work-group, beside what a launch asks for.
  std::uint32_t required_local[3] = {0, 0, 0};  ///< The only work-group size that it takes; zeros: any.
};

/// A kernel function with its name and parameters. Plain data, laid out alike in the library and in compiled source text (`kKernelAbi`).
struct KernelDescriptor {
  const char* name = nullptr;
  KernelFunction function = nullptr;
  const KernelArgument* arguments = nullptr;
  std::uint32_t argument_count = 0;
  std::uint32_t argument_bytes = 0;  ///< Of the whole block.
  KernelFacts facts;
  const KernelDescriptor* next = nullptr;  ///< Used by whoever keeps the list.
};

/// Raised with any change to the layouts above. Part of the key of cached compilations.
inline constexpr std::uint32_t kKernelAbi = 1;

namespace kernel_function {

template <typename T>
constexpr ArgumentType type_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return ArgumentType::boolean;
  } else if constexpr (std::is_pointer_v<U>) {
    return ArgumentType::pointer;
  } else if constexpr (std::is_enum_v<U>) {
    return type_of<std::underlying_type_t<U>>();
  } else if constexpr (std::is_integral_v<U>) {
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? ArgumentType::i8 : ArgumentType::u8;
    if constexpr (sizeof(U) == 2) return is_signed ? ArgumentType::i16 : ArgumentType::u16;
    if constexpr (sizeof(U) == 4) return is_signed ? ArgumentType::i32 : ArgumentType::u32;
    if constexpr (sizeof(U) == 8) return is_signed ? ArgumentType::i64 : ArgumentType::u64;
  } else if constexpr (std::is_same_v<U, float>) {
    return ArgumentType::f32;
  } else if constexpr (std::is_same_v<U, double>) {
    return ArgumentType::f64;
  } else {
    static_assert(std::is_trivially_copyable_v<U>, "an argument of a kernel is copied byte by byte");
    return ArgumentType::structure;
  }
}
template <typename T>
constexpr ArgumentType pointee_of() {
  using U = std::remove_pointer_t<std::remove_cv_t<T>>;
  if constexpr (!std::is_pointer_v<std::remove_cv_t<T>> || std::is_void_v<U>) {
    return ArgumentType::none;
  } else if constexpr (std::is_class_v<U> || std::is_union_v<U>) {
    return ArgumentType::structure;
  } else {
    return type_of<U>();
  }
}

template <typename Function>
struct Signature;

/// A kernel function's parameters after the first, with the block in which they lie.
template <typename Unit, typename... Parameters>
struct Signature<void (*)(Unit, Parameters...)> {
  using First = std::remove_cv_t<std::remove_reference_t<Unit>>;
  static constexpr bool kPerItem = std::is_same_v<First, WorkItem>;
  static_assert(kPerItem || std::is_same_v<First, WorkGroup>, "the first parameter of a kernel is a const WorkItem& or a const WorkGroup&");
  static_assert((std::is_same_v<Parameters, std::remove_cv_t<std::remove_reference_t<Parameters>>> && ...),
                "parameters of a kernel are values or pointers");
  static constexpr std::size_t kCount = sizeof...(Parameters);

  struct Layout {
    KernelArgument arguments[kCount + 1];
    std::uint32_t bytes = 0;
  };
  template <typename... Names>
  static constexpr Layout layout(Names... names) {
    static_assert(sizeof...(Names) == 0 || sizeof...(Names) == kCount, "name every parameter of the kernel or none");
    Layout result{};
    [[maybe_unused]] const char* const all_names[kCount + 1] = {names...};
    std::uint32_t index = 0;
    ((result.arguments[index] = {all_names[index] != nullptr ? all_names[index] : "", type_of<Parameters>(), pointee_of<Parameters>(),
                                 static_cast<std::uint32_t>(sizeof(Parameters)), round_up(result.bytes, alignof(Parameters))},
      result.bytes = result.arguments[index].offset_bytes + result.arguments[index].size_bytes, ++index),
     ...);
    return result;
  }

  template <auto function>
  static void run(const std::byte* block, const WorkGroup* group) {
    run_with<function>(block, *group, std::make_index_sequence<kCount>());
  }

 private:
  static constexpr std::uint32_t round_up(std::uint32_t bytes, std::size_t alignment) {
    return static_cast<std::uint32_t>((bytes + alignment - 1) / alignment * alignment);
  }
  template <typename T>
  static T load(const std::byte* place) noexcept {
    T value;
    std::memcpy(&value, place, sizeof(T));
    return value;
  }
  template <auto function, std::size_t... kIndex>
  static void run_with([[maybe_unused]] const std::byte* block, const WorkGroup& group, std::index_sequence<kIndex...>) {
    [[maybe_unused]] static constexpr Layout kLayout = layout();
    if constexpr (kPerItem) {
      run_items<function>(group, load<Parameters>(block + kLayout.arguments[kIndex].offset_bytes)...);
    } else {
      function(group, load<Parameters>(block + kLayout.arguments[kIndex].offset_bytes)...);
    }
  }
  template <auto function>
  static void run_items(const WorkGroup& group, Parameters... parameters) {
    const std::uint64_t items[3] = {group.items(0), group.items(1), group.items(2)};
    const std::uint64_t first[3] = {group.first(0), group.first(1), group.first(2)};
    for (std::uint64_t z = 0; z < items[2]; ++z) {
      for (std::uint64_t y = 0; y < items[1]; ++y) {
        for (std::uint64_t x = 0; x < items[0]; ++x) {
          function(WorkItem{group, {x, y, z}, {first[0] + x, first[1] + y, first[2] + z}}, parameters...);
        }
      }
    }
  }
};

/// A kernel's descriptor with the arguments that it points to. Lives as long as the code of the function.
template <auto function>
struct Described {
  using Parameters = Signature<decltype(function)>;

  typename Parameters::Layout layout;
  KernelDescriptor descriptor;

  template <typename... Names>
  explicit Described(const char* name, const KernelFacts& facts, Names... names) noexcept : layout(Parameters::layout(names...)) {
    descriptor.name = name;
    descriptor.function = &Parameters::template run<function>;
    descriptor.arguments = layout.arguments;
    descriptor.argument_count = Parameters::kCount;
    descriptor.argument_bytes = layout.bytes;
    descriptor.facts = facts;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
};

}  // namespace kernel_function

}  // namespace xpu

#if defined(XPU_KERNEL_SOURCE)
// Source text: its kernels form a list of their own, which the loader asks for by name.
namespace {
const xpu::KernelDescriptor* xpu_first_kernel = nullptr;
}
extern "C" __attribute__((visibility("default"))) const xpu::KernelDescriptor* xpu_kernels_of_module() { return xpu_first_kernel; }
extern "C" __attribute__((visibility("default"))) std::uint32_t xpu_kernel_abi_of_module() { return xpu::kKernelAbi; }
static inline void xpu_register_kernel(xpu::KernelDescriptor* kernel) {
  kernel->next = xpu_first_kernel;
  xpu_first_kernel = kernel;
}
#else
/// Adds a kernel to `Module::registered()`; it stays there for the life of the process, and so must its descriptor. Thread-safe, callable
/// before main(). Of two with one name the later one is found.
extern "C" void xpu_register_kernel(xpu::KernelDescriptor* kernel);
/// Takes it back, for a library that is unloaded: its kernels may not be used any more.
extern "C" void xpu_unregister_kernel(xpu::KernelDescriptor* kernel);
#endif

namespace xpu::kernel_function {
template <auto function>
struct Registration : Described<function> {
  template <typename... Names>
  explicit Registration(const char* name, const KernelFacts& facts, Names... names) noexcept : Described<function>(name, facts, names...) {
    xpu_register_kernel(&this->descriptor);
  }
#if !defined(XPU_KERNEL_SOURCE)
  ~Registration() { xpu_unregister_kernel(&this->descriptor); }
#endif
};
}  // namespace xpu::kernel_function

/// Registers the function `name` as a kernel of that name; then the names of its parameters, all or none, for messages.
#define XPU_KERNEL(name, ...) XPU_KERNEL_WITH(name, ::xpu::KernelFacts {} __VA_OPT__(, ) __VA_ARGS__)
/// The same with facts: `XPU_KERNEL_WITH(tick, (xpu::KernelFacts{.short_and_independent = true}), "counter")`.
#define XPU_KERNEL_WITH(name, facts, ...) \
  static ::xpu::kernel_function::Registration<&name> xpu_kernel_##name { #name, facts __VA_OPT__(, ) __VA_ARGS__ }
