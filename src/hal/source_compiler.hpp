#pragma once

#include <memory>
#include <string_view>

#include "xpu/base/result.hpp"
#include "xpu/hal/kernel_function.hpp"

/// Kernels from source text by the system's C++ compiler, with a cache on disk.
///
/// The compiler is the first that answers of `XPU_CXX`, c++, g++, clang++ (found in PATH, started without a shell). The cache is
/// `XPU_CACHE_DIR`, else `$XDG_CACHE_HOME/xpu`, else `~/.cache/xpu`; an empty `XPU_CACHE_DIR` switches it off. Its key covers the text, the
/// options, the compiler (path, size, time, version), the processor's features, kernel_function.hpp and `kKernelAbi`; files of the user
/// that the text includes are compared by size and time. A file appears by rename, so a reader never sees half of one, and two processes
/// that compile the same text do no harm. In a process with raised privileges no variable is believed and nothing is cached.
namespace xpu::hal {

/// A loaded library with kernels. Closed when the last holder is gone. Immutable. Whether two of the same text share their global variables
/// is not said.
class CompiledSource {
 public:
  virtual ~CompiledSource() = default;
  CompiledSource(const CompiledSource&) = delete;
  CompiledSource& operator=(const CompiledSource&) = delete;

  /// The newest of the list of `XPU_KERNEL`, that is the last one in the text; null when it has none.
  virtual const KernelDescriptor* kernels() const noexcept = 0;

 protected:
  CompiledSource() = default;
};

/// Compiles (or finds) and loads. `name` is for people and stands for the text in the compiler's messages; `options` are separated by
/// spaces and come behind ours. Errors: invalid_argument with the compiler's whole complaint, whose line numbers are those of `text`, or
/// with the reason why the result cannot be loaded; unavailable when there is no compiler (which were tried), or no folder to work in;
/// timeout when the compiler took longer than a minute.
Result<std::shared_ptr<const CompiledSource>> compile_source(std::string_view text, std::string_view name, std::string_view options);

}  // namespace xpu::hal
