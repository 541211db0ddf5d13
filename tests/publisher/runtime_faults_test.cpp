#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "publisher/runtime_support.hpp"
#include "xpu/drivers/sim.hpp"

/// Drivers that fail, on the simulated device: what becomes of operations, each of which must have one end or one loss.
namespace xpu::publisher_tests {
namespace {

// What goes wrong on sim, by the names of kernels, so that every test decides for itself. Before any device is counted.
const bool g_is_programmed = [] {
  using drivers::sim::FaultKind;
  using drivers::sim::OperationKind;
  drivers::sim::Program program;
  program.device_count = 3;
  const auto fails_for = [&](const char* kernel, FaultKind fault) {
    program.faults.push_back({.fault = fault, .operation = OperationKind::kernel, .kernel_pattern = kernel});
  };
  fails_for("lost", FaultKind::record_lost);
  fails_for("late", FaultKind::record_late);
  fails_for("twice", FaultKind::record_duplicate);
  fails_for("negative", FaultKind::record_negative);
  fails_for("untimed", FaultKind::record_untimed);
  fails_for("failing", FaultKind::operation_fails);
  fails_for("last_of_its_device", FaultKind::device_lost);
  drivers::sim::set_program(program);
  return true;
}();

class RuntimeFaultsTest : public RuntimeTest {
 protected:
  void SetUp() override {
    if (!on_sim()) GTEST_SKIP() << "no other driver fails when it is told to";
  }
  /// The kernel of this name between two that are well.
  std::vector<SeenOperation> run_between_others(const char* name) {
    const Stream stream = fresh_stream();
    for (const char* kernel : {"tiny", name, "tiny"}) stream.launch(tiny_kernel(kernel), items(1), &number_).value();
    synchronized_ = stream.synchronize();
    static_cast<void>(stream.synchronize());  // a late record is there now
    return subscriber_.operations();
  }

  Result<> synchronized_;
};

TEST_F(RuntimeFaultsTest, ARecordThatNeverComesLeavesTheOthersAlone) {
  const auto operations = run_between_others("lost");
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_TRUE(operations[0].completion);
  EXPECT_FALSE(operations[1].completion);
  EXPECT_FALSE(operations[1].lost) << "as long as the process lives it may still come";
  EXPECT_TRUE(operations[2].completion);
}

TEST_F(RuntimeFaultsTest, ALateRecordIsTheEndOfItsOwnOperation) {
  const auto operations = run_between_others("late");
  ASSERT_EQ(operations.size(), 3u);
  for (const SeenOperation& operation : operations) EXPECT_TRUE(operation.completion);
  EXPECT_LE(operations[0].completion->ticks.end, operations[1].completion->ticks.start);
  EXPECT_LE(operations[1].completion->ticks.end, operations[2].completion->ticks.start);
}

TEST_F(RuntimeFaultsTest, ARecordThatComesTwiceEndsItsOperationOnce) {
  const auto operations = run_between_others("twice");
  ASSERT_EQ(operations.size(), 3u);
  for (const SeenOperation& operation : operations) EXPECT_TRUE(operation.completion);  // the destructor looks for second ends
}

TEST_F(RuntimeFaultsTest, ImpossibleTimesAreCorrectedAndMarked) {
  const auto operations = run_between_others("negative");
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_FALSE(operations[0].completion->clamped);
  EXPECT_TRUE(operations[1].completion->clamped);
  EXPECT_EQ(operations[1].completion->ticks.start, operations[1].completion->ticks.end);
  EXPECT_FALSE(operations[2].completion->clamped);
}

TEST_F(RuntimeFaultsTest, ARecordWithoutTimesSaysSo) {
  const auto operations = run_between_others("untimed");
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[1].completion->status, probe::CompletionStatus::untimed);
}

TEST_F(RuntimeFaultsTest, AnOperationThatFailsIsFailedAndAcceptedAllTheSame) {
  const auto operations = run_between_others("failing");
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[1].submission->result, 0);
  EXPECT_EQ(operations[1].completion->status, probe::CompletionStatus::failed);
  EXPECT_EQ(operations[2].completion->status, probe::CompletionStatus::ok);
  EXPECT_FALSE(synchronized_);
  EXPECT_EQ(number_, 2u);
}

TEST_F(RuntimeFaultsTest, WhatALostDeviceRefusesIsPublishedWithACodeAndNotCounted) {
  const DeviceGuard guard = DeviceGuard::make(2).value();  // which no other test uses: it is lost for good
  const Stream stream = Stream::from_pool().value();
  stream.launch(tiny_kernel("last_of_its_device"), items(1), &number_).value();
  EXPECT_FALSE(stream.synchronize());
  finished();
  subscriber_.forget_events();
  bool was_dropped = false;
  struct SetsWhenDropped {
    bool* flag;
    bool is_owner = true;
    explicit SetsWhenDropped(bool* dropped) : flag(dropped) {}
    SetsWhenDropped(SetsWhenDropped&& other) noexcept : flag(other.flag) { other.is_owner = false; }
    ~SetsWhenDropped() {
      if (is_owner) *flag = true;
    }
  };
  const auto refused = stream.run({.name = "refused"}, [guard = SetsWhenDropped(&was_dropped)] {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::device_lost);
  EXPECT_TRUE(was_dropped);
  const SeenOperation operation = only_one();
  EXPECT_EQ(operation.api, "xpu::Stream::run");
  EXPECT_NE(operation.submission->result, 0);
  EXPECT_EQ(operation.submission->queue_sequence, 0u);
  EXPECT_FALSE(operation.completion);
}

}  // namespace
}  // namespace xpu::publisher_tests
