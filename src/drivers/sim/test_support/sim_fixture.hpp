#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/drivers/sim.hpp"
#include "xpu/hal/driver.hpp"
#include "xpu/hal/kernel_function.hpp"

namespace xpu::drivers::sim {

/// Keeps what it is handed.
class KeepingSink final : public hal::CompletionSink {
 public:
  void complete(const hal::Completion& completion) noexcept override {
    const base::MutexLock lock(mutex_);
    completions_.push_back(completion);
  }
  std::vector<hal::Completion> completions() const {
    const base::MutexLock lock(mutex_);
    return completions_;
  }
  /// Of the only completion with this token.
  hal::Completion of(std::uint64_t token) const;

 private:
  mutable base::Mutex mutex_;
  std::vector<hal::Completion> completions_ XPU_GUARDED_BY(mutex_);
};

/// A driver with a program, its device 0, and kernels: "store" writes a value, "count" adds 1.
class SimDeviceUnderTest {
 public:
  explicit SimDeviceUnderTest(const Program& program = {});

  std::unique_ptr<hal::Queue> queue();
  std::unique_ptr<hal::Event> event();
  Result<> try_store(hal::Queue& queue, std::uint64_t* place, std::uint64_t value, std::uint64_t token = 0);
  void store(hal::Queue& queue, std::uint64_t* place, std::uint64_t value, std::uint64_t token = 0);
  void record(hal::Queue& queue, hal::Event& event);
  Time now() const { return *virtual_time(*device); }
  std::uint64_t steps_so_far() const { return *steps(*device); }

  KeepingSink sink;
  std::unique_ptr<hal::Driver> driver;
  std::unique_ptr<hal::Device> device;
  std::unique_ptr<hal::Module> module;
};

/// The program that this text describes.
Program program_of(const char* text);

/// Ticks between two events that are complete.
std::uint64_t ticks_between(hal::Event& begin, hal::Event& end);

/// A host function that adds 1 to a counter when it is called, and 100 when it is dropped.
hal::HostFunction counting_function(std::uint64_t& counter);

}  // namespace xpu::drivers::sim
