#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xpu/xpu.hpp"

/// What the tests of several rows use.
namespace xpu::acceptance {

/// Devices that every environment of these tests has.
inline constexpr int kDevices = 2;

MATCHER(Succeeds, "succeeds") {
  if (!arg) *result_listener << to_string(arg.error());
  return arg.has_value();
}
/// A Result with an error of this code whose sentence matches.
MATCHER_P2(FailsWith, code, sentence, "fails with " + ::testing::PrintToString(to_string(code))) {
  if (arg) {
    *result_listener << "succeeds";
    return false;
  }
  *result_listener << to_string(arg.error());
  return arg.error().code == code && ::testing::Matches(sentence)(arg.error().message);
}
/// A Result with this value.
MATCHER_P(Gives, value, "gives " + ::testing::PrintToString(value)) {
  if (!arg) {
    *result_listener << to_string(arg.error());
    return false;
  }
  *result_listener << "gives " << ::testing::PrintToString(*arg);
  return *arg == value;
}

/// Whether work goes on by itself, on threads of its own and in real time. Elsewhere (sim) work is done when somebody asks for it, so a
/// host function may not wait for the test.
bool runs_by_itself();
inline constexpr const char* kNeedsThreads = "needs a device that works on threads of its own, in real time";

/// Calls again and again until it is true; false after a long limit.
bool eventually(const std::function<bool()>& condition);

/// Keeps what is submitted to a stream behind it waiting, until `release` or the end of its life. Needs `runs_by_itself`.
class Hold {
 public:
  explicit Hold(const Stream& stream);
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  void release();

 private:
  std::shared_ptr<std::atomic<bool>> is_released_ = std::make_shared<std::atomic<bool>>(false);
};

/// Memory that a device and this program see, all zero.
Buffer zeros(std::size_t count, int device = -1);
/// Its elements.
std::int32_t* values_of(const Buffer& buffer);

/// Kernels of kernels.cpp, by their names: `acceptance_add` (pointer, value) adds to every element; `acceptance_long` is the same, and
/// takes long on sim; `acceptance_wait` (pointer) waits until the value is not 0, for ever otherwise.
Kernel add_kernel(int device = -1);
Kernel long_kernel(int device = -1);
Kernel wait_kernel(int device = -1);

/// Submits something that has not ended when the next call is made: a function that takes so long, or what needs virtual time; then it
/// stores the value.
void store_late(const Stream& stream, std::int32_t* place, std::int32_t value,
                std::chrono::milliseconds time = std::chrono::milliseconds(50));

}  // namespace xpu::acceptance
