#include "xpu/runtime/gpu_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "runtime/callbacks.hpp"

namespace xpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const void* address(std::uintptr_t value) { return reinterpret_cast<const void*>(value); }

class GpuTraceTest : public ::testing::Test {
 protected:
  ~GpuTraceTest() override { gpu_trace::clear_callbacks(); }
  std::uint64_t note(gpu_trace::Point point, std::string what) {
    return gpu_trace::add_callback(point, [this, what](std::uintptr_t first, std::uintptr_t second) {
      seen_.push_back(what + " " + std::to_string(first) + " " + std::to_string(second));
    });
  }
  std::vector<std::string> seen_;
};

TEST_F(GpuTraceTest, CallsThoseOfThePointInTheOrderOfRegistration) {
  note(gpu_trace::Point::event_record, "first");
  note(gpu_trace::Point::event_wait, "other");
  note(gpu_trace::Point::event_record, "second");
  runtime::reached(gpu_trace::Point::event_record, address(10), address(20));
  EXPECT_THAT(seen_, ElementsAre("first 10 20", "second 10 20"));
}

TEST_F(GpuTraceTest, ARemovedOneIsNotCalledAndCannotBeRemovedAgain) {
  const std::uint64_t first = note(gpu_trace::Point::memory_allocation, "first");
  note(gpu_trace::Point::memory_allocation, "second");
  EXPECT_TRUE(gpu_trace::remove_callback(first));
  EXPECT_FALSE(gpu_trace::remove_callback(first));
  runtime::reached(gpu_trace::Point::memory_allocation, address(1));
  EXPECT_THAT(seen_, ElementsAre("second 1 0"));
}

TEST_F(GpuTraceTest, WhatOneThrowsStopsNeitherTheNextNorTheCaller) {
  base::set_log_sink([](base::LogLevel, const char*, const char*) {});
  gpu_trace::add_callback(gpu_trace::Point::stream_creation, [](std::uintptr_t, std::uintptr_t) { throw std::runtime_error("no"); });
  gpu_trace::add_callback(gpu_trace::Point::stream_creation, [](std::uintptr_t, std::uintptr_t) { throw 1; });
  note(gpu_trace::Point::stream_creation, "next");
  runtime::reached(gpu_trace::Point::stream_creation, address(3));
  base::set_log_sink(nullptr);
  EXPECT_THAT(seen_, ElementsAre("next 3 0"));
}

TEST_F(GpuTraceTest, OneMayRemoveItselfAndRegisterAnother) {
  std::uint64_t id = 0;
  id = gpu_trace::add_callback(gpu_trace::Point::device_synchronization, [&](std::uintptr_t, std::uintptr_t) {
    EXPECT_TRUE(gpu_trace::remove_callback(id));
    note(gpu_trace::Point::device_synchronization, "later");
  });
  runtime::reached(gpu_trace::Point::device_synchronization);
  EXPECT_THAT(seen_, IsEmpty()) << "what is registered meanwhile is called from the next time on";
  runtime::reached(gpu_trace::Point::device_synchronization);
  EXPECT_THAT(seen_, ElementsAre("later 0 0"));
}

}  // namespace
}  // namespace xpu
