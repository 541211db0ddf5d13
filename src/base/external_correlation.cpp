#include "base/external_correlation.hpp"

#include <pthread.h>

#include <new>
#include <vector>

namespace xpu::probe {

namespace internal {
constinit thread_local std::uint32_t t_correlated_families __attribute__((tls_model("initial-exec"))) = 0;
}

namespace {

using CorrelationStacks = std::array<std::vector<std::uint64_t>, kCorrelationFamilies>;

/// On the heap, because a library that is loaded late has little room for what threads have of it.
constinit thread_local CorrelationStacks* t_stacks __attribute__((tls_model("initial-exec"))) = nullptr;

void delete_stacks(void* stacks) {
  t_stacks = nullptr;
  internal::t_correlated_families = 0;
  delete static_cast<CorrelationStacks*>(stacks);
}

/// Null without memory, or without a key to free it by.
CorrelationStacks* stacks_of_thread() noexcept {
  if (t_stacks != nullptr) return t_stacks;
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    return pthread_key_create(&made, delete_stacks) == 0 ? made : static_cast<pthread_key_t>(-1);
  }();
  if (key == static_cast<pthread_key_t>(-1)) return nullptr;
  auto* stacks = new (std::nothrow) CorrelationStacks;
  if (stacks == nullptr) return nullptr;
  if (pthread_setspecific(key, stacks) != 0) {
    delete stacks;
    return nullptr;
  }
  t_stacks = stacks;
  return stacks;
}

constexpr std::size_t correlation_index(CorrelationFamily family) { return static_cast<std::size_t>(family) - 1; }

}  // namespace

bool push_correlation(CorrelationFamily family, std::uint64_t id) noexcept {
  if (correlation_index(family) >= kCorrelationFamilies) return false;
  CorrelationStacks* stacks = stacks_of_thread();
  if (stacks == nullptr) return false;
  std::vector<std::uint64_t>& stack = (*stacks)[correlation_index(family)];
  try {
    stack.push_back(id);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (stack.size() == 1) ++internal::t_correlated_families;
  return true;
}

std::optional<std::uint64_t> pop_correlation(CorrelationFamily family) noexcept {
  if (correlation_index(family) >= kCorrelationFamilies || t_stacks == nullptr) return std::nullopt;
  std::vector<std::uint64_t>& stack = (*t_stacks)[correlation_index(family)];
  if (stack.empty()) return std::nullopt;
  const std::uint64_t id = stack.back();
  stack.pop_back();
  if (stack.empty()) --internal::t_correlated_families;
  return id;
}

TopCorrelations top_correlations() noexcept {
  TopCorrelations top;
  if (t_stacks == nullptr) return top;
  for (std::size_t index = 0; index < kCorrelationFamilies; ++index) {
    const std::vector<std::uint64_t>& stack = (*t_stacks)[index];
    if (!stack.empty()) top.all[top.count++] = {static_cast<CorrelationFamily>(index + 1), stack.back()};
  }
  return top;
}

}  // namespace xpu::probe
