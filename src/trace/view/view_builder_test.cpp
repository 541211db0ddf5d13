#include "xpu/trace/view/view_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/probe.hpp"
#include "tests/support/view_script.hpp"

namespace xpu::trace::view {
namespace {

using namespace test_support;
using testing::ElementsAre;

constexpr std::uint64_t kFirst = make_operation(kWriter, 1);
constexpr std::uint32_t kNdrange = 1, kRead = 4, kWrite = 5, kCopy = 6, kFill = 7, kMarker = 11;  // probe::Command
constexpr std::uint8_t kUnknownType = 0, kHostType = 1, kDeviceType = 2, kSharedType = 3, kPinnedType = 4, kImageType = 5;

void* view_handle(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

TEST(ViewBuilderTest, AKernelHasEverythingThatItsRecordsSay) {
  WireScript script = described();
  script.add(submitted(kFirst, kNdrange)).add(completed(kFirst));
  const Built built(script, selection_of({ViewKind::kernel}));
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::kernel));
  const auto& kernel = built.views.at<KernelView>(0);
  EXPECT_EQ(kernel.queue_handle, view_handle(0xe00 + kQueue));
  EXPECT_EQ(kernel.context_handle, view_handle(0xc1));
  EXPECT_EQ(kernel.device_handle, view_handle(0xd0 + kDevice));
  EXPECT_STREQ(kernel.name, "vector_add");
  EXPECT_STREQ(kernel.source_file, "");
  EXPECT_EQ(kernel.kernel_id, kFirst);
  EXPECT_EQ(kernel.correlation, 1u);
  EXPECT_EQ(kernel.thread, kOsThread);
  EXPECT_STREQ(kernel.pci_address, "0:1b:0.1");
  EXPECT_EQ(kernel.device_uuid[0], 0xa0 + kDevice);
  EXPECT_EQ(kernel.device_uuid[15], 0xa0 + kDevice);
  EXPECT_EQ(kernel.append_ns, kHostAtTick0 + 9'700);
  EXPECT_EQ(kernel.submit_ns, kHostAtTick0 + 9'900);
  EXPECT_EQ(kernel.start_ns, kHostAtTick0 + 10'000);
  EXPECT_EQ(kernel.end_ns, kHostAtTick0 + 12'000);
  EXPECT_EQ(kernel.queue_id, kQueue);
  EXPECT_EQ(kernel.details.operation, kFirst);
  EXPECT_EQ(kernel.details.call_enter_ns, kHostAtTick0 + 9'300);
  EXPECT_GE(kernel.details.clock_error_ns, 50u);
  EXPECT_LE(kernel.details.clock_error_ns, 60u);
  EXPECT_EQ(kernel.details.flags, 0u);
  EXPECT_EQ(kernel.details.external_mask, 0u);
  EXPECT_EQ(kernel.dimensions, 2u);
  EXPECT_EQ(kernel.global_size[0], 1024u);
  EXPECT_EQ(kernel.local_size[1], 2u);
  EXPECT_THAT(built.views.writers(), ElementsAre(kWriter));
  EXPECT_EQ(built.builder.statistics().linked, 1u);
  EXPECT_EQ(built.builder.open_operations(), 0u);
}

TEST(ViewBuilderTest, CopiesHaveTheirRouteBytesAndTheNameOfTheCall) {
  const std::uint8_t types[] = {kHostType, kPinnedType, kDeviceType, kSharedType};  // in the order of the view's types
  for (std::uint32_t source = 0; source < 4; ++source) {
    for (std::uint32_t destination = 0; destination < 4; ++destination) {
      WireScript script = described();
      script.add(submitted(kFirst, kCopy)).add(copy_detail(kFirst, types[source], types[destination])).add(completed(kFirst));
      const Built built(script, selection_of({ViewKind::memory_copy}));
      const auto& copy = built.views.at<CopyView>(0);
      EXPECT_EQ(static_cast<std::uint32_t>(copy.source_type), source);
      EXPECT_EQ(static_cast<std::uint32_t>(copy.destination_type), destination);
      EXPECT_EQ(static_cast<std::uint32_t>(copy.copy_type), 4 * source + destination);
      EXPECT_EQ(copy.bytes, 4'096u);
      EXPECT_STREQ(copy.name, "clEnqueueCopyBuffer");
      EXPECT_EQ(copy.memory_operation_id, kFirst);
      EXPECT_EQ(copy.source, 0x1000u);
      EXPECT_EQ(copy.destination, 0x2000u);
      EXPECT_EQ(copy.end_ns - copy.start_ns, 2'000u);
      EXPECT_EQ(copy.details.flags, 0u);
    }
  }
}

TEST(ViewBuilderTest, AMemoryTypeThatNobodyKnowsIsFlagged) {
  const auto route = [](std::uint32_t command, std::uint8_t source, std::uint8_t destination, std::uint32_t* flags) {
    WireScript script = described();
    script.add(submitted(kFirst, command)).add(copy_detail(kFirst, source, destination)).add(completed(kFirst));
    const Built built(script);
    const auto& copy = built.views.at<CopyView>(1);
    *flags = copy.details.flags;
    return std::string(to_string(copy.copy_type));
  };
  std::uint32_t flags = 0;
  EXPECT_EQ(route(kRead, kUnknownType, kUnknownType, &flags), "D2M");
  EXPECT_EQ(flags, kViewTypeUnknown);
  EXPECT_EQ(route(kWrite, kHostType, kUnknownType, &flags), "M2D");
  EXPECT_EQ(flags, kViewTypeUnknown);
  EXPECT_EQ(route(kCopy, kUnknownType, kDeviceType, &flags), "M2D");
  EXPECT_EQ(flags, kViewTypeUnknown);
  EXPECT_EQ(route(kCopy, kImageType, kDeviceType, &flags), "D2D");
  EXPECT_EQ(flags, 0u);
}

TEST(ViewBuilderTest, APeerCopyNamesBothDevices) {
  WireScript script = described();
  CopyDetailRecord detail = copy_detail(kFirst, kDeviceType, kDeviceType);
  detail.direction = static_cast<std::uint8_t>(probe::CopyDirection::peer);
  detail.peer_device = kPeer;
  script.add(submitted(kFirst, kCopy)).add(detail).add(completed(kFirst));
  const Built built(script, selection_of({ViewKind::memory_copy, ViewKind::peer_copy}));
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::peer_copy));
  const auto& copy = built.views.at<PeerCopyView>(0);
  EXPECT_EQ(copy.source_uuid[3], 0xa0 + kDevice);
  EXPECT_EQ(copy.destination_uuid[3], 0xa0 + kPeer);
  EXPECT_STREQ(copy.source_pci_address, "0:1b:0.1");
  EXPECT_STREQ(copy.destination_pci_address, "0:1c:0.1");
  EXPECT_EQ(copy.source_device_handle, view_handle(0xd0 + kDevice));
  EXPECT_EQ(copy.destination_device_handle, view_handle(0xd0 + kPeer));
  EXPECT_EQ(copy.bytes, 4'096u);
  EXPECT_EQ(copy.details.flags, kViewSidesAssumed);
}

TEST(ViewBuilderTest, AFillHasItsValueAndItsBytes) {
  WireScript script = described();
  CopyDetailRecord detail = copy_detail(kFirst, kUnknownType, kDeviceType);
  detail.pattern_bytes = 4;
  detail.pattern = 0xcafe'babe;
  script.add(submitted(kFirst, kFill)).add(detail).add(completed(kFirst));
  const Built built(script, selection_of({ViewKind::memory_fill}));
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::memory_fill));
  const auto& fill = built.views.at<FillView>(0);
  EXPECT_EQ(fill.value, 0xcafe'babeu);
  EXPECT_EQ(fill.pattern_bytes, 4u);
  EXPECT_EQ(fill.pattern, nullptr);
  EXPECT_EQ(fill.bytes, 4'096u);
  EXPECT_EQ(fill.memory_type, ViewMemoryType::device);
  EXPECT_EQ(fill.destination, 0x2000u);
  EXPECT_EQ(fill.start_ns, kHostAtTick0 + 10'000);
  EXPECT_EQ(fill.details.flags, 0u);
}

TEST(ViewBuilderTest, ALongPatternIsThereInWholeAndItsBeginningIsTheValue) {
  WireScript script = described();
  CopyDetailRecord detail = copy_detail(kFirst, kUnknownType, kDeviceType);
  detail.pattern_bytes = 16;
  detail.pattern = kPattern;
  script.add(submitted(kFirst, kFill)).add(detail).add(completed(kFirst));
  const Built built(script, selection_of({ViewKind::memory_fill}));
  const auto& fill = built.views.at<FillView>(0);
  EXPECT_EQ(std::string(fill.pattern, fill.pattern_bytes), "0123456789abcdef");
  EXPECT_EQ(std::memcmp(&fill.value, "01234567", 8), 0);
  EXPECT_EQ(fill.details.flags, kViewCut);
}

TEST(ViewBuilderTest, ACallAndItsCommandShareACorrelation) {
  WireScript script = described();
  auto launch = submitted(kFirst, kNdrange);
  launch.api = kRuntimeApi;
  auto inner = make_record<ApiCallRecord>();
  inner.enter_ns = launch.enter_ns + 10;
  inner.exit_ns = launch.exit_ns - 10;
  inner.operation = kFirst;
  inner.api = kLaunchApi;
  inner.result = -5;
  inner.thread = kWriter;
  auto other = make_record<ApiCallRecord>(kFlagFailed);
  other.enter_ns = 1;
  other.exit_ns = 2;
  other.api = kFinishApi;
  other.thread = kOtherWriter;
  script.add(inner).add(launch).add(other).add(completed(kFirst));
  const Built built(script);
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api, ViewKind::runtime_api, ViewKind::driver_api, ViewKind::kernel));
  const auto& driver = built.views.at<ApiView>(0);
  EXPECT_EQ(driver.start_ns, inner.enter_ns);
  EXPECT_EQ(driver.end_ns, inner.exit_ns);
  EXPECT_EQ(driver.group, ApiGroup::opencl);
  EXPECT_EQ(driver.api_id, identify_api("clEnqueueNDRangeKernel").id);
  EXPECT_EQ(driver.process, kPid);
  EXPECT_EQ(driver.thread, kOsThread);
  EXPECT_EQ(static_cast<std::int32_t>(driver.return_code), -5);
  EXPECT_STREQ(driver.name, "clEnqueueNDRangeKernel");
  const auto& runtime = built.views.at<ApiView>(1);
  EXPECT_EQ(runtime.group, ApiGroup::xpu);
  EXPECT_EQ(runtime.start_ns, launch.enter_ns);
  EXPECT_EQ(runtime.end_ns, launch.exit_ns);
  EXPECT_EQ(runtime.operation, kFirst);
  const auto& unrelated = built.views.at<ApiView>(2);
  EXPECT_EQ(unrelated.flags, kViewFailed);
  EXPECT_EQ(unrelated.thread, kOtherOsThread);
  EXPECT_EQ(driver.correlation, 1u);
  EXPECT_EQ(runtime.correlation, 1u);
  EXPECT_EQ(unrelated.correlation, 2u);
  EXPECT_EQ(built.views.at<KernelView>(3).correlation, 1u);
  EXPECT_THAT(built.views.writers(), ElementsAre(kWriter, kWriter, kOtherWriter, kWriter));
}

TEST(ViewBuilderTest, ACorrelationIsKeptUntilTheCompletionHasComeAndForCallsAfterIt) {
  WireScript script = described();
  script.add(submitted(kFirst, kNdrange));
  Built built(script);
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api));
  const std::uint64_t second = make_operation(kOtherWriter, 9);
  built.builder.add(WireScript().add(submitted(second, kNdrange)).add(completed(second)).bytes());
  built.builder.deliver();
  built.builder.add(WireScript().add(completed(kFirst)).bytes());
  built.builder.deliver();
  auto late = make_record<ApiCallRecord>();
  late.operation = kFirst;
  late.api = kFinishApi;
  late.thread = kWriter;
  built.builder.add(WireScript().add(late).bytes());
  built.builder.deliver();
  ASSERT_THAT(built.views.kinds(),
              ElementsAre(ViewKind::driver_api, ViewKind::driver_api, ViewKind::kernel, ViewKind::kernel, ViewKind::driver_api));
  EXPECT_EQ(built.views.at<KernelView>(2).correlation, 2u);
  EXPECT_EQ(built.views.at<KernelView>(3).correlation, 1u);
  EXPECT_EQ(built.views.at<ApiView>(4).correlation, 1u);
}

TEST(ViewBuilderTest, TheCorrelationCounterLeavesOutZeroAndSaysThatItWrapped) {
  WireScript script = described();
  for (std::uint64_t number = 1; number <= 4; ++number) {
    const std::uint64_t operation = make_operation(kWriter, number);
    script.add(submitted(operation, kNdrange)).add(completed(operation));
  }
  ViewBuilderOptions options;
  options.first_correlation = UINT32_MAX - 1;
  const Built built(script, selection_of({ViewKind::driver_api, ViewKind::kernel}), options);
  const std::uint32_t expected[] = {UINT32_MAX - 1, UINT32_MAX, 1, 2};
  for (std::size_t number = 0; number < 4; ++number) {
    EXPECT_EQ(built.views.at<ApiView>(number).correlation, expected[number]);
    EXPECT_EQ(built.views.at<KernelView>(4 + number).correlation, expected[number]);
  }
  EXPECT_EQ(built.builder.statistics().correlation_wraps, 1u);
}

TEST(ViewBuilderTest, ExternalIdsStandImmediatelyBeforeTheCall) {
  WireScript script = described();
  script.add(submitted(make_operation(kOtherWriter, 1), kNdrange));
  script.add(external(kFirst, ExternalKind::custom_1, 0)).add(submitted(kFirst, kNdrange));
  script.add(external(kFirst, ExternalKind::custom_0, 41)).add(external(kFirst, ExternalKind::custom_0, 42)).add(completed(kFirst));
  const Built built(script);
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api, ViewKind::external_correlation, ViewKind::external_correlation,
                                               ViewKind::driver_api, ViewKind::kernel));
  const auto& first = built.views.at<ExternalCorrelationView>(1);
  const auto& second = built.views.at<ExternalCorrelationView>(2);
  EXPECT_EQ(first.external_kind, ExternalKind::custom_0);
  EXPECT_EQ(first.external_id, 42u) << "the newest";
  EXPECT_EQ(second.external_kind, ExternalKind::custom_1);
  EXPECT_EQ(second.external_id, 0u);
  EXPECT_EQ(first.correlation, built.views.at<ApiView>(3).correlation);
  EXPECT_EQ(first.operation, kFirst);
  const auto& kernel = built.views.at<KernelView>(4);
  EXPECT_EQ(kernel.correlation, first.correlation);
  EXPECT_EQ(kernel.details.external_mask, 0b110u);
  EXPECT_EQ(kernel.details.external_ids[1], 42u);
}

TEST(ViewBuilderTest, ExternalIdsReachTheDeviceWithoutAViewOfCalls) {
  WireScript script = described();
  script.add(external(kFirst, ExternalKind::custom_3, 7)).add(submitted(kFirst, kNdrange)).add(completed(kFirst));
  {
    const Built built(script, selection_of({ViewKind::kernel}));
    ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::kernel));
    const auto& kernel = built.views.at<KernelView>(0);
    EXPECT_EQ(kernel.details.external_mask, 0b10000u);
    EXPECT_EQ(kernel.details.external_ids[4], 7u);
  }
  const Built built(script, selection_of({ViewKind::kernel, ViewKind::external_correlation}));
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::external_correlation, ViewKind::kernel));
  EXPECT_EQ(built.views.at<ExternalCorrelationView>(0).correlation, built.views.at<KernelView>(1).correlation);
}

TEST(ViewBuilderTest, AnExternalIdAfterItsOperationIsCounted) {
  WireScript script = described();
  script.add(submitted(kFirst, kNdrange)).add(completed(kFirst));
  Built built(script);
  built.builder.add(WireScript().add(external(kFirst, ExternalKind::custom_0, 1)).add(external(0, ExternalKind::custom_0, 1)).bytes());
  built.builder.finish();
  EXPECT_EQ(built.builder.statistics().unattached_external_ids, 2u);
  EXPECT_EQ(built.views.count(), 2u);
}

TEST(ViewBuilderTest, FlagsAndStatusOfBothHalvesArrive) {
  WireScript script = described();
  auto launch = submitted(kFirst, kNdrange);
  launch.header.flags |= kFlagOutOfOrderQueue | kFlagUserEvent | kFlagInsideCommandBuffer | kFlagExitUnknown;
  auto end = completed(kFirst);
  end.header.flags |= kFlagFailed | kFlagClamped;
  end.status = -9'999;
  script.add(launch).add(end);
  const Built built(script);
  const auto& call = built.views.at<ApiView>(0);
  EXPECT_EQ(call.flags, kViewExitUnknown);
  EXPECT_EQ(call.end_ns, 0u);
  const auto& kernel = built.views.at<KernelView>(1);
  EXPECT_EQ(kernel.details.flags, std::uint32_t{kViewFailed} | kViewClamped | kViewOutOfOrder | kViewUserEvent | kViewInsideCommandBuffer);
  EXPECT_EQ(kernel.details.native_status, -9'999);
  EXPECT_NE(kernel.start_ns, 0u);
}

TEST(ViewBuilderTest, CommandsThatAreNoWorkHaveACallAndNoDeviceView) {
  WireScript script = described();
  script.add(submitted(kFirst, kMarker)).add(completed(kFirst));
  const Built built(script);
  EXPECT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api));
  EXPECT_EQ(built.builder.open_operations(), 0u);
}

TEST(ViewBuilderTest, WhatIsNotDescribedYetWaitsForItsDescription) {
  WireScript early, names, objects, readings;
  early.add(completed(kFirst)).add(submitted(kFirst, kNdrange));
  add_names(names);
  add_objects(objects);
  add_readings(readings);
  Views views;
  ViewBuilder builder({.selection = everything()}, views.sink());
  builder.add(early.bytes());
  for (const WireScript* more : {&names, &objects}) {
    builder.deliver();
    EXPECT_EQ(views.count(), 0u);
    builder.add(more->bytes());
  }
  builder.deliver();
  EXPECT_THAT(views.kinds(), ElementsAre(ViewKind::driver_api)) << "the kernel waits for a reading of its clock";
  builder.add(readings.bytes());
  builder.deliver();
  ASSERT_THAT(views.kinds(), ElementsAre(ViewKind::driver_api, ViewKind::kernel));
  EXPECT_EQ(views.at<KernelView>(1).details.flags, 0u);
  EXPECT_EQ(views.at<KernelView>(1).start_ns, kHostAtTick0 + 10'000);
}

TEST(ViewBuilderTest, WhatIsSelectedIsDecidedWhenItIsHandedOver) {
  WireScript script = described();
  script.add(submitted(kFirst, kNdrange));
  Built built(script);
  built.builder.select(selection_of({ViewKind::memory_copy}));
  built.builder.add(WireScript().add(completed(kFirst)).bytes());
  built.builder.deliver();
  EXPECT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api));

  Selection only_finish = selection_of({ViewKind::driver_api});
  ASSERT_EQ(only_finish.enable_api(ViewKind::driver_api, true, ApiGroup::opencl, identify_api("clFinish").id), ResultCode::success);
  built.builder.select(only_finish);
  built.builder.add(WireScript().add(submitted(kFirst + 1, kNdrange)).add(wait_record(1)).bytes());
  built.builder.deliver();
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api, ViewKind::driver_api));
  EXPECT_STREQ(built.views.at<ApiView>(1).name, "clFinish");
}

TEST(ViewBuilderTest, TextsAreUnique) {
  WireScript script = described();
  script.add_string(201, "vector", kFlagContinues).add_string(201, "_add");
  auto twin = make_record<KernelRecord>();
  twin.what = 99;
  twin.name = 201;
  auto launch = submitted(kFirst + 1, kNdrange);
  launch.what = 99;
  script.add(twin).add(submitted(kFirst, kNdrange)).add(completed(kFirst)).add(launch).add(completed(kFirst + 1));
  const Built built(script, selection_of({ViewKind::kernel}));
  EXPECT_EQ(built.views.at<KernelView>(0).name, built.views.at<KernelView>(1).name);
}

TEST(ViewBuilderTest, AProcessReadsItsOwnTexts) {
  WireScript script;
  add_objects(script);
  add_readings(script);
  auto kernel = make_record<KernelRecord>();
  kernel.what = kKernel;
  kernel.name = probe::intern("own_kernel");
  auto launch = submitted(kFirst, kNdrange);
  launch.api = probe::intern("xpu::Stream::launch");
  script.add(kernel).add(launch).add(completed(kFirst));
  ViewBuilderOptions options;
  options.texts = TextSource::process;
  const Built built(script, everything(), options);
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::runtime_api, ViewKind::kernel));
  EXPECT_STREQ(built.views.at<ApiView>(0).name, "xpu::Stream::launch");
  EXPECT_EQ(built.views.at<KernelView>(1).name, probe::text_of(kernel.name).data()) << "never freed, so it need not be copied";
}

}  // namespace
}  // namespace xpu::trace::view
