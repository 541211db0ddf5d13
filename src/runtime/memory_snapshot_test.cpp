// What a profile of memory gets from the runtime: allocators of every device, those that are made meanwhile, and a history that is nobody's
// but its own.
#include "runtime/memory_snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/memory_snapshot.hpp"
#include "xpu/xpu.hpp"

namespace xpu::runtime {
namespace {

class MemorySnapshotTest : public ::testing::Test {
 protected:
  MemorySnapshotTest() {
    initialize().value();
    provider_ = base::memory_snapshots();
  }
  ~MemorySnapshotTest() override {
    if (provider_ != nullptr) provider_->cancel();
    std::filesystem::remove(path_);
  }
  static std::size_t history_of_device() { return Device::get(0).value().allocator().value()->history().size(); }

  const base::MemorySnapshotProvider* provider_ = nullptr;
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("xpu_runtime_memory_" + std::to_string(getpid()) + ".pickle")).string();
};

TEST_F(MemorySnapshotTest, TheRuntimeOffersItOnceItIsInitialised) { ASSERT_NE(provider_, nullptr); }

TEST_F(MemorySnapshotTest, WhatHappensMeanwhileIsWrittenAndNothingIsNotedBehindIt) {
  ASSERT_TRUE(provider_->begin(false));
  const std::size_t before = history_of_device();
  {
    const Buffer buffer = Buffer::allocate(1'000).value();
  }
  EXPECT_GT(history_of_device(), before);
  ASSERT_TRUE(provider_->end(path_));
  EXPECT_GT(std::filesystem::file_size(path_), 100u);
  {
    const Buffer buffer = Buffer::allocate(1'000).value();
  }
  EXPECT_EQ(history_of_device(), 0u) << "no history is kept, as before";
  EXPECT_FALSE(provider_->end(path_)) << "it ended";
}

TEST_F(MemorySnapshotTest, AHistoryOfTheProgramGoesOnAsItIs) {
  memory::DeviceCachingAllocator& allocator = *Device::get(0).value().allocator().value();
  ASSERT_TRUE(allocator.start_history({.max_entries = 1'000}));
  {
    const Buffer buffer = Buffer::allocate(1'000).value();
  }
  const std::size_t noted = history_of_device();
  ASSERT_GT(noted, 0u);
  ASSERT_TRUE(provider_->begin(true));
  EXPECT_EQ(history_of_device(), noted) << "nothing was forgotten";
  ASSERT_TRUE(provider_->end(path_));
  {
    const Buffer buffer = Buffer::allocate(1'000).value();
  }
  EXPECT_GT(history_of_device(), noted);
  allocator.stop_history();
}

TEST_F(MemorySnapshotTest, AHistoryThatTheProgramBeginsMeanwhileIsNotEnded) {
  memory::DeviceCachingAllocator& allocator = *Device::get(0).value().allocator().value();
  ASSERT_TRUE(provider_->begin(false));
  ASSERT_TRUE(allocator.start_history());
  {
    const Buffer buffer = Buffer::allocate(1'000).value();
  }
  provider_->cancel();
  EXPECT_GT(history_of_device(), 0u);
  allocator.stop_history();
}

TEST_F(MemorySnapshotTest, OneAtATimeAndAFailureIsAnEndToo) {
  ASSERT_TRUE(provider_->begin(false));
  const Result<> second = provider_->begin(false);
  EXPECT_EQ(second.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(provider_->end("/no such folder/x").error().code, ErrorCode::unavailable);
  EXPECT_EQ(history_of_device(), 0u);
  ASSERT_TRUE(provider_->begin(false));
  provider_->cancel();
  provider_->cancel();
  EXPECT_FALSE(provider_->end(path_));
}

TEST_F(MemorySnapshotTest, AnAllocatorThatIsMadeMeanwhileIsNotedFromItsFirstBlock) {
  ASSERT_TRUE(provider_->begin(false));
  // Of shared memory, which no other test of this program uses.
  const Result<Buffer> buffer = Buffer::allocate(1'000, hal::MemoryKind::shared);
  if (!buffer) GTEST_SKIP() << buffer.error().message;
  ASSERT_TRUE(provider_->end(path_));
  const std::string command =
      "python3 -c \"import pickle,sys; v = pickle.load(open(sys.argv[1], 'rb')); sys.exit(0 if any(e['size'] == "
      "1000 and e['action'] == 'alloc' for t in v['device_traces'] for e in t) else 1)\" " +
      path_;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace xpu::runtime
