#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "publisher/scripted_subscriber.hpp"
#include "xpu/xpu.hpp"

namespace xpu::publisher_tests {

/// Whether the first device is one of sim, programmed by runtime_faults_test.cpp.
bool on_sim();

/// A stream of the first device that nobody has used in this process, as long as there are any.
Stream fresh_stream();

/// Adds 1 to the number that its one argument points to, once a work-group; short and independent. Of the current device.
Kernel tiny_kernel(const char* name = "tiny");

class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() {
    subscriber_.set_wanted(~std::uint32_t{0});
    subscriber_.forget_events();
  }
  ~RuntimeTest() override {
    subscriber_.refuse_operations(false);
    subscriber_.drop_submissions(false);
    for (const std::string& problem : subscriber_.problems()) ADD_FAILURE() << problem;
  }

  /// The operations of the test so far, after waiting for their ends.
  std::vector<SeenOperation> finished() {
    EXPECT_TRUE(subscriber_.wait_for_completions());
    return subscriber_.operations();
  }
  SeenOperation only_one() {
    const std::vector<SeenOperation> all = finished();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? SeenOperation{} : all[0];
  }
  SeenObject object(probe::ObjectKind kind, probe::Id id) const {
    const auto all = subscriber_.objects(kind);
    const auto found = all.find(id);
    EXPECT_NE(found, all.end()) << "no object " << id;
    return found == all.end() ? SeenObject{} : found->second;
  }

  ScriptedSubscriber& subscriber_ = ScriptedSubscriber::get();
  std::uint32_t number_ = 0;
};

}  // namespace xpu::publisher_tests
