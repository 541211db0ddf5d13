#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/view_script.hpp"
#include "xpu/trace/view/view_builder.hpp"

// Views of waits and of what recording itself costs.
namespace xpu::trace::view {
namespace {

using namespace test_support;
using testing::ElementsAre;

constexpr std::uint32_t kReadCommand = 4;
constexpr std::uint8_t kHost = 1, kOnDevice = 2;

void* handle_of(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

TEST(ViewCallsTest, AWaitHasItsTypeHandlesAndResult) {
  struct Case {
    std::uint32_t wait;
    SynchronizationType type;
    bool has_event;
  };
  for (const Case& expected : {Case{1, SynchronizationType::host_command_queue, false}, Case{2, SynchronizationType::host_event, true},
                               Case{3, SynchronizationType::host_event, false}, Case{4, SynchronizationType::host_device, false},
                               Case{5, SynchronizationType::barrier_execution, true}, Case{6, SynchronizationType::unknown, false}}) {
    WireScript script = described();
    script.add(wait_record(expected.wait));
    const Built built(script, selection_of({ViewKind::synchronization}));
    ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::synchronization));
    const auto& wait = built.views.at<SynchronizationView>(0);
    EXPECT_EQ(wait.type, expected.type) << expected.wait;
    EXPECT_EQ(wait.wait_type, expected.wait);
    EXPECT_EQ(wait.event_handle, expected.has_event ? handle_of(0xabc) : nullptr);
    EXPECT_EQ(wait.flags, expected.wait == 5 ? std::uint32_t{kViewHostTimes} : 0u);
    EXPECT_EQ(wait.context_handle, handle_of(0xc1));
    EXPECT_EQ(wait.queue_handle, handle_of(0xe00 + kQueue));
    EXPECT_EQ(wait.queue_id, kQueue);
    EXPECT_EQ(wait.start_ns, 1'000u);
    EXPECT_EQ(wait.end_ns, 4'000u);
    EXPECT_EQ(wait.thread, kOsThread);
    EXPECT_EQ(wait.correlation, 1u);
    EXPECT_EQ(wait.wait_events, 3u);
    EXPECT_EQ(static_cast<std::int32_t>(wait.return_code), -36);
    EXPECT_EQ(wait.group, ApiGroup::opencl);
    EXPECT_EQ(wait.api_id, identify_api("clFinish").id);
  }
}

TEST(ViewCallsTest, AWaitIsACallAsWellAndBothShareACorrelation) {
  WireScript script = described();
  auto device_wait = wait_record(4);
  device_wait.queue = device_wait.context = 0;
  auto unknown_queue = wait_record(1);
  unknown_queue.queue = 0;
  script.add(wait_record(1)).add(device_wait).add(unknown_queue);
  const Built built(script);
  ASSERT_EQ(built.views.count(), 6u);
  for (std::size_t index = 0; index < 6; ++index)
    EXPECT_EQ(built.views.kinds()[index], index % 2 == 0 ? ViewKind::driver_api : ViewKind::synchronization);
  EXPECT_EQ(built.views.at<SynchronizationView>(5).queue_handle, handle_of(0xabc)) << "its handle is the queue that it waited for";
  EXPECT_EQ(built.views.at<ApiView>(0).correlation, built.views.at<SynchronizationView>(1).correlation);
  EXPECT_NE(built.views.at<ApiView>(0).correlation, built.views.at<ApiView>(2).correlation);
  EXPECT_EQ(built.views.at<SynchronizationView>(3).queue_id, kUnknownQueueId);
  EXPECT_EQ(built.views.at<SynchronizationView>(3).queue_handle, nullptr);
}

TEST(ViewCallsTest, TheWaitOfABlockingCallBelongsToThatCall) {
  WireScript script = described(), waits;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    const std::uint64_t operation = make_operation(kWriter, number);
    const auto read = submitted(operation, kReadCommand, 10'000 * number);
    script.add(read).add(copy_detail(operation, kOnDevice, kHost)).add(completed(operation, 10'000 * number));
    auto wait = wait_record(3);
    wait.enter_ns = read.enter_ns;
    wait.exit_ns = read.exit_ns + 5'000;
    wait.api = read.api;
    waits.add(wait);
  }
  auto stranger = wait_record(3);  // of a call that nothing tells of
  stranger.enter_ns = kHostAtTick0 + 10'000;
  stranger.exit_ns = kHostAtTick0 + 40'000;
  waits.add(stranger);
  // As from a file, where records of one kind lie together: the operations are over when their waits come.
  Built built(script);
  built.builder.add(waits.bytes());
  built.builder.deliver();
  ASSERT_EQ(built.views.count(), 10u) << "a call and a copy each, and no second call for a wait";
  for (std::size_t number = 0; number < 3; ++number) {
    EXPECT_EQ(built.views.at<SynchronizationView>(6 + number).correlation, built.views.at<ApiView>(number).correlation);
    EXPECT_EQ(built.views.at<SynchronizationView>(6 + number).correlation, number + 1);
  }
  EXPECT_EQ(built.views.at<SynchronizationView>(9).correlation, 4u);
}

TEST(ViewCallsTest, OverheadOfEveryKindIsToldAndASampleStandsForItsCalls) {
  WireScript script = described();
  for (const std::uint32_t type : {0u, 2u, 3u, 4u, 5u, 9u}) {
    auto overhead = make_record<OverheadRecord>();
    overhead.begin_ns = 1'000;
    overhead.end_ns = 1'030;
    overhead.count = 64;
    overhead.type = type;
    overhead.thread = kOtherWriter;
    script.add(overhead);
  }
  const Built built(script, selection_of({ViewKind::overhead}));
  ASSERT_EQ(built.views.count(), 6u);
  const auto kind = [&](std::size_t index) { return built.views.at<OverheadView>(index).overhead_kind; };
  EXPECT_EQ(kind(0), OverheadKind::time);
  EXPECT_EQ(kind(1), OverheadKind::resource);
  EXPECT_EQ(kind(2), OverheadKind::buffer_flush);
  EXPECT_EQ(kind(3), OverheadKind::driver);
  EXPECT_EQ(kind(4), OverheadKind::time);
  EXPECT_EQ(kind(5), OverheadKind::unknown);
  const auto& sample = built.views.at<OverheadView>(0);
  EXPECT_EQ(sample.start_ns, 1'000u);
  EXPECT_EQ(sample.end_ns, 1'030u);
  EXPECT_EQ(sample.count, 64u);
  EXPECT_EQ(sample.duration_ns, 64u * 30u);
  EXPECT_EQ(sample.flags, kViewSampled);
  EXPECT_EQ(sample.thread, kOtherOsThread);
  EXPECT_EQ(built.views.at<OverheadView>(1).duration_ns, 30u);
  EXPECT_EQ(built.views.at<OverheadView>(1).flags, 0u);
}

}  // namespace
}  // namespace xpu::trace::view
