#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/stack.hpp"
#include "memory/block_sizes.hpp"
#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {

// With names that the dynamic linker knows, and frames of their own.
[[gnu::noinline, gnu::visibility("default")]] StackId call_stacks_test_here(StackRecorder& recorder) {
  const StackId stack = recorder.record();
  asm volatile("");
  return stack;
}
[[gnu::noinline, gnu::visibility("default")]] StackId call_stacks_test_there(StackRecorder& recorder) {
  const StackId stack = call_stacks_test_here(recorder);
  asm volatile("");
  return stack;
}

namespace {

TEST(CallStacks, TheSameStackHasTheSameNumberInEveryThread) {
  const auto recorder = make_call_stack_recorder();
  std::vector<StackId> ids;
  // Read again and again, so that no compiler writes the loops out.
  const volatile std::size_t threads = 2, times = 3;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    std::thread([&] {
      for (std::size_t time = 0; time < times; ++time) ids.push_back(call_stacks_test_here(*recorder));
    }).join();
  }
  EXPECT_EQ(ids, std::vector<StackId>(6, ids[0]));
  EXPECT_NE(ids[0], 0u);
  EXPECT_NE(call_stacks_test_there(*recorder), ids[0]);
}

TEST(CallStacks, FramesAreNamedInnermostFirst) {
  const auto recorder = make_call_stack_recorder();
  const std::vector<StackRecorder::Frame> frames = recorder->frames(call_stacks_test_there(*recorder));
  ASSERT_GE(frames.size(), 3u);
  const auto place_of = [&](const char* function) {
    return std::find_if(frames.begin(), frames.end(), [&](const auto& frame) { return frame.name.find(function) != std::string::npos; });
  };
  ASSERT_NE(place_of("call_stacks_test_there"), frames.end());
  EXPECT_LT(place_of("call_stacks_test_here"), place_of("call_stacks_test_there"));
  for (const auto& frame : frames) EXPECT_NE(frame.file, "");
  EXPECT_TRUE(recorder->frames(0).empty());
  EXPECT_TRUE(recorder->frames(99'999).empty());
}

TEST(CallStacks, FramesOfAnInterpreterComeFirst) {
  static constinit probe::Id texts[2] = {};
  texts[0] = probe::intern("/models/my train.py:17 step with blanks");
  texts[1] = probe::intern("nothing to take apart");
  base::set_stack_provider([](probe::Id* into, std::size_t capacity) {
    const std::size_t count = std::min<std::size_t>(2, capacity);
    std::copy_n(texts, count, into);
    return count;
  });
  const auto recorder = make_call_stack_recorder();
  const std::vector<StackRecorder::Frame> frames = recorder->frames(call_stacks_test_here(*recorder));
  base::set_stack_provider(nullptr);
  ASSERT_GE(frames.size(), 3u);
  EXPECT_EQ(frames[0].file, "/models/my train.py");
  EXPECT_EQ(frames[0].line, 17u);
  EXPECT_EQ(frames[0].name, "step with blanks");
  EXPECT_EQ(frames[1].line, 0u);
}

TEST(CallStacks, AnAllocatorSaysWhereItsBlocksComeFrom) {
  FakeDeviceMemory memory(200 * kMiB, true);
  ScriptedProgress progress;
  const auto allocator = DeviceCachingAllocator::create(memory, progress).value();
  const auto recorder = make_call_stack_recorder();
  allocator->start_history({.stack_use = StackUse::state, .stacks = recorder}).value();
  const volatile int allocations = 3;  // read again and again, so that no compiler writes the loop out
  for (int count = 0; count < allocations; ++count) static_cast<void>(allocator->allocate(1'000, progress.stream(1)).value());
  const Snapshot snapshot = allocator->snapshot();
  ASSERT_EQ(snapshot.segments.size(), 1u);
  const auto& blocks = snapshot.segments[0].blocks;
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_NE(blocks[0].stack, 0u);
  EXPECT_EQ(blocks[0].stack, blocks[1].stack) << "one line, three blocks";
  EXPECT_EQ(blocks[1].stack, blocks[2].stack);
  EXPECT_EQ(blocks[3].stack, 0u);
  EXPECT_GE(recorder->frames(blocks[0].stack).size(), 3u);
}

}  // namespace
}  // namespace xpu::memory
