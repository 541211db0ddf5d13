#include "base/stack.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace xpu::base {
namespace {

// Recursion instead of named functions: their frames are recognised by lying in one function's code, without symbols.
[[gnu::noinline]] std::uint32_t depth_below(int calls, CallStack& stack, std::size_t skip) {
  if (calls == 0) {
    capture_call_stack(stack, skip);
    return stack.count;
  }
  const std::uint32_t count = depth_below(calls - 1, stack, skip);
  asm volatile("" ::: "memory");  // no tail call
  return count;
}

TEST(StackTest, OneFrameMorePerCall) {
  prepare_call_stacks();
  CallStack stack;
  const std::uint32_t shallow = depth_below(1, stack, 0);
  const std::uint32_t deep = depth_below(6, stack, 0);
  EXPECT_EQ(deep, shallow + 5);
}

TEST(StackTest, SkippedFramesAreTheInnermost) {
  CallStack whole, skipped;
  depth_below(8, whole, 0);
  depth_below(8, skipped, 2);
  ASSERT_EQ(skipped.count + 2, whole.count);
  EXPECT_EQ(skipped.addresses[1], whole.addresses[3]);
}

TEST(StackTest, KeepsTheInnermostOfADeepStack) {
  CallStack stack;
  EXPECT_EQ(depth_below(200, stack, 0), CallStack::kMaxFrames);
}

TEST(StackTest, AProviderAddsItsFrames) {
  static const probe::Id text = probe::intern("train.py:17 step");
  set_stack_provider([](probe::Id* texts, std::size_t capacity) -> std::size_t {
    if (capacity == 0) return 0;
    texts[0] = text;
    return 1;
  });
  CallStack stack;
  capture_call_stack(stack);
  set_stack_provider(nullptr);
  ASSERT_EQ(stack.provided_count, 1u);
  EXPECT_EQ(probe::text_of(stack.provided[0]), "train.py:17 step");
  capture_call_stack(stack);
  EXPECT_EQ(stack.provided_count, 0u);
}

}  // namespace
}  // namespace xpu::base
