#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/probe.hpp"
#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// What reaches a kernel of its arguments and its local memory.
class KernelArgumentTest : public DeviceTest {};
XPU_CONFORMANCE_SUITE(KernelArgumentTest);

TEST_P(KernelArgumentTest, AValueOfEveryTypeArrives) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const result = allocate_zeros<EveryType>(1);
  const float pointed_to = 0;
  const float* const pointer = &pointed_to;
  const ThreeBytes structure = {{1, 2, 3}};
  launch(*queue, *suite_kernel("conformance_store_every_type"), items({1}), result, true, std::int8_t{-100}, std::uint8_t{200},
         std::int16_t{-30'000}, std::uint16_t{60'000}, std::int32_t{-2'000'000'000}, std::uint32_t{4'000'000'000},
         std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max(), 1.25f, -1e300, pointer, structure)
      .value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(result->boolean);
  EXPECT_EQ(result->i8, -100);
  EXPECT_EQ(result->u8, 200);
  EXPECT_EQ(result->i16, -30'000);
  EXPECT_EQ(result->u16, 60'000);
  EXPECT_EQ(result->i32, -2'000'000'000);
  EXPECT_EQ(result->u32, 4'000'000'000u);
  EXPECT_EQ(result->i64, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(result->u64, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(result->f32, 1.25f);
  EXPECT_EQ(result->f64, -1e300);
  EXPECT_EQ(result->pointer, reinterpret_cast<std::uintptr_t>(pointer));
  EXPECT_EQ(std::memcmp(result->structure.bytes, structure.bytes, 3), 0);
}

TEST_P(KernelArgumentTest, StructuresOfSeveralSizesAndAlignmentsArrive) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  auto* const sums = allocate_zeros<double>(4);
  const TwelveBytes twelve = {1.5f, 2.5f, 3.5f};
  SixtyFourBytes sixty_four = {};
  std::iota(std::begin(sixty_four.values), std::end(sixty_four.values), 1.0);
  ManyBytes many = {};
  std::iota(std::begin(many.bytes), std::end(many.bytes), std::uint8_t{0});
  launch(*queue, *suite_kernel("conformance_store_structures"), items({1}), std::uint8_t{10}, twelve, std::uint8_t{20}, sixty_four,
         std::uint8_t{30}, many, sums)
      .value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(sums[0], 60);
  EXPECT_EQ(sums[1], 7.5);
  EXPECT_EQ(sums[2], 36);
  EXPECT_EQ(sums[3], 255 * 256 / 2);
}

TEST_P(KernelArgumentTest, AKernelWithoutArgumentsRuns) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_without_arguments");
  EXPECT_EQ(kernel->info().argument_bytes, 0u);
  const std::uint32_t before = g_calls_without_arguments;
  launch(*queue, *kernel, items({6}, {2})).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(g_calls_without_arguments - before, 3u);
}

TEST_P(KernelArgumentTest, ArgumentsAreCopiedBeforeTheCallReturns) {
  XPU_NEEDS(pending_operations);
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_set");
  auto* const values = allocate_zeros<std::uint32_t>(10);
  std::vector<std::byte> block = argument_block(kernel->info(), values, std::uint32_t{5});
  hal::Geometry geometry = items({10});
  hal::Launch launch_of_block;
  launch_of_block.kernel = kernel.get();
  launch_of_block.geometry = &geometry;
  launch_of_block.arguments = block;
  Hold hold(*queue);
  queue->launch(launch_of_block, {}).value();
  std::memset(block.data(), 0xff, block.size());
  geometry = {};
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (int index = 0; index < 10; ++index) EXPECT_EQ(values[index], 5u) << index;
}

TEST_P(KernelArgumentTest, PendingLaunchesOfOneKernelKeepTheirOwnArguments) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_set");
  auto* const values = allocate_zeros<std::uint32_t>(500);
  for (std::uint32_t index = 0; index < 500; ++index) launch(*queue, *kernel, items({1}), values + index, index * 7).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (std::uint32_t index = 0; index < 500; ++index) EXPECT_EQ(values[index], index * 7);
}

TEST_P(KernelArgumentTest, ABlockMayLieAtAnyAddress) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_multiply_add");
  auto* const value = allocate_zeros<std::uint64_t>(1);
  const std::vector<std::byte> block = argument_block(kernel->info(), value, std::uint64_t{2}, std::uint64_t{1});
  std::vector<std::byte> room(block.size() + 16);
  const hal::Geometry geometry = items({1});
  for (std::size_t offset = 0; offset < 16; ++offset) {
    std::memcpy(room.data() + offset, block.data(), block.size());
    hal::Launch launch_of_block;
    launch_of_block.kernel = kernel.get();
    launch_of_block.geometry = &geometry;
    launch_of_block.arguments = std::span(room).subspan(offset, block.size());
    queue->launch(launch_of_block, {}).value();
  }
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(*value, (1u << 16) - 1);
}

TEST_P(KernelArgumentTest, EachGroupHasLocalMemoryOfTheSizeThatWasAskedFor) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_describe_group");
  for (const std::uint32_t bytes : {64u, 1'000u, 16'384u}) {
    auto* const facts = allocate_zeros<GroupFacts>(4);
    const std::vector<std::byte> block = argument_block(kernel->info(), facts);
    const hal::Geometry geometry = items({8}, {2});
    hal::Launch with_local_memory;
    with_local_memory.kernel = kernel.get();
    with_local_memory.geometry = &geometry;
    with_local_memory.arguments = block;
    with_local_memory.local_memory_bytes = bytes;
    queue->launch(with_local_memory, {}).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    for (int group = 0; group < 4; ++group) {
      EXPECT_EQ(facts[group].local_memory_bytes, bytes);
      EXPECT_NE(facts[group].local_memory_address, 0u);
      EXPECT_EQ(facts[group].local_memory_address % 64, 0u);
    }
  }
}

TEST_P(KernelArgumentTest, NoGroupTouchesTheLocalMemoryOfAnother) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_use_local_memory");
  constexpr std::uint64_t kGroups = 200;
  constexpr std::uint32_t kBytes = 4'096;
  auto* const sums = allocate_zeros<std::uint64_t>(kGroups);
  const std::vector<std::byte> block = argument_block(kernel->info(), sums);
  const hal::Geometry geometry = items({kGroups * 4}, {4});
  hal::Launch with_local_memory;
  with_local_memory.kernel = kernel.get();
  with_local_memory.geometry = &geometry;
  with_local_memory.arguments = block;
  with_local_memory.local_memory_bytes = kBytes;
  queue->launch(with_local_memory, {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  for (std::uint64_t group = 0; group < kGroups; ++group) EXPECT_EQ(sums[group], group * (kBytes / sizeof(std::uint64_t))) << group;
}

TEST_P(KernelArgumentTest, LocalMemoryOfTheKernelAndOfTheLaunchAddUp) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_own_local_memory");
  auto* const bytes = allocate_zeros<std::uint64_t>(1);
  const std::vector<std::byte> block = argument_block(kernel->info(), bytes);
  const hal::Geometry geometry = items({1});
  for (const std::uint32_t asked : {0u, 128u}) {
    hal::Launch with_local_memory;
    with_local_memory.kernel = kernel.get();
    with_local_memory.geometry = &geometry;
    with_local_memory.arguments = block;
    with_local_memory.local_memory_bytes = asked;
    queue->launch(with_local_memory, {}).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    EXPECT_EQ(*bytes, 256 + asked);
  }
}

TEST_P(KernelArgumentTest, AllLocalMemoryOfTheDeviceCanBeAskedFor) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_use_local_memory");
  auto* const sums = allocate_zeros<std::uint64_t>(3);
  const std::vector<std::byte> block = argument_block(kernel->info(), sums);
  const hal::Geometry geometry = items({3}, {1});
  const std::uint64_t all = device().properties().local_memory_bytes;
  ASSERT_GE(all, 16'384u);
  hal::Launch with_local_memory;
  with_local_memory.kernel = kernel.get();
  with_local_memory.geometry = &geometry;
  with_local_memory.arguments = block;
  with_local_memory.local_memory_bytes = static_cast<std::uint32_t>(all);
  queue->launch(with_local_memory, {}).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_EQ(sums[2], 2 * (all / sizeof(std::uint64_t)));
}

TEST_P(KernelArgumentTest, AKernelRunsOutsideOfTheSubmittersProbeScope) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const auto kernel = suite_kernel("conformance_store_scope");
  auto* const is_inside = allocate_zeros<std::uint32_t>(1);
  const probe::Scope scope;
  for (const bool is_short : {false, true}) {
    *is_inside = 2;
    launch_with(*queue, *kernel, items({1}), {.token = 0, .short_and_independent = is_short}, is_inside).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    EXPECT_EQ(*is_inside, 0u);
  }
}

}  // namespace
}  // namespace xpu::conformance
