// Buffers whose end comes before that of the work that uses them, on the host driver with a limit on its memory.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "xpu/xpu.hpp"

namespace xpu {
namespace {

// The runtime asks when the first test does.
[[maybe_unused]] const bool g_is_limited = setenv("XPU_HOST_MEMORY", "64M", 1) == 0;
constexpr std::size_t kMiB = std::size_t{1} << 20;
// What an allocator takes of the device at once, and gives back.
constexpr std::size_t kSegmentBytes = 2 * kMiB;

/// Of the device, when nothing is kept for later.
std::uint64_t free_bytes() {
  const Device device = Device::get(0).value();
  device.allocator().value()->empty_cache();
  return device.memory_info().value().free_bytes;
}

/// A function that occupies a stream until it is told to end.
class Occupied {
 public:
  explicit Occupied(const Stream& stream) {
    stream
        .run({.name = "occupies"},
             [this] {
               has_begun_ = true;
               while (!may_end_) std::this_thread::yield();
             })
        .value();
    while (!has_begun_) std::this_thread::yield();
  }
  void end() { may_end_ = true; }

 private:
  std::atomic<bool> has_begun_{false}, may_end_{false};
};

class BufferTest : public ::testing::Test {
 protected:
  void TearDown() override {
    // What a function let go of may be waiting for a point that comes behind the synchronisation of the test.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (free_bytes() != at_start_ && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(free_bytes(), at_start_);
  }

  Stream stream_ = Stream::from_pool().value();
  const std::uint64_t at_start_ = free_bytes();
};

TEST_F(BufferTest, WithoutWorkMemoryGoesBackAtOnce) {
  {
    const Buffer buffer = Buffer::allocate(kMiB).value();
  }
  EXPECT_EQ(free_bytes(), at_start_);
}

TEST_F(BufferTest, MemoryGoesBackWhenTheWorkBeforeItsEndHasEnded) {
  const Stream idle = Stream::from_pool().value();
  Occupied before(stream_);
  {
    const Buffer buffer = Buffer::allocate(kSegmentBytes).value();
  }
  EXPECT_EQ(free_bytes(), at_start_ - kSegmentBytes);
  idle.run_blocking({}, [] {}).value();
  EXPECT_EQ(free_bytes(), at_start_ - kSegmentBytes);
  stream_.run({}, [] {}).value();
  before.end();
  stream_.synchronize().value();
  EXPECT_EQ(free_bytes(), at_start_);
}

TEST_F(BufferTest, WorkThatIsSubmittedAfterwardsDoesNotHoldItBack) {
  Occupied before(stream_);
  {
    const Buffer buffer = Buffer::allocate(kSegmentBytes).value();
  }
  EXPECT_EQ(free_bytes(), at_start_ - kSegmentBytes) << "and from here on the allocator knows what it waits for";
  Occupied* after = nullptr;
  Event between;
  between.record(stream_).value();
  std::thread submitter([&] { after = new Occupied(stream_); });  // it begins when the first one ends
  before.end();
  between.synchronize().value();
  submitter.join();
  EXPECT_EQ(free_bytes(), at_start_);
  after->end();
  stream_.synchronize().value();
  delete after;
}

TEST_F(BufferTest, TheMemoryIsThereWhileTheWorkUsesIt) {
  constexpr std::size_t kCount = 1'000;
  std::vector<int> back(kCount);
  Occupied before(stream_);
  {
    const Buffer buffer = Buffer::allocate(kCount * sizeof(int)).value();
    stream_.fill(buffer.as<int>(), 7, kCount).value();
    stream_.copy(back.data(), buffer.data(), kCount * sizeof(int)).value();
  }
  const Buffer other = Buffer::allocate(kCount * sizeof(int)).value();
  const Stream another = Stream::from_pool().value();
  another.fill(other.as<int>(), 9, kCount).value();
  another.synchronize().value();
  before.end();
  stream_.synchronize().value();
  EXPECT_EQ(back, std::vector<int>(kCount, 7));
  // What is left is `other`, which ends after this.
}

TEST_F(BufferTest, AnAllocationThatNeedsTheMemoryWaitsForIt) {
  Occupied before(stream_);
  {
    const Buffer buffer = Buffer::allocate(at_start_ - kMiB).value();
  }
  std::atomic<bool> is_allocated{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      const Result<Buffer> buffer = Buffer::allocate(at_start_ / 2 - kMiB);
      EXPECT_TRUE(buffer) << (buffer ? "" : buffer.error().message);
      is_allocated = true;
    });
  }
  EXPECT_FALSE(is_allocated);
  before.end();
  for (std::thread& thread : threads) thread.join();
  stream_.synchronize().value();
}

TEST_F(BufferTest, AnAllocationThatCannotWaitIsRefused) {
  std::optional<Buffer> buffer = Buffer::allocate(at_start_ - kMiB).value();
  ErrorCode code = ErrorCode::internal;
  const auto use = [&] {
    buffer.reset();  // this very function still uses it, as far as the runtime knows
    const Result<Buffer> another = Buffer::allocate(2 * kMiB);
    if (!another) code = another.error().code;
  };
  stream_.run({}, use).value();
  stream_.synchronize().value();
  EXPECT_EQ(code, ErrorCode::out_of_device_memory);
}

TEST_F(BufferTest, BuffersEndInFunctionsOfStreamsThatAreSubmittedToByOthers) {
  constexpr int kRounds = 300;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([] {
      const Stream stream = Stream::from_pool().value();
      for (int round = 0; round < kRounds; ++round) {
        const auto use = [] { Buffer::allocate(64).value().as<int>()[0] = 1; };
        if (round % 2 == 0) {
          stream.run_blocking({}, use).value();
        } else {
          stream.run({}, use).value();
        }
      }
      stream.synchronize().value();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xpu
