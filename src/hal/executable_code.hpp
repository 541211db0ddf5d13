#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "xpu/base/result.hpp"

namespace xpu::hal {

/// A copy of machine code in pages of its own, which are never writable and executable at once. Immutable.
class ExecutableCode {
 public:
  /// Errors: out_of_host_memory; unsupported where the system lets no process make code.
  static Result<std::shared_ptr<const ExecutableCode>> copy_of(std::span<const std::byte> code);
  ~ExecutableCode();
  ExecutableCode(const ExecutableCode&) = delete;
  ExecutableCode& operator=(const ExecutableCode&) = delete;

  void* entry() const noexcept { return pages_; }

 private:
  ExecutableCode(void* pages, std::size_t bytes) noexcept : pages_(pages), bytes_(bytes) {}

  void* const pages_;
  const std::size_t bytes_;
};

}  // namespace xpu::hal
