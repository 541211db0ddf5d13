#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

/// Kernels whose module or own object goes before their launches end, and kernels that several queues share.
class KernelLifeTest : public DeviceTest {
 protected:
  std::unique_ptr<hal::Module> compiled() const {
    constexpr std::string_view kText = R"(
void store_index(const xpu::WorkItem& item, std::uint64_t* values) { values[item.global_id(0)] = item.global_id(0) + 1; }
XPU_KERNEL(store_index, "values");
)";
    hal::ModuleSource source;
    source.format = hal::ModuleFormat::source_cpp;
    source.code = std::as_bytes(std::span(kText));
    return device().create_module(source).value();
  }
  static bool holds_indices(const std::uint64_t* values, std::uint64_t count) {
    for (std::uint64_t index = 0; index < count; ++index) {
      if (values[index] != index + 1) return false;
    }
    return true;
  }
};
XPU_CONFORMANCE_SUITE(KernelLifeTest);

TEST_P(KernelLifeTest, AKernelOutlivesItsModule) {
  XPU_NEEDS(source_cpp_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::unique_ptr<hal::Module> module = compiled();
  const std::shared_ptr<const hal::Kernel> kernel = module->kernel("store_index").value();
  module.reset();
  auto* const values = allocate_zeros<std::uint64_t>(100);
  launch(*queue, *kernel, items({100}), values).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(holds_indices(values, 100));
  EXPECT_EQ(kernel->info().name, "store_index");
  EXPECT_STREQ(kernel->info().arguments.at(0).name, "values");
}

TEST_P(KernelLifeTest, AModuleMayGoWhileALaunchIsPending) {
  XPU_NEEDS(source_cpp_modules);
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::unique_ptr<hal::Module> module = compiled();
  const std::shared_ptr<const hal::Kernel> kernel = module->kernel("store_index").value();
  auto* const values = allocate_zeros<std::uint64_t>(100);
  Hold hold(*queue);
  launch(*queue, *kernel, items({100}), values).value();
  module.reset();
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(holds_indices(values, 100));
}

TEST_P(KernelLifeTest, AKernelMayGoWhileItsLaunchIsPending) {
  XPU_NEEDS(source_cpp_modules);
  XPU_NEEDS(pending_operations);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  std::shared_ptr<const hal::Kernel> kernel = compiled()->kernel("store_index").value();
  auto* const values = allocate_zeros<std::uint64_t>(100);
  Hold hold(*queue);
  for (int index = 0; index < 10; ++index) launch(*queue, *kernel, items({100}), values).value();
  kernel.reset();  // the last holder of the code beside the launches
  hold.release();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(holds_indices(values, 100));
}

TEST_P(KernelLifeTest, QueueModuleAndKernelMayGoWhileALaunchIsPending) {
  XPU_NEEDS(source_cpp_modules);
  XPU_NEEDS(pending_operations);
  std::unique_ptr<hal::Queue> queue = new_queue();
  std::shared_ptr<const hal::Kernel> kernel = compiled()->kernel("store_index").value();
  auto* const values = allocate_zeros<std::uint64_t>(100);
  Hold hold(*queue);
  launch(*queue, *kernel, items({100}), values).value();
  kernel.reset();
  queue.reset();
  hold.release();
  ASSERT_TRUE(is_ok(device().synchronize_blocking()));
  EXPECT_TRUE(holds_indices(values, 100));
}

TEST_P(KernelLifeTest, AKernelObtainedTwiceWorksWhenOneIsGone) {
  XPU_NEEDS(source_cpp_modules);
  const std::unique_ptr<hal::Queue> queue = new_queue();
  const std::unique_ptr<hal::Module> module = compiled();
  std::shared_ptr<const hal::Kernel> first = module->kernel("store_index").value();
  const std::shared_ptr<const hal::Kernel> second = module->kernel("store_index").value();
  first.reset();
  auto* const values = allocate_zeros<std::uint64_t>(10);
  launch(*queue, *second, items({10}), values).value();
  ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
  EXPECT_TRUE(holds_indices(values, 10));
}

TEST_P(KernelLifeTest, OneKernelRunsOnFourQueuesFromFourThreads) {
  XPU_NEEDS(registered_modules);
  const auto kernel = suite_kernel("conformance_multiply_add");
  auto* const values = allocate_zeros<std::uint64_t>(4 * 64);  // a cache line apart
  on_threads(4, [&](int thread) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    std::uint64_t* const value = values + thread * 64;
    for (std::uint64_t index = 0; index < 500; ++index) launch(*queue, *kernel, items({1}), value, std::uint64_t{3}, index).value();
    EXPECT_TRUE(is_ok(queue->synchronize_blocking()));
  });
  std::uint64_t expected = 0;
  for (std::uint64_t index = 0; index < 500; ++index) expected = expected * 3 + index;
  for (int thread = 0; thread < 4; ++thread) EXPECT_EQ(values[thread * 64], expected) << thread;
}

TEST_P(KernelLifeTest, LargeLaunchesOfTwoQueuesDoNotDisturbEachOther) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Queue> first = new_queue();
  const std::unique_ptr<hal::Queue> second = new_queue();
  const auto kernel = suite_kernel("conformance_count_items");
  constexpr std::uint64_t kCount = 50'000;
  auto* const of_first = allocate_zeros<std::uint32_t>(kCount);
  auto* const of_second = allocate_zeros<std::uint32_t>(kCount);
  for (int round = 0; round < 10; ++round) {
    launch(*first, *kernel, items({kCount}), of_first).value();
    launch(*second, *kernel, items({kCount / 100, 100}), of_second).value();
  }
  ASSERT_TRUE(is_ok(first->synchronize_blocking()));
  ASSERT_TRUE(is_ok(second->synchronize_blocking()));
  for (std::uint64_t index = 0; index < kCount; ++index) {
    ASSERT_EQ(of_first[index], 10u) << index;
    ASSERT_EQ(of_second[index], 10u) << index;
  }
}

TEST_P(KernelLifeTest, AKernelOfEachDeviceRunsThere) {
  XPU_NEEDS(two_devices);
  XPU_NEEDS(registered_modules);
  for (std::uint32_t ordinal = 0; ordinal < 2; ++ordinal) {
    const std::unique_ptr<hal::Queue> queue = device(ordinal).create_queue({}).value();
    auto* const value =
        static_cast<std::uint32_t*>(allocate_bytes(*device(ordinal).memory(host_visible_kinds()[0]), sizeof(std::uint32_t)));
    launch(*queue, *suite_kernel("conformance_set", ordinal), items({1}), value, ordinal + 10).value();
    ASSERT_TRUE(is_ok(queue->synchronize_blocking()));
    EXPECT_EQ(*value, ordinal + 10);
  }
}

}  // namespace
}  // namespace xpu::conformance
