#include "base/stack.hpp"

#include <execinfo.h>

#include <algorithm>
#include <atomic>

namespace xpu::base {
namespace {

constinit std::atomic<StackProvider> g_provider{nullptr};
constexpr std::size_t kMaxSkipped = 16;

}  // namespace

void set_stack_provider(StackProvider provider) noexcept { g_provider.store(provider, std::memory_order_release); }

void prepare_call_stacks() noexcept {
  void* frame = nullptr;
  backtrace(&frame, 1);
}

[[gnu::noinline]] void capture_call_stack(CallStack& stack, std::size_t skip) noexcept {
  void* frames[CallStack::kMaxFrames + kMaxSkipped];
  const std::size_t hidden = 1 + std::min(skip, kMaxSkipped - 1);
  const int found = backtrace(frames, static_cast<int>(CallStack::kMaxFrames + hidden));
  const std::size_t total = found > 0 ? static_cast<std::size_t>(found) : 0;
  stack.count = static_cast<std::uint32_t>(total > hidden ? total - hidden : 0);
  for (std::size_t i = 0; i < stack.count; ++i) stack.addresses[i] = reinterpret_cast<std::uintptr_t>(frames[i + hidden]);

  const StackProvider provider = g_provider.load(std::memory_order_acquire);
  stack.provided_count = provider == nullptr
                             ? 0
                             : static_cast<std::uint32_t>(std::min(provider(stack.provided, CallStack::kMaxFrames), CallStack::kMaxFrames));
}

}  // namespace xpu::base
