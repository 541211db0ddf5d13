// A memory snapshot on demand, of the program's own allocators: the profiler and the runtime know nothing of each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "xpu/profiler/profiler.hpp"
#include "xpu/xpu.hpp"

namespace xpu {
namespace {

TEST(MemoryProfile, AProfileOfMemoryHasTheBlocksOfTheProgramAndEndsItsHistory) {
  std::string folder = (std::filesystem::temp_directory_path() / "xpu_memory_profile_XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  memory::DeviceCachingAllocator& allocator = *Device::get(0).value().allocator().value();
  std::int64_t now_ms = 0;
  profiler::Profiler::Options options;
  options.folder = folder;
  options.is_confined = true;
  options.has_thread = false;
  options.now = [&] { return profiler::Schedule::Now{now_ms, 1'700'000'000'000 + now_ms, {}}; };
  profiler::Profiler profiler(options);
  profiler.schedule(profiler::parse_config("PROFILE_MEMORY=true\nPROFILE_MEMORY_DURATION_MSECS=50\n").value().config).value();
  const Buffer buffer = Buffer::allocate(54'321).value();
  EXPECT_GT(allocator.history().size(), 0u);
  now_ms = 50;
  profiler.advance();
  const profiler::ProfileResult result = profiler.wait();
  EXPECT_TRUE(result.is_written) << result.problem;
  EXPECT_EQ(result.path, folder + "/memory_snapshot_" + std::to_string(getpid()) + ".pickle");
  EXPECT_EQ(allocator.history().size(), 0u) << "none was kept before";
  std::ifstream file(result.path, std::ios::binary);
  const std::string pickled((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::uint32_t bytes = 54'321;  // as a pickle has it, and the machine
  EXPECT_THAT(pickled, ::testing::HasSubstr("device_traces"));
  EXPECT_THAT(pickled, ::testing::HasSubstr(std::string(reinterpret_cast<const char*>(&bytes), 2)));
  file.close();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace xpu
