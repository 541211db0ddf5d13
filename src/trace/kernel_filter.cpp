#include "trace/kernel_filter.hpp"

#include <new>
#include <string>

namespace xpu::trace {

bool KernelFilter::set_expression(const char* expression) noexcept {
  if (active_) regfree(&expression_);
  active_ = false;
  for (auto& block : unwanted_) delete[] block.exchange(nullptr);
  if (expression == nullptr || expression[0] == '\0') return true;
  active_ = regcomp(&expression_, expression, REG_EXTENDED | REG_NOSUB) == 0;
  return active_;
}

void KernelFilter::kernel_created(probe::Id kernel, std::string_view name) noexcept {
  const std::size_t block = kernel / kBlockKernels;
  if (!active_ || block >= kBlocks) return;
  bool matches = true;
  try {
    matches = regexec(&expression_, std::string(name).c_str(), 0, nullptr, 0) == 0;
  } catch (const std::bad_alloc&) {
    return;
  }
  std::atomic<std::uint64_t>* bits = unwanted_[block].load(std::memory_order_acquire);
  if (bits == nullptr) {
    if (matches) return;
    auto* fresh = new (std::nothrow) std::atomic<std::uint64_t>[kBlockKernels / 64]();
    if (fresh == nullptr) return;
    if (unwanted_[block].compare_exchange_strong(bits, fresh, std::memory_order_acq_rel)) {
      bits = fresh;
    } else {
      delete[] fresh;
    }
  }
  std::atomic<std::uint64_t>& word = bits[kernel % kBlockKernels / 64];
  const std::uint64_t bit = std::uint64_t{1} << kernel % 64;
  if (matches) {
    word.fetch_and(~bit, std::memory_order_relaxed);
  } else {
    word.fetch_or(bit, std::memory_order_relaxed);
  }
}

}  // namespace xpu::trace
