#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "publisher/subscriber_test.hpp"
#include "xpu/xpu.hpp"

namespace xpu::publisher_tests {

/// Whether the first device is one of sim, programmed by runtime_faults_test.cpp.
bool on_sim();

/// A stream of the first device that nobody has used in this process, as long as there are any.
Stream fresh_stream();

/// Adds 1 to the number that its one argument points to, once a work-group; short and independent. Of the current device.
Kernel tiny_kernel(const char* name = "tiny");

class RuntimeTest : public SubscriberTest {
 protected:
  RuntimeTest() {
    subscriber_.set_wanted(~std::uint32_t{0});
    subscriber_.forget_events();
  }

  SeenObject object(probe::ObjectKind kind, probe::Id id) const {
    const auto all = subscriber_.objects(kind);
    const auto found = all.find(id);
    EXPECT_NE(found, all.end()) << "no object " << id;
    return found == all.end() ? SeenObject{} : found->second;
  }

  std::uint32_t number_ = 0;
};

}  // namespace xpu::publisher_tests
