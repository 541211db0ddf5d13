#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "tests/conformance/suite.hpp"
#include "xpu/hal/driver.hpp"

/// What tests use to drive a device.
namespace xpu::conformance {

/// Calls again and again until it is true; false after a long limit (30 s under sanitizers): the test then fails with what it waited for.
bool eventually(const std::function<bool()>& condition);

/// Runs this on that many threads and waits for all; the index of each is 0, 1, ….
void on_threads(int thread_count, const std::function<void(int)>& body);

/// Does something at the end of a scope, also when a test fails in it: tells the other threads that there is nothing more to wait for.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> action) : action_(std::move(action)) {}
  ~AtEnd() { action_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const std::function<void()> action_;
};

/// A function that any callable can be; its error becomes the queue's.
Result<> submit_function(hal::Queue& queue, std::function<Result<>()> function, const hal::Submission& submission = {});
/// The same with a function that cannot fail.
Result<> submit_action(hal::Queue& queue, std::function<void()> action, const hal::Submission& submission = {});

/// Whether an operation runs elsewhere or later than in the submission. Submits one to find out, on a queue of its own.
bool leaves_operations_pending(hal::Device& device);

/// Keeps what is submitted to a queue behind it pending, until `release` or the end of its life: a host function that waits for a flag, if
/// it runs on another thread than the one that made the Hold. A driver that does its work when it is asked or waited for runs it there;
/// with such a driver work pends by itself, so a test that has a Hold neither queries nor waits before `release`, unless it needs
/// concurrent_operations. Where operations run inside the submission there is no pending work: the need `pending_operations`.
class Hold {
 public:
  explicit Hold(hal::Queue& queue);
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  void release();
  /// Waits until the host function runs. Needs concurrent_operations.
  bool eventually_holds() const;

 private:
  struct State {
    std::atomic<bool> is_entered{false};
    std::atomic<bool> is_released{false};
  };
  std::shared_ptr<State> state_;
};

/// Remembers what was delivered. Thread-safe.
class RecordingSink final : public hal::CompletionSink {
 public:
  void complete(const hal::Completion& completion) noexcept override;

  /// In the order of delivery.
  std::vector<hal::Completion> all() const;
  std::size_t count() const;
  /// How often this token was delivered.
  std::size_t count_of(std::uint64_t token) const;
  /// The first delivery of a token; throws BadResult when there is none.
  hal::Completion of(std::uint64_t token) const;

 private:
  mutable base::Mutex mutex_;
  std::vector<hal::Completion> completions_ XPU_GUARDED_BY(mutex_);
};

/// Whether one tick is not before another, at a distance of less than half the range of the counter.
bool not_before(const hal::ClockInfo& clock, std::uint64_t later, std::uint64_t earlier);
std::uint64_t ticks_between(const hal::ClockInfo& clock, std::uint64_t earlier, std::uint64_t later);

/// A block of arguments as `KernelInfo` lays it out.
template <typename... Arguments>
std::vector<std::byte> argument_block(const hal::KernelInfo& info, const Arguments&... arguments) {
  std::vector<std::byte> block(info.argument_bytes);
  std::size_t index = 0;
  (std::memcpy(block.data() + info.arguments.at(index++).offset_bytes, &arguments, sizeof(Arguments)), ...);
  return block;
}

/// The index space of a launch: `items({64, 4})`, `items({64, 4}, {8, 2})`.
hal::Geometry items(std::initializer_list<std::uint64_t> global, std::initializer_list<std::uint64_t> local = {});

/// Launches with these arguments, which must have exactly the types of the kernel's parameters.
template <typename... Arguments>
Result<> launch_with(hal::Queue& queue, const hal::Kernel& kernel, const hal::Geometry& geometry, const hal::Submission& submission,
                     const Arguments&... arguments) {
  const std::vector<std::byte> block = argument_block(kernel.info(), arguments...);
  hal::Launch launch;
  launch.kernel = &kernel;
  launch.geometry = &geometry;
  launch.arguments = block;
  return queue.launch(launch, submission);
}
template <typename... Arguments>
Result<> launch(hal::Queue& queue, const hal::Kernel& kernel, const hal::Geometry& geometry, const Arguments&... arguments) {
  return launch_with(queue, kernel, geometry, {}, arguments...);
}

/// A suite of tests on opened devices. Memory and sinks live until everything on the devices has ended, so that a test that fails halfway
/// leaves nothing behind that a pending operation could touch.
class DeviceTest : public ConformanceTest {
 protected:
  void TearDown() override;

  std::unique_ptr<hal::Queue> new_queue(const hal::QueueOptions& options = {}) const { return device().create_queue(options).value(); }
  std::unique_ptr<hal::Queue> new_queue(hal::CompletionSink& sink) const;
  std::unique_ptr<hal::Event> new_event(bool is_timed = false) const;
  RecordingSink& new_sink() { return sinks_.emplace_back(); }

  hal::MemoryProvider& memory(hal::MemoryKind kind) const { return *device().memory(kind); }
  /// The kinds of memory that the device has.
  std::vector<hal::MemoryKind> kinds() const;
  /// Those that the host may touch.
  std::vector<hal::MemoryKind> host_visible_kinds() const;

  /// Memory of this kind, given back after the test; contents undefined.
  template <typename T>
  T* allocate(hal::MemoryKind kind, std::size_t count) {
    return static_cast<T*>(allocate_bytes(memory(kind), count * sizeof(T)));
  }
  void* allocate_bytes(hal::MemoryProvider& provider, std::size_t bytes, std::size_t alignment = 64);
  /// Memory that the device and the host reach, all zero.
  template <typename T>
  T* allocate_zeros(std::size_t count) {
    T* const values = allocate<T>(host_visible_kinds().at(0), count);
    std::memset(static_cast<void*>(values), 0, count * sizeof(T));
    return values;
  }

  /// Writes through pinned memory; returns when it is there.
  void write(hal::Queue& queue, void* destination, std::span<const std::byte> bytes);
  std::vector<std::byte> read(hal::Queue& queue, const void* source, std::size_t bytes);
  template <typename T>
  std::vector<T> read_as(hal::Queue& queue, const T* source, std::size_t count) {
    const std::vector<std::byte> bytes = read(queue, source, count * sizeof(T));
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  /// A kernel of kernels.cpp, which is in the module of registered kernels.
  std::shared_ptr<const hal::Kernel> suite_kernel(std::string_view name, std::uint32_t ordinal = 0) const;

 private:
  struct Block {
    hal::MemoryProvider* provider;
    void* address;
  };
  std::vector<Block> blocks_;
  std::deque<RecordingSink> sinks_;
};

/// Bytes that differ from their neighbours and from one seed to the next.
std::vector<std::byte> pattern_bytes(std::size_t count, unsigned seed);

}  // namespace xpu::conformance
