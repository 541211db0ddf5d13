#include <algorithm>
#include <iostream>
#include <string_view>

#include "publisher/scripted_subscriber.hpp"
#include "tests/acceptance/child_process.hpp"
#include "tests/acceptance/support.hpp"
#include "xpu/drivers/sim.hpp"

// K1, on a device whose records go wrong: whoever listens still hears of every operation, once.

namespace xpu::acceptance {
namespace {

using drivers::sim::FaultKind;
using publisher_tests::ScriptedSubscriber;
using publisher_tests::SeenOperation;
using ::testing::IsEmpty;

constexpr std::uint64_t kFaulty = 2;
constexpr int kLaunchesOfFault = 3;

/// A device whose second kernel goes wrong in this way.
void use_fault(FaultKind fault) {
  drivers::sim::Program program;
  program.faults = {{.fault = fault, .operation = drivers::sim::OperationKind::kernel, .nth = kFaulty}};
  drivers::sim::set_program(program);
}

bool has_programmed_faults() { return std::string_view(Device::get(0).value().driver()) == "sim"; }

Result<> launch_and_synchronize() {
  const Stream stream = Stream::from_pool().value();
  const Kernel kernel = add_kernel();
  const Buffer values = zeros(1);
  for (int launch = 0; launch < kLaunchesOfFault; ++launch) XPU_TRY(stream.launch(kernel, items(1), values_of(values), 1));
  return stream.synchronize();
}

/// The second of three launches, after all of them have ended.
SeenOperation faulty_operation() {
  EXPECT_TRUE(ScriptedSubscriber::get().wait_for_completions());
  EXPECT_THAT(ScriptedSubscriber::get().problems(), IsEmpty());
  const std::vector<SeenOperation> operations = ScriptedSubscriber::get().operations();
  EXPECT_EQ(operations.size(), static_cast<std::size_t>(kLaunchesOfFault));
  for (const std::size_t sound : {0u, 2u}) {
    EXPECT_TRUE(operations.at(sound).completion);
    EXPECT_EQ(operations.at(sound).completion->status, probe::CompletionStatus::ok);
  }
  return operations.at(kFaulty - 1);
}

#define FAULT_TEST(name, fault)                                                                 \
  static void K1_Faults_##name();                                                               \
  OWN_PROCESS_TEST(K1_RecordingFaultsTest, name) {                                              \
    use_fault(fault);                                                                           \
    if (!has_programmed_faults()) GTEST_SKIP() << "needs a device whose faults are programmed"; \
    ScriptedSubscriber::get();                                                                  \
    K1_Faults_##name();                                                                         \
  }                                                                                             \
  static void K1_Faults_##name()

FAULT_TEST(ARecordThatComesTwiceIsPublishedOnce, FaultKind::record_duplicate) {
  EXPECT_THAT(launch_and_synchronize(), Succeeds());
  EXPECT_EQ(faulty_operation().completion->status, probe::CompletionStatus::ok);
}

FAULT_TEST(ARecordThatComesLateIsPublished, FaultKind::record_late) {
  EXPECT_THAT(launch_and_synchronize(), Succeeds());
  EXPECT_THAT(synchronize(0), Succeeds());
  EXPECT_EQ(faulty_operation().completion->status, probe::CompletionStatus::ok);
}

FAULT_TEST(AnEndBeforeTheStartIsCorrectedAndSaidToBe, FaultKind::record_negative) {
  EXPECT_THAT(launch_and_synchronize(), Succeeds());
  const SeenOperation faulty = faulty_operation();
  EXPECT_TRUE(faulty.completion->clamped);
  EXPECT_GE(faulty.completion->ticks.end, faulty.completion->ticks.start);
}

FAULT_TEST(ARecordWithoutTimesIsPublishedAsThat, FaultKind::record_untimed) {
  EXPECT_THAT(launch_and_synchronize(), Succeeds());
  EXPECT_EQ(faulty_operation().completion->status, probe::CompletionStatus::untimed);
}

FAULT_TEST(AnOperationThatFailsIsPublishedAsThatAndFailsTheSynchronisation, FaultKind::operation_fails) {
  EXPECT_THAT(launch_and_synchronize(), FailsWith(ErrorCode::internal, ::testing::_));
  EXPECT_EQ(faulty_operation().completion->status, probe::CompletionStatus::failed);
}

void print_losses() {
  for (const SeenOperation& operation : ScriptedSubscriber::get().operations()) {
    std::cout << (operation.lost ? "lost by the driver" : operation.completion ? "ended" : "open") << "\n";
  }
  for (const std::string& problem : ScriptedSubscriber::get().problems()) std::cout << problem << "\n";
  std::cout.flush();
}

XPU_CHILD_MODE(lose_a_record) {
  use_fault(FaultKind::record_lost);
  std::atexit(print_losses);
  ScriptedSubscriber::get();
  launch_and_synchronize().value();
  return 0;
}

TEST(K1_RecordingFaultsTest, ARecordThatNeverComesIsPublishedAsLostAtTheEnd) {
  if (!has_programmed_faults()) GTEST_SKIP() << "needs a device whose faults are programmed";
  const Ended ended = run_mode("lose_a_record");
  EXPECT_EQ(ended.exit_code, 0) << ended;
  EXPECT_EQ(ended.output, "ended\nlost by the driver\nended\n") << ended;
}

}  // namespace
}  // namespace xpu::acceptance
