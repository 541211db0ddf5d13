#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "drivers/host/driver.hpp"
#include "xpu/hal/device.hpp"

namespace xpu::drivers::host::test_support {

inline constexpr std::uint64_t kLimitMs = 20'000;  // far beyond what any machine needs: a test that hits it has found something

/// Whether the condition came true within the limit.
template <typename Condition>
bool comes_true(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Keeps what was delivered.
class Deliveries final : public hal::CompletionSink {
 public:
  void complete(const hal::Completion& completion) noexcept override {
    const base::MutexLock lock(mutex_);
    completions_.push_back(completion);
  }
  std::vector<hal::Completion> all() const {
    const base::MutexLock lock(mutex_);
    return completions_;
  }
  std::size_t count() const { return all().size(); }
  std::vector<std::uint64_t> tokens() const {
    std::vector<std::uint64_t> tokens;
    for (const hal::Completion& completion : all()) tokens.push_back(completion.token);
    return tokens;
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<hal::Completion> completions_ XPU_GUARDED_BY(mutex_);
};

/// A flag that a test raises and an operation waits for.
class Flag {
 public:
  void raise() {
    is_raised_.store(true, std::memory_order_release);
    is_raised_.notify_all();
  }
  bool is_raised() const { return is_raised_.load(std::memory_order_acquire); }
  void wait() const { is_raised_.wait(false, std::memory_order_acquire); }

 private:
  std::atomic<bool> is_raised_{false};
};

/// A host function that owns what it runs.
inline hal::HostFunction owned_function(std::function<Result<>()> function) {
  hal::HostFunction held;
  held.user = new std::function<Result<>()>(std::move(function));
  held.call = [](void* user) -> Result<> { return (*static_cast<std::function<Result<>()>*>(user))(); };
  held.drop = [](void* user) { delete static_cast<std::function<Result<>()>*>(user); };
  return held;
}

inline void submit(hal::Queue& queue, std::function<void()> function, const hal::Submission& submission = {}) {
  const Result<> submitted = queue.host_function(owned_function([function = std::move(function)]() -> Result<> {
                                                   function();
                                                   return {};
                                                 }),
                                                 submission);
  ASSERT_TRUE(submitted) << submitted.error().message;
}

/// A driver with its first device.
struct HostSetup {
  explicit HostSetup(const Options& options = {}) : driver(create_driver(options)), device(open(0)) {}

  std::unique_ptr<hal::Device> open(std::uint32_t ordinal) const { return driver->open_device(ordinal).value(); }
  std::unique_ptr<hal::Queue> queue(hal::CompletionSink* sink = nullptr, hal::QueuePriority priority = hal::QueuePriority::normal) const {
    return device->create_queue({priority, false, sink}).value();
  }
  std::unique_ptr<hal::Event> event(const hal::EventOptions& options = {}) const { return device->create_event(options).value(); }

  std::unique_ptr<hal::Driver> driver;
  std::unique_ptr<hal::Device> device;
};

inline Options with_executor(Executor executor) {
  Options options;
  options.executor = executor;
  return options;
}

/// A kernel made of a function, for one launch after another.
class TestKernel {
 public:
  template <auto function>
  static TestKernel of(hal::Device& device, const char* name, const KernelFacts& facts = {}) {
    const kernel_function::Described<function> described(name, facts);
    hal::ModuleSource source;
    source.format = hal::ModuleFormat::functions;
    source.functions = {&described.descriptor, 1};
    return TestKernel(device.create_module(source).value()->kernel(name).value());
  }

  /// Arguments of one size each are laid out as they stand.
  template <typename... Arguments>
  Result<> launch(hal::Queue& queue, const hal::Geometry& geometry, const hal::Submission& submission, Arguments... arguments) const {
    std::vector<std::byte> block;
    (append(block, arguments), ...);
    return queue.launch({kernel_.get(), &geometry, block, 0}, submission);
  }

 private:
  explicit TestKernel(std::shared_ptr<const hal::Kernel> kernel) : kernel_(std::move(kernel)) {}
  template <typename T>
  static void append(std::vector<std::byte>& block, const T& value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    block.resize((block.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    block.insert(block.end(), begin, begin + sizeof(T));
  }
  std::shared_ptr<const hal::Kernel> kernel_;
};

inline hal::Geometry items(std::uint64_t global, std::uint64_t local = 0) {
  hal::Geometry geometry;
  geometry.global[0] = global;
  if (local != 0) {
    geometry.local[0] = local;
    geometry.local[1] = geometry.local[2] = 1;
  }
  return geometry;
}

}  // namespace xpu::drivers::host::test_support
