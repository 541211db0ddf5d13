#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/drivers/sim.hpp"

// B1: memory that a program uses through buffers. What the allocators do on their own is tested beside them, on queues that a test moves.

namespace xpu::acceptance {
namespace {

using memory::DeviceCachingAllocator;
using memory::DeviceStatistics;
using memory::Snapshot;
using memory::SnapshotSegment;

constexpr std::size_t kMiB = std::size_t{1} << 20;

DeviceCachingAllocator& allocator() { return *Device::get(0).value().allocator().value(); }

class B1_BufferMemoryTest : public ::testing::Test {
 protected:
  void TearDown() override {
    hold_.reset();
    ASSERT_THAT(synchronize(), Succeeds());
    allocator().empty_cache();
    EXPECT_EQ(allocator().statistics().allocated_bytes.all.current, allocated_at_start_);
  }
  /// Something runs on the stream until it is released. On sim nothing would: asking whether a stream is done moves the time on.
  void occupy(const Stream& stream) { hold_ = std::make_unique<Hold>(stream); }

  const Stream stream_ = Stream::from_pool().value(), other_ = Stream::from_pool().value();
  const Buffer values_ = zeros(4);
  const std::int64_t allocated_at_start_ = allocator().statistics().allocated_bytes.all.current;
  std::unique_ptr<Hold> hold_;
};

TEST_F(B1_BufferMemoryTest, AStreamGetsItsOwnMemoryAgainThoughItStillWorksOnIt) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  occupy(stream_);
  void* address = nullptr;
  {
    const Buffer buffer = Buffer::allocate(kMiB, stream_).value();
    EXPECT_EQ(buffer.size_bytes(), kMiB);
    EXPECT_EQ(buffer.kind(), MemoryKind::device);
    address = buffer.data();
  }
  EXPECT_EQ(Buffer::allocate(kMiB, stream_).value().data(), address);
  EXPECT_NE(Buffer::allocate(kMiB, other_).value().data(), address) << "for others it is still in use";
  EXPECT_NE(Buffer::allocate(kMiB).value().data(), address);
}

TEST_F(B1_BufferMemoryTest, AUseOnAnotherStreamHoldsMemoryBackUntilThatStreamIsDone) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  occupy(other_);
  void* address = nullptr;
  {
    const Buffer buffer = Buffer::allocate(kMiB, stream_).value();
    buffer.record_use(other_);
    address = buffer.data();
  }
  EXPECT_NE(Buffer::allocate(kMiB, stream_).value().data(), address);
  EXPECT_EQ(allocator().statistics().active_bytes.all.current - allocator().statistics().allocated_bytes.all.current,
            static_cast<std::int64_t>(kMiB))
      << "freed, and not free";
  hold_->release();
  ASSERT_THAT(other_.synchronize(), Succeeds());
  allocator().empty_cache();
  EXPECT_EQ(allocator().statistics().active_bytes.all.current, allocator().statistics().allocated_bytes.all.current);
}

TEST_F(B1_BufferMemoryTest, AStreamOfAnotherDeviceIsAnotherStreamThoughItHasTheSameNumber) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  const Stream peer = Stream::from_id(stream_.id(), 1).value();
  occupy(peer);
  void* address = nullptr;
  {
    const Buffer buffer = Buffer::allocate(kMiB, stream_).value();
    buffer.record_use(peer);
    address = buffer.data();
  }
  EXPECT_NE(Buffer::allocate(kMiB, stream_).value().data(), address);
  hold_->release();
  ASSERT_THAT(peer.synchronize(), Succeeds());
}

TEST_F(B1_BufferMemoryTest, ABufferOfAllStreamsWaitsForThoseThatAreBusy) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  occupy(other_);
  void* address = nullptr;
  {
    const Buffer buffer = Buffer::allocate(kMiB).value();
    address = buffer.data();
  }
  EXPECT_NE(Buffer::allocate(kMiB).value().data(), address);
  hold_->release();
  ASSERT_THAT(other_.synchronize(), Succeeds());
  {
    const Buffer buffer = Buffer::allocate(kMiB).value();
    address = buffer.data();
  }
  EXPECT_EQ(Buffer::allocate(kMiB).value().data(), address) << "nobody is busy";
}

TEST_F(B1_BufferMemoryTest, StatisticsAndSnapshotTellTheSame) {
  std::vector<Buffer> buffers;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5'000}, 3 * kMiB, 30 * kMiB}) {
    buffers.push_back(Buffer::allocate(bytes, stream_).value());
    buffers.push_back(Buffer::allocate(bytes).value());
  }
  buffers.erase(buffers.begin() + 2);
  const DeviceStatistics statistics = allocator().statistics();
  std::uint64_t allocated = 0, active = 0, reserved = 0;
  const Snapshot snapshot = allocator().snapshot();
  for (const SnapshotSegment& segment : snapshot.segments) {
    allocated += segment.allocated_bytes;
    active += segment.active_bytes;
    reserved += segment.total_bytes;
  }
  EXPECT_EQ(static_cast<std::uint64_t>(statistics.allocated_bytes.all.current), allocated);
  EXPECT_EQ(static_cast<std::uint64_t>(statistics.active_bytes.all.current), active);
  EXPECT_EQ(static_cast<std::uint64_t>(statistics.reserved_bytes.all.current), reserved);
}

TEST_F(B1_BufferMemoryTest, WhatDoesNotFitIsRefusedWithTheFiguresOfTheAllocator) {
  const std::uint64_t total = Device::get(0).value().memory_info().value().total_bytes;
  const std::int64_t before = allocator().statistics().num_ooms;
  const Result<Buffer> refused = Buffer::allocate(total + kMiB);
  EXPECT_THAT(refused, FailsWith(ErrorCode::out_of_device_memory, ::testing::StartsWith("XPU out of memory. Tried to allocate ")));
  EXPECT_EQ(allocator().statistics().num_ooms, before + 1);
}

TEST_F(B1_BufferMemoryTest, PinnedMemoryServesAgainWhenNoStreamUsesIt) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  auto& pinned = *Device::get(0).value().host_allocator().value();
  // What other tests let go of is free, once what they submitted has run.
  for (int device = 0; device < Device::count().value(); ++device) ASSERT_THAT(Device::get(device).value().synchronize(), Succeeds());
  pinned.empty_cache();
  const std::int64_t before = pinned.statistics().allocated_bytes.current;
  occupy(other_);
  void* address = nullptr;
  {
    const Buffer buffer = Buffer::allocate(kMiB, MemoryKind::host).value();
    std::memset(buffer.data(), 1, kMiB);
    address = buffer.data();
    EXPECT_EQ(pinned.statistics().allocated_bytes.current, before + static_cast<std::int64_t>(kMiB));
  }
  EXPECT_EQ(pinned.statistics().pending_bytes.current, static_cast<std::int64_t>(kMiB));
  EXPECT_NE(Buffer::allocate(kMiB, MemoryKind::host).value().data(), address);
  hold_->release();
  ASSERT_THAT(other_.synchronize(), Succeeds());
  pinned.empty_cache();
  EXPECT_EQ(pinned.statistics().allocated_bytes.current, before);
  EXPECT_EQ(pinned.statistics().pending_bytes.current, 0);
}

TEST_F(B1_BufferMemoryTest, MemoryThatWasAskedAboutWhileItWasUsedServesAgainEveryTime) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  auto& pinned = *Device::get(0).value().host_allocator().value();
  for (int round = 0; round < 3; ++round) {
    occupy(other_);
    {
      const Buffer buffer = Buffer::allocate(kMiB, MemoryKind::host).value();
    }
    pinned.empty_cache();  // asks, in vain
    EXPECT_EQ(pinned.statistics().pending_bytes.current, static_cast<std::int64_t>(kMiB)) << round;
    hold_->release();
    ASSERT_THAT(other_.synchronize(), Succeeds());
    pinned.empty_cache();
    EXPECT_EQ(pinned.statistics().pending_bytes.current, 0) << round;
  }
}

TEST_F(B1_BufferMemoryTest, WhereMemoryIsScarceAStreamWaitsForMemoryAndTheProgramDoesNot) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  constexpr std::size_t kBytes = 32 * kMiB;
  allocator().empty_cache();
  const auto total_bytes = static_cast<double>(Device::get(0).value().memory_info().value().total_bytes);
  const auto reserved_bytes = static_cast<double>(allocator().statistics().reserved_bytes.all.current);
  ASSERT_THAT(allocator().set_memory_fraction((reserved_bytes + 1.2 * kBytes) / total_bytes), Succeeds());
  occupy(other_);
  {
    const Buffer buffer = Buffer::allocate(kBytes, stream_).value();
    buffer.record_use(other_);
  }
  const auto is_run = std::make_shared<std::atomic<bool>>(false);
  {
    // This would never return if it waited.
    const Buffer again = Buffer::allocate(kBytes, stream_).value();
    stream_.run({}, [is_run] { *is_run = true; }).value();
  }
  EXPECT_THAT(stream_.query(), Gives(false));
  EXPECT_FALSE(*is_run) << "the memory is the other stream's until it is released";
  hold_->release();
  ASSERT_THAT(stream_.synchronize(), Succeeds());
  EXPECT_TRUE(*is_run);
  ASSERT_THAT(allocator().set_memory_fraction(1), Succeeds());
}

/// A known answer on a clock that only moves with the work: an allocation waits for work only where there is no other memory.
TEST_F(B1_BufferMemoryTest, AnAllocationTakesNoVirtualTimeUnlessItMustWait) {
  if (std::string_view(Device::get(0).value().driver()) != "sim") GTEST_SKIP() << "needs a virtual clock";
  hal::Device& device = *Device::get(0).value().native().value();
  const auto now = [&] { return drivers::sim::virtual_time(device).value(); };
  allocator().empty_cache();
  const std::size_t most_bytes = Device::get(0).value().memory_info().value().free_bytes - 8 * kMiB;
  const Kernel kernel = long_kernel();
  const auto begin = now();
  stream_.launch(kernel, items(4), values_of(values_), 1).value();  // takes a second
  for (int round = 0; round < 3; ++round) EXPECT_THAT(Buffer::allocate(most_bytes, stream_), Succeeds());
  EXPECT_LT(now() - begin, std::chrono::milliseconds(1)) << "its own stream does not wait";
  EXPECT_THAT(Buffer::allocate(most_bytes, other_), Succeeds());
  EXPECT_GE(now() - begin, std::chrono::seconds(1)) << "another one gets it when the kernel has ended";
  EXPECT_LT(now() - begin, std::chrono::milliseconds(1'001)) << "and no later";
}

/// Every block carries the number of its owner for as long as work that was submitted may look at it: memory that is handed out too early
/// carries another one's.
TEST_F(B1_BufferMemoryTest, NoMemoryIsHandedOutWhileWorkThatUsesItIsToCome) {
  if (!runs_by_itself()) GTEST_SKIP() << kNeedsThreads;
  constexpr int kRounds = 400;
  constexpr std::size_t kStreams = 3;
  std::atomic<int> wrong{0};
  std::atomic<std::uint64_t> next_tag{1};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);  // NOLINT: the same numbers in every run
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < kStreams; ++i) streams.push_back(Stream::from_pool().value());
    std::vector<Buffer> live;
    for (int round = 0; round < kRounds; ++round) {
      const Stream& owner = streams[random() % kStreams];
      const bool is_of_all = random() % 3 == 0;
      const std::size_t bytes = random() % 4 == 0 ? 1'500'000 : 600 * (1 + random() % 20);
      Buffer buffer = is_of_all ? Buffer::allocate(bytes).value() : Buffer::allocate(bytes, owner).value();
      const std::uint64_t tag = next_tag++;
      auto* const first = buffer.as<std::atomic<std::uint64_t>>();
      auto* const last = first + bytes / sizeof(std::uint64_t) - 1;
      const auto look = [&wrong, first, last, tag] {
        if (first->load() != tag || last->load() != tag) ++wrong;
      };
      owner
          .run({},
               [first, last, tag] {
                 first->store(tag);
                 last->store(tag);
                 std::this_thread::yield();
               })
          .value();
      for (std::size_t use = random() % 3; use != 0; --use) {
        const Stream& user = streams[random() % kStreams];
        user.wait(owner).value();
        if (!is_of_all) buffer.record_use(user);
        user.run({}, look).value();
      }
      owner.run({}, look).value();
      live.push_back(std::move(buffer));
      if (live.size() > 6) live.erase(live.begin() + static_cast<std::ptrdiff_t>(random() % live.size()));
      if (random() % 50 == 0) allocator().empty_cache();
    }
    for (const Stream& stream : streams) stream.synchronize().value();
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 2; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

XPU_CHILD_MODE(prints_error_of_an_allocation) {
  const Result<Buffer> allocated = Buffer::allocate(1);
  std::cout << (allocated ? "allocated" : to_string(allocated.error())) << "\n";
  return 0;
}

TEST(B1_BufferMemoryConfTest, OptionsComeFromTheEnvironmentAndMistakesAreNamed) {
  const auto output = [](const char* text) { return run_mode("prints_error_of_an_allocation", {{"XPU_MEMORY_CONF", text}}).output; };
  EXPECT_EQ(output(""), "allocated\n");
  EXPECT_EQ(output("max_split_size_mb:64,expandable_segments:False"), "allocated\n");
  EXPECT_THAT(output("max_split_size:64"), ::testing::StartsWith("invalid_argument: XPU_MEMORY_CONF: "));
  EXPECT_THAT(output("pinned_use_background_threads:True"),
              ::testing::StartsWith("unsupported: XPU_MEMORY_CONF: pinned_use_background_threads:True has no meaning here"));
  EXPECT_THAT(output("per_process_memory_fraction:0.00001"), ::testing::StartsWith("out_of_device_memory: XPU out of memory."));
}

XPU_CHILD_MODE(leaves_memory_allocated) {
  static std::vector<Buffer> kept;
  for (int i = 0; i < 3; ++i) kept.push_back(Buffer::allocate(1'000).value());
  kept.erase(kept.begin());
  static const auto& never_freed = *new Buffer(Buffer::allocate(5 * kMiB, Stream::current().value()).value());
  static_cast<void>(never_freed);
  return 0;
}

TEST(B1_BufferMemoryDebugTest, WhatIsAllocatedAtExitIsListedWhereThatIsWanted) {
  EXPECT_EQ(run_mode("leaves_memory_allocated").complaints, "");
  const Ended ended = run_mode("leaves_memory_allocated", {{"XPU_MEMORY_DEBUG", "live_blocks:True"}});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.complaints, ::testing::StartsWith("xpu: device memory of device 0 at exit: 5.0 MiB in 3 blocks were not freed:\n"));
  EXPECT_THAT(ended.complaints, ::testing::HasSubstr("\n  2.0 KiB in 2 blocks, stream 0, "));
  EXPECT_THAT(ended.complaints, ::testing::HasSubstr("Buffer::allocate")) << "and from where";
}

XPU_CHILD_MODE(writes_beyond_a_buffer) {
  const Stream stream = Stream::current().value();
  {
    const Buffer buffer = Buffer::allocate(100).value();
    stream.fill(buffer.as<char>(), char{1}, 101).value();
    stream.synchronize().value();
  }
  synchronize().value();
  Device::get(0).value().synchronize().value();
  static_cast<void>(Buffer::allocate(100));  // which looks at what was freed
  return 0;
}

TEST(B1_BufferMemoryDebugTest, AWriteBeyondTheEndIsFoundWithGuards) {
  EXPECT_EQ(run_mode("writes_beyond_a_buffer").complaints, "") << "nobody looks";
  const Ended ended = run_mode("writes_beyond_a_buffer", {{"XPU_MEMORY_DEBUG", "guards:True"}});
  EXPECT_EQ(ended.exit_code, 0) << ended;
  EXPECT_THAT(ended.complaints, ::testing::HasSubstr("100 bytes")) << ended;
}

XPU_CHILD_MODE(runs_out_of_memory) {
  static_cast<void>(Buffer::allocate(std::size_t{1} << 50));
  return 0;
}

TEST(B1_BufferMemoryDebugTest, ASnapshotIsThereAfterTheFirstOutOfMemory) {
  // The same test may be running on another driver.
  const std::string path = ::testing::TempDir() + "xpu_oom_snapshot." + std::to_string(getpid());
  EXPECT_EQ(run_mode("runs_out_of_memory", {{"XPU_MEMORY_DEBUG", "oom_snapshot:" + path}}).exit_code, 0);
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_THAT(run_mode("prints_error_of_an_allocation", {{"XPU_MEMORY_DEBUG", "guards:1"}}).output,
              ::testing::StartsWith("invalid_argument: XPU_MEMORY_DEBUG: guards is True or False, not '1'"));
}

/// Counts, and takes memory of the host.
class OwnAllocator final : public memory::Allocator {
 public:
  Result<void*> allocate(std::size_t bytes, const memory::StreamRef&) override {
    ++allocations;
    return ::operator new(bytes);
  }
  Result<> free(void* address) override {
    ++frees;
    ::operator delete(address);
    return {};
  }
  bool record_use(void*, const memory::StreamRef&) override { return true; }
  void empty_cache() override {}
  DeviceStatistics statistics() const override { return {}; }
  void reset_peak_statistics() override {}
  void reset_accumulated_statistics() override {}

  int allocations = 0, frees = 0;
};

OWN_PROCESS_TEST(B1_ReplacedAllocatorTest, AnotherAllocatorServesBuffersFromTheFirstOneOn) {
  const auto own = std::make_shared<OwnAllocator>();
  const Device device = Device::get(0).value();
  EXPECT_THAT(device.replace_allocator(nullptr), FailsWith(ErrorCode::invalid_argument, ::testing::_));
  ASSERT_THAT(device.replace_allocator(own), Succeeds());
  {
    const Buffer buffer = Buffer::allocate(64).value(), another = Buffer::allocate(64, Stream::current().value()).value();
    EXPECT_EQ(own->allocations, 2);
    EXPECT_EQ(own->frees, 0);
  }
  EXPECT_EQ(own->frees, 2);
  EXPECT_THAT(device.replace_allocator(std::make_shared<OwnAllocator>()), FailsWith(ErrorCode::failed_precondition, ::testing::_));
  const Buffer other_device = Buffer::allocate(64, MemoryKind::device, 1).value();
  EXPECT_EQ(own->allocations, 2);
  EXPECT_THAT(Device::get(1).value().replace_allocator(own), FailsWith(ErrorCode::failed_precondition, ::testing::_)) << "too late";
}

}  // namespace
}  // namespace xpu::acceptance
