#include "xpu/memory/pluggable_allocator.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "memory/test_support/fake_device_memory.hpp"
#include "memory/test_support/scripted_progress.hpp"
#include "xpu/memory/device_caching_allocator.hpp"

namespace xpu::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kDevice = 3;

struct Call {
  std::string name;
  void* address;
  std::size_t bytes;
  int device;
  void* queue;
  bool operator==(const Call&) const = default;
};
std::vector<Call> calls;

void* note_allocate(std::size_t bytes, int device, void* queue) {
  void* const address = bytes > 1'000 ? nullptr : std::malloc(bytes);
  calls.push_back({"allocate", address, bytes, device, queue});
  return address;
}
void note_free(void* address, std::size_t bytes, int device, void* queue) {
  calls.push_back({"free", address, bytes, device, queue});
  std::free(address);
}
void note_use(void* address, void* queue) { calls.push_back({"use", address, 0, 0, queue}); }

class PluggableAllocatorTest : public ::testing::Test {
 protected:
  PluggableAllocatorTest() { calls.clear(); }

  ScriptedProgress progress_;
  const StreamRef stream_ = progress_.stream(1), other_ = progress_.stream(2);
  std::unique_ptr<PluggableAllocator> allocator_ = PluggableAllocator::create({&note_allocate, &note_free, &note_use}, kDevice).value();
};

TEST_F(PluggableAllocatorTest, EveryCallReachesTheFunctionsWithSizeDeviceAndTheQueueOfTheAllocation) {
  void* const block = allocator_->allocate(100, stream_).value();
  EXPECT_TRUE(allocator_->record_use(block, other_));
  allocator_->free(block).value();
  EXPECT_THAT(calls, ElementsAre(Call{"allocate", block, 100, kDevice, stream_.queue}, Call{"use", block, 0, 0, other_.queue},
                                 Call{"free", block, 100, kDevice, stream_.queue}));
}

TEST_F(PluggableAllocatorTest, TheFunctionsAreNotCalledForNothing) {
  EXPECT_EQ(allocator_->allocate(0, stream_).value(), nullptr);
  EXPECT_TRUE(allocator_->free(nullptr));
  EXPECT_TRUE(calls.empty());
}

TEST_F(PluggableAllocatorTest, TheFunctionsNeverGetAForeignPointerOrTheSameTwice) {
  void* const block = allocator_->allocate(100, stream_).value();
  allocator_->free(block).value();
  calls.clear();
  int elsewhere = 0;
  for (void* const address : {block, static_cast<void*>(&elsewhere)}) {
    EXPECT_EQ(allocator_->free(address).error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(allocator_->record_use(address, other_));
  }
  EXPECT_TRUE(calls.empty());
}

TEST_F(PluggableAllocatorTest, NullIsOutOfMemory) {
  const Result<void*> refused = allocator_->allocate(2'000, stream_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(refused.error().message, HasSubstr("2000 bytes for device 3"));
  EXPECT_EQ(allocator_->statistics().num_ooms, 1);
  EXPECT_EQ(allocator_->statistics().allocation.all, StatisticsCounter{});
}

TEST_F(PluggableAllocatorTest, TheStatisticsCountWhatPasses) {
  void* const first = allocator_->allocate(100, stream_).value();
  void* const second = allocator_->allocate(23, stream_).value();
  allocator_->free(first).value();
  const DeviceStatistics now = allocator_->statistics();
  for (const StatisticsByPool& bytes : {now.allocated_bytes, now.reserved_bytes, now.active_bytes, now.requested_bytes}) {
    EXPECT_EQ(bytes.all, (StatisticsCounter{23, 123, 123, 100}));
    EXPECT_EQ(bytes.small_pool, bytes.all);
  }
  EXPECT_EQ(now.allocation.all, (StatisticsCounter{1, 2, 2, 1}));
  EXPECT_EQ(now.segment.all, now.allocation.all);
  EXPECT_EQ(now.num_device_alloc, 2);
  EXPECT_EQ(now.num_device_free, 1);
  allocator_->reset_peak_statistics();
  EXPECT_EQ(allocator_->statistics().allocated_bytes.all, (StatisticsCounter{23, 23, 123, 100}));
  allocator_->reset_accumulated_statistics();
  EXPECT_EQ(allocator_->statistics().allocated_bytes.all, (StatisticsCounter{23, 23, 0, 0}));
  allocator_->free(second).value();
}

TEST(PluggableFunctionsTest, BothAreNeededAndTheUseIsNot) {
  EXPECT_EQ(PluggableAllocator::create({&note_allocate, nullptr, nullptr}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(PluggableAllocator::create({nullptr, &note_free, nullptr}).error().code, ErrorCode::invalid_argument);
  const auto allocator = PluggableAllocator::create({&note_allocate, &note_free}).value();
  void* const block = allocator->allocate(100, StreamRef{}).value();
  EXPECT_TRUE(allocator->record_use(block, StreamRef{}));
  allocator->free(block).value();
}

TEST(PluggableFunctionsTest, TheyComeFromASharedLibrary) {
  const auto allocator = PluggableAllocator::load(PLUGGED_FUNCTIONS_PATH, "plugged_allocate", "plugged_free").value();
  void* const library = dlopen(PLUGGED_FUNCTIONS_PATH, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << "it is still loaded";
  const auto* const live_bytes = static_cast<const std::size_t*>(dlsym(library, "plugged_live_bytes"));
  void* const block = allocator->allocate(100, StreamRef{}).value();
  EXPECT_EQ(*live_bytes, 100u);
  allocator->free(block).value();
  EXPECT_EQ(*live_bytes, 0u);
  dlclose(library);
}

TEST(PluggableFunctionsTest, WhatIsMissingIsSaid) {
  const Result<std::unique_ptr<PluggableAllocator>> no_library = PluggableAllocator::load("/no/such/library.so", "a", "b");
  ASSERT_FALSE(no_library);
  EXPECT_EQ(no_library.error().code, ErrorCode::not_found);
  EXPECT_THAT(no_library.error().message, HasSubstr("/no/such/library.so"));
  for (const auto& [allocate, free] : {std::tuple("plugged_allocate", "nothing"), std::tuple("nothing", "plugged_free")}) {
    const Result<std::unique_ptr<PluggableAllocator>> no_symbol = PluggableAllocator::load(PLUGGED_FUNCTIONS_PATH, allocate, free);
    ASSERT_FALSE(no_symbol);
    EXPECT_EQ(no_symbol.error().code, ErrorCode::not_found);
    EXPECT_EQ(no_symbol.error().message, "Failed to load allocator symbols from the shared library.");
  }
}

TEST(AllocatorInterfaceTest, ProgramsWorkWithAnyAllocator) {
  FakeDeviceMemory memory(std::size_t{64} << 20, true);
  ScriptedProgress progress;
  const StreamRef stream = progress.stream(1);
  progress.finish_at_once(stream);
  const auto caching = DeviceCachingAllocator::create(memory, progress).value();
  const auto pluggable = PluggableAllocator::create({&note_allocate, &note_free}).value();
  for (Allocator* const allocator : {static_cast<Allocator*>(caching.get()), static_cast<Allocator*>(pluggable.get())}) {
    void* const block = allocator->allocate(600, stream).value();
    EXPECT_EQ(allocator->statistics().requested_bytes.all.current, 600);
    allocator->free(block).value();
    EXPECT_FALSE(allocator->free(block));
    allocator->empty_cache();
    EXPECT_EQ(allocator->statistics().reserved_bytes.all.current, 0);
  }
}

}  // namespace
}  // namespace xpu::memory
