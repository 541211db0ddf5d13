// In a program where nobody has allocators.

#include "profiler/session/memory_recording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/memory_snapshot.hpp"
#include "xpu/profiler/profiler.hpp"

namespace xpu::profiler {
namespace {

TEST(MemoryRecordingTest, WithoutAllocatorsThereIsASentenceAndNoProfile) {
  ASSERT_EQ(base::memory_snapshots(), nullptr);
  EXPECT_EQ(MemoryRecording::begin(false).error().code, ErrorCode::failed_precondition);
  Profiler::Options options;
  options.has_thread = false;
  Profiler profiler(options);
  Config config;
  config.takes_memory_snapshot = true;
  ASSERT_TRUE(profiler.schedule(config));
  const ProfileResult result = profiler.wait();
  EXPECT_FALSE(result.is_written);
  EXPECT_THAT(result.problem, testing::HasSubstr("libxpu's runtime was not used yet"));
}

}  // namespace
}  // namespace xpu::profiler
