#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"

/// Kernels from source text by the system's C++ compiler, with a cache on disk.
///
/// The compiler is the first that answers of `XPU_CXX`, c++, g++, clang++ (found in PATH, started without a shell). The cache is
/// `XPU_CACHE_DIR`, else `$XDG_CACHE_HOME/xpu`, else `~/.cache/xpu`; an empty `XPU_CACHE_DIR` switches it off. Its key covers the text, the
/// options, the compiler (path, size, time, version), the processor's features and `kKernelAbi`; a file appears by rename, so a reader
/// never sees half of one, and two processes that compile the same text do no harm.
namespace xpu::hal {

/// A loaded library with kernels. Closed when the last holder is gone.
class CompiledSource {
 public:
  virtual ~CompiledSource() = default;
  virtual void* symbol(const char* name) const noexcept = 0;
};

/// Compiles (or finds) and loads. Errors: invalid_argument with the compiler's whole complaint, whose line numbers are those of `text`;
/// unavailable when there is no compiler (which were tried).
Result<std::shared_ptr<const CompiledSource>> compile_source(std::string_view text, std::string_view name, std::string_view options);

}  // namespace xpu::hal
