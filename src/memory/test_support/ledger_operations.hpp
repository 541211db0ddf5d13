#pragma once

#include <cstddef>
#include <cstdlib>

namespace xpu::memory {

/// How many random steps a test takes that keeps books beside an allocator: XPU_LEDGER_OPERATIONS, else what a slow build can bear.
inline std::size_t ledger_operations() {
  const char* const text = std::getenv("XPU_LEDGER_OPERATIONS");
  return text == nullptr ? 8'000 : std::strtoull(text, nullptr, 10);
}

}  // namespace xpu::memory
