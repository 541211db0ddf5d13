#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/probe.hpp"
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
  EXPECT_EQ(built.views.at<OverheadView>(1).duration_ns, 64u * 30u);
}

TEST(ViewCallsTest, AReplayedNodeHasItsNumberAndThatOfItsGraph) {
  WireScript script = described();
  for (std::uint64_t number = 1; number <= 6; ++number) {
    const std::uint64_t operation = make_operation(kWriter, number);
    auto node = make_record<GraphNodeRecord>();
    node.operation = operation;
    node.graph = 5;
    node.node = 1 + number % 3;
    if (number != 6) script.add(node);
    script.add(submitted(operation, static_cast<std::uint32_t>(probe::Command::ndrange_kernel), 10'000 * number))
        .add(completed(operation, 10'000 * number));
  }
  const Built built(script, selection_of({ViewKind::kernel}));
  ASSERT_EQ(built.views.count(), 6u);
  for (std::size_t index = 0; index < 6; ++index) {
    EXPECT_EQ(built.views.at<KernelView>(index).graph_id, index == 5 ? 0u : 5u);
    EXPECT_EQ(built.views.at<KernelView>(index).node_id, index == 5 ? 0u : 1 + (index + 1) % 3);
  }
}

TEST(ViewCallsTest, AnOverheadThatStandsForItselfIsNoSample) {
  WireScript script = described();
  auto overhead = make_record<OverheadRecord>();
  overhead.begin_ns = 1'000;
  overhead.end_ns = 1'030;
  overhead.count = 1;
  overhead.type = static_cast<std::uint32_t>(probe::OverheadType::buffer_flush);
  overhead.thread = kOtherWriter;
  script.add(overhead);
  const Built built(script, selection_of({ViewKind::overhead}));
  ASSERT_EQ(built.views.count(), 1u);
  EXPECT_EQ(built.views.at<OverheadView>(0).duration_ns, 30u);
  EXPECT_EQ(built.views.at<OverheadView>(0).flags, 0u);
}

TEST(ViewCallsTest, ACommunicationHasItsNameSizesAndCommunicator) {
  WireScript script = described();
  auto communication = make_record<CommunicationRecord>();
  communication.begin_ns = 2'000;
  communication.end_ns = 2'500;
  communication.send_bytes = 4'096;
  communication.receive_bytes = 8'192;
  communication.communicator = 0xc0ffee;
  communication.name = 77;
  communication.thread = kOtherWriter;
  script.add(communication);
  // Its name is told when it is known.
  Built built(script, selection_of({ViewKind::communication}));
  EXPECT_EQ(built.views.count(), 0u);
  WireScript name;
  name.add_string(77, "allreduce");
  built.builder.add(name.bytes());
  built.builder.deliver();
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::communication));
  const auto& view = built.views.at<CommunicationView>(0);
  EXPECT_STREQ(view.name, "allreduce");
  EXPECT_EQ(view.start_ns, 2'000u);
  EXPECT_EQ(view.end_ns, 2'500u);
  EXPECT_EQ(view.send_bytes, 4'096u);
  EXPECT_EQ(view.receive_bytes, 8'192u);
  EXPECT_EQ(view.communicator, 0xc0ffeeu);
  EXPECT_EQ(view.thread, kOtherOsThread);
  const Built others(script, selection_of({ViewKind::kernel, ViewKind::overhead, ViewKind::synchronization}));
  EXPECT_EQ(others.views.count(), 0u);
}

}  // namespace
}  // namespace xpu::trace::view
