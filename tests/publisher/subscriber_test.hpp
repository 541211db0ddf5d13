#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "publisher/scripted_subscriber.hpp"

namespace xpu::publisher_tests {

/// A test of what a publisher says to the subscriber: whatever breaks a rule that holds always is a failure.
class SubscriberTest : public testing::Test {
 protected:
  SubscriberTest() { subscriber_.forget_events(); }
  ~SubscriberTest() override {
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

  ScriptedSubscriber& subscriber_ = ScriptedSubscriber::get();
};

}  // namespace xpu::publisher_tests
