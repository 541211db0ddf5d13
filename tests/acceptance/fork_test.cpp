#include <array>
#include <atomic>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"

// A3: what a forked child may do.

namespace xpu::acceptance {
namespace {

constexpr const char* kBadForkSentence =
    "Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing, you must use the 'spawn' start method";

/// Whether a kernel runs on each device; says why not.
bool kernels_run() {
  for (int device = 0; device < kDevices; ++device) {
    const Buffer values = zeros(4, device);
    const Stream stream = Stream::current(device).value();
    const Result<> launched = stream.launch(add_kernel(device), items(4), values_of(values), 3);
    const Result<> synchronized = stream.synchronize();
    if (!launched || !synchronized || values_of(values)[3] != 3) {
      std::cerr << "a kernel did not run on device " << device << "\n";
      return false;
    }
  }
  return true;
}

bool is_bad_fork_error(const Error& error) { return error.code == ErrorCode::unavailable && error.message == kBadForkSentence; }

OWN_PROCESS_TEST(A3_ForkTest, AChildThatWasForkedAfterCountingIsAProcessLikeAnyOther) {
  ASSERT_TRUE(is_available());
  ASSERT_THAT(Device::count(), Gives(kDevices));
  const DeviceProperties properties = Device::get(1).value().properties();
  const Ended ended = in_forked_child([&] {
    if (is_in_bad_fork() || is_initialized() || !(Device::get(1).value().properties() == properties)) return 2;
    return kernels_run() && is_initialized() ? 0 : 1;
  });
  EXPECT_EQ(ended.exit_code, 0) << ended;
  EXPECT_FALSE(is_initialized());
  EXPECT_TRUE(kernels_run());
}

/// Everything that a program may hold when it forks.
struct Held {
  Stream stream = Stream::from_pool().value();
  Stream other_stream = Stream::from_pool(-1, 1).value();
  Event recorded{EventOptions{.timing = true}}, recorded_later{EventOptions{.timing = true}};
  Buffer buffer = zeros(4);
  Module module = Module::registered().value();
  Kernel kernel = module.kernel("acceptance_add").value();
  Device device = Device::get(0).value(), other_device = Device::get(1).value();
  memory::DeviceCachingAllocator& allocator = *device.allocator().value();
  memory::HostCachingAllocator& host_allocator = *device.host_allocator().value();
  std::optional<ExternalStream> external;
};

/// Each call of the runtime that can fail, made in a child of an initialised process: prints those that do not give the sentence.
int count_wrong_answers(Held& held) {
  int wrong = 0;
  const auto expect = [&](const char* call, const auto& result) {
    if (!result && is_bad_fork_error(result.error())) return;
    std::cerr << call << ": " << (result ? "succeeds" : to_string(result.error())) << "\n";
    ++wrong;
  };
  Event unused;
  const std::int32_t value = 1;
  expect("initialize", initialize());
  expect("Device::set_current", Device::set_current(0));
  expect("Device::exchange_current", Device::exchange_current(0));
  expect("Device::capabilities", held.device.capabilities());
  expect("Device::native", held.device.native());
  expect("Device::synchronize", held.device.synchronize());
  expect("Device::memory_info", held.device.memory_info());
  expect("Device::can_access_peer", held.device.can_access_peer(held.other_device));
  expect("synchronize", synchronize());
  expect("DeviceGuard::make", DeviceGuard::make(0));
  expect("Stream::from_pool", Stream::from_pool());
  expect("Stream::default_stream", Stream::default_stream());
  expect("Stream::current", Stream::current());
  expect("Stream::from_id", Stream::from_id(held.stream.id(), 0));
  expect("Stream::from_external", Stream::from_external(held.external->stream().native_handle(), 0));
  expect("ExternalStream::wrap", ExternalStream::wrap(held.external->stream().native_handle(), 0));
  expect("StreamGuard::make", StreamGuard::make(held.stream));
  for (const Stream& stream : {held.stream, held.other_stream, held.external->stream()}) {
    expect("Stream::make_current", stream.make_current());
    expect("Stream::query", stream.query());
    expect("Stream::synchronize", stream.synchronize());
    expect("Stream::wait for a stream", stream.wait(held.stream == stream ? held.other_stream : held.stream));
    expect("Stream::wait for itself", stream.wait(stream));
    expect("Stream::wait for an event", stream.wait(held.recorded));
    expect("Stream::record", stream.record(held.recorded));
    expect("Stream::record of a new event", stream.record(unused));
    expect("Stream::launch", stream.launch(held.kernel, items(4), values_of(held.buffer), value));
    expect("Stream::copy", stream.copy(values_of(held.buffer), &value, sizeof value));
    expect("Stream::copy of nothing", stream.copy(nullptr, nullptr, 0));
    expect("Stream::copy_blocking", stream.copy_blocking(values_of(held.buffer), &value, sizeof value));
    expect("Stream::fill", stream.fill(values_of(held.buffer), 1, 4));
    expect("Stream::run", stream.run({}, [] {}));
    expect("Stream::run_blocking", stream.run_blocking({}, [] {}));
  }
  expect("Event::record", held.recorded.record());
  expect("Event::wait", held.recorded.wait());
  expect("Event::query", held.recorded.query());
  expect("Event::synchronize", held.recorded.synchronize());
  expect("Event::elapsed_time", held.recorded.elapsed_time(held.recorded_later));
  expect("Buffer::allocate", Buffer::allocate(4));
  expect("Buffer::allocate for a stream", Buffer::allocate(4, held.stream));
  expect("Device::allocator", held.device.allocator());
  expect("Device::host_allocator", held.device.host_allocator());
  expect("DeviceCachingAllocator::allocate", held.allocator.allocate(4, held.stream.memory_ref()));
  expect("DeviceCachingAllocator::start_history", held.allocator.start_history());
  expect("HostCachingAllocator::allocate", held.host_allocator.allocate(4));
  expect("Module::registered", Module::registered());
  expect("Module::from_source", Module::from_source(""));
  expect("Module::kernel", held.module.kernel("acceptance_add"));
  expect("Kernel::registered", Kernel::registered("acceptance_add"));
  return wrong;
}

OWN_PROCESS_TEST(A3_ForkTest, AChildOfAnInitialisedProcessGetsTheSentenceFromEveryCallAndEnds) {
  Held held;
  const auto native_queue = held.device.native().value()->create_queue({}).value();
  held.external.emplace(ExternalStream::wrap(native_queue->native_handle(), 0).value());
  for (const Stream& stream : {held.stream, held.external->stream()}) {
    EXPECT_THAT(stream.launch(held.kernel, items(4), values_of(held.buffer), 1), Succeeds());
    EXPECT_THAT(stream.synchronize(), Succeeds());
  }
  EXPECT_THAT(held.recorded.record(held.stream), Succeeds());
  EXPECT_THAT(held.recorded_later.record(held.stream), Succeeds());

  const Ended ended = in_forked_child([&] {
    if (!is_in_bad_fork() || is_initialized()) return 100;
    // Values answer as before, and so does what was known without initialising.
    if (!is_available() || Device::count().value() != kDevices || held.stream.id() != 3 || held.recorded.device() != 0) return 101;
    return count_wrong_answers(held);
  });
  EXPECT_EQ(ended.exit_code, 0) << ended;

  EXPECT_TRUE(is_initialized());
  EXPECT_FALSE(is_in_bad_fork());
  EXPECT_TRUE(kernels_run());
}

OWN_PROCESS_TEST(A3_ForkTest, AChildMayDestroyWhatItInherited) {
  auto held = std::make_unique<Held>();
  auto native_queue = held->device.native().value()->create_queue({}).value();
  held->external.emplace(ExternalStream::wrap(native_queue->native_handle(), 0).value());
  EXPECT_THAT(held->recorded.record(held->stream), Succeeds());
  auto guard = std::make_unique<DeviceGuard>(DeviceGuard::make(1).value());
  auto stream_guard = std::make_unique<StreamGuard>(StreamGuard::make(held->stream).value());
  const Ended ended = in_forked_child([&] {
    stream_guard.reset();
    guard.reset();
    held.reset();
    return Device::current();
  });
  EXPECT_EQ(ended.exit_code, 0) << ended;
}

OWN_PROCESS_TEST(A3_ForkTest, AGrandchildOfAChildThatInitialisedGetsTheSentence) {
  ASSERT_TRUE(is_available());
  const Ended ended = in_forked_child([] {
    if (!kernels_run()) return 1;
    const Ended grandchild = in_forked_child([] { return is_bad_fork_error(initialize().error()) ? 0 : 2; });
    return grandchild.exit_code;
  });
  EXPECT_EQ(ended.exit_code, 0) << ended;
}

OWN_PROCESS_TEST(A3_ForkTest, ForkingFromOneOfManyThreadsThatSubmitLeavesChildrenThatEndAndAParentThatWorks) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "gcc 12's AddressSanitizer does not fork safely: its allocator's locks are held for ever in the child";
#endif
  constexpr int kThreads = 3, kForks = 10;
  const Kernel kernel = add_kernel();
  std::array<std::optional<Buffer>, kThreads> values;
  std::array<std::atomic<int>, kThreads> launches{};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < kThreads; ++index) {
    values[index].emplace(zeros(1));
    threads.emplace_back([&, index] {
      const Stream stream = Stream::from_pool().value();
      while (!is_over) {
        stream.launch(kernel, items(1), values_of(*values[index]), 1).value();
        if (++launches[index] % 16 == 0) stream.synchronize().value();
      }
      stream.synchronize().value();
    });
  }
  const Stream stream = Stream::from_pool().value();
  std::thread forker([&] {
    for (int fork = 0; fork < kForks; ++fork) {
      const int before = launches[0];
      EXPECT_TRUE(eventually([&] { return launches[0] > before; }));
      const Ended ended = in_forked_child([&] { return is_bad_fork_error(stream.query().error()) && is_in_bad_fork() ? 0 : 1; });
      EXPECT_EQ(ended.exit_code, 0) << ended;
    }
    is_over = true;
  });
  forker.join();
  for (std::thread& thread : threads) thread.join();
  for (std::size_t index = 0; index < kThreads; ++index) EXPECT_EQ(values_of(*values[index])[0], launches[index]);
}

OWN_PROCESS_TEST(A3_ForkTest, AllocatorsThatOtherThreadsWereUsingDoNotHangInAChild) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own allocator may be locked by a thread that is not there";
#endif
  const Device device = Device::get(0).value();
  memory::DeviceCachingAllocator& allocator = *device.allocator().value();
  memory::HostCachingAllocator& host_allocator = *device.host_allocator().value();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      const memory::StreamRef stream = Stream::from_pool().value().memory_ref();
      while (!is_over) {
        static_cast<void>(allocator.free(allocator.allocate(3'000'000, stream).value()));
        static_cast<void>(host_allocator.free(host_allocator.allocate(3'000).value()));
        static_cast<void>(allocator.statistics());
      }
    });
  }
  for (int child = 0; child < 20; ++child) {
    const Ended ended = in_forked_child([&] {
      const auto allocated = allocator.allocate(3'000'000, {});
      allocator.empty_cache();
      host_allocator.empty_cache();
      const bool is_empty = allocator.snapshot().segments.empty() && allocator.statistics().allocation.all.current == 0 &&
                            host_allocator.statistics().allocation.current == 0 && allocator.create_pool() == nullptr;
      return !allocated && is_bad_fork_error(allocated.error()) && allocator.free(&is_over) && is_empty ? 0 : 1;
    });
    EXPECT_EQ(ended.exit_code, 0) << ended;
    if (::testing::Test::HasFailure()) break;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xpu::acceptance
