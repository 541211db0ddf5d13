#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/support/view_script.hpp"
#include "trace/view/device_clock.hpp"
#include "trace/view/operation_table.hpp"
#include "trace/view/view_definitions.hpp"
#include "xpu/trace/view/view_builder.hpp"

// What the builder makes of records that are missing, late, twice, in any order, or damaged.
namespace xpu::trace::view {
namespace {

using namespace test_support;
using testing::ElementsAre;

constexpr std::uint64_t kOne = make_operation(kWriter, 1);
constexpr std::uint32_t kKernelCommand = 1, kCopyCommand = 6, kFillCommand = 7;

TEST(ViewFaultsTest, ManyOperationsInAnyOrderAreJoinedToTheRightOnes) {
  constexpr std::uint64_t kOperations = 100'000, kWriters = 8, kBatch = 512;
  // Each piece by itself, so that any two halves may come apart; each operation has a start of its own.
  std::vector<WireScript> pieces;
  for (std::uint64_t number = 1; number <= kOperations; ++number) {
    const std::uint64_t operation = make_operation(static_cast<std::uint32_t>(1 + number % kWriters), number);
    const std::uint64_t start = 10'000 + number * 10;
    const std::uint32_t command = number % 10 == 0 ? kCopyCommand : kKernelCommand;
    pieces.emplace_back().add(submitted(operation, command, start));
    pieces.emplace_back().add(completed(operation, start));
    if (command == kCopyCommand) {
      CopyDetailRecord detail = copy_detail(operation, 1, 2);
      detail.bytes = number;
      pieces.back().add(detail);
    }
    if (number % 100 == 0) pieces.emplace_back().add(external(operation, ExternalKind::custom_0, number));
  }
  std::mt19937 random(20'261'130);
  std::shuffle(pieces.begin(), pieces.end(), random);

  std::map<std::uint64_t, std::uint64_t> seen;  // operation -> times
  std::uint64_t wrong = 0, with_external_id = 0;
  std::map<std::uint64_t, std::uint32_t> correlations;
  const auto check = [&](const auto& view) {
    const std::uint64_t operation = view.details.operation, number = operation_counter(operation);
    ++seen[operation];
    bool is_right = view.start_ns == kHostAtTick0 + 10'000 + number * 10 && view.end_ns == view.start_ns + 2'000 &&
                    view.append_ns <= view.submit_ns && view.submit_ns <= view.start_ns && view.details.flags == 0;
    if (view.details.external_mask != 0) {
      ++with_external_id;
      is_right = is_right && view.details.external_ids[1] == number;
    }
    const auto [known, is_new] = correlations.emplace(operation, view.correlation);
    if (!is_right || known->second != view.correlation) ++wrong;
  };
  ViewBuilder builder({.selection = everything()}, [&](std::uint32_t, std::span<const std::byte> record) {
    switch (reinterpret_cast<const ViewHeader*>(record.data())->kind) {
      case ViewKind::kernel: check(*reinterpret_cast<const KernelView*>(record.data())); break;
      case ViewKind::memory_copy: {
        const auto& copy = *reinterpret_cast<const CopyView*>(record.data());
        check(copy);
        wrong += copy.bytes != operation_counter(copy.details.operation);
        break;
      }
      case ViewKind::driver_api: {
        const auto& call = *reinterpret_cast<const ApiView*>(record.data());
        const auto [known, is_new] = correlations.emplace(call.operation, call.correlation);
        wrong += known->second != call.correlation;
        break;
      }
      default: break;
    }
  });
  WireScript definitions = described();
  for (std::uint32_t writer = 3; writer <= kWriters; ++writer) {
    auto thread = make_record<ThreadRecord>();
    thread.thread = thread.os_thread = writer;
    definitions.add(thread);
  }
  std::vector<std::byte> batch;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    const std::span<const std::byte> piece = pieces[index].bytes();
    batch.insert(batch.end(), piece.begin(), piece.end());
    if (index == pieces.size() / 3) builder.add(definitions.bytes());
    if (index % kBatch != 0 && index + 1 != pieces.size()) continue;
    builder.add(batch);
    builder.deliver();
    batch.clear();
  }
  builder.finish();
  EXPECT_EQ(builder.open_operations(), 0u);
  EXPECT_EQ(builder.statistics().linked, kOperations);
  EXPECT_EQ(builder.statistics().unlinked + builder.statistics().orphans + builder.statistics().duplicates, 0u);
  EXPECT_EQ(seen.size(), kOperations);
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times.second == 1; }));
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(builder.statistics().views[static_cast<std::size_t>(ViewKind::driver_api)], kOperations);
  // An id that comes after both halves were handed over cannot reach them; each is counted.
  EXPECT_EQ(with_external_id + builder.statistics().unattached_external_ids, kOperations / 100);
  EXPECT_GT(with_external_id, 0u);
}

TEST(ViewFaultsTest, AFullTableWritesItsOldestOperationUnlinkedAndSaysSo) {
  ViewBuilderOptions options;
  options.max_open_operations = 10;
  WireScript script = described();
  for (std::uint64_t number = 1; number <= 15; ++number) script.add(submitted(make_operation(kWriter, number), kKernelCommand));
  Built built(script, selection_of({ViewKind::kernel}), options);
  ASSERT_EQ(built.views.count(), 5u);
  const auto& oldest = built.views.at<KernelView>(0);
  EXPECT_EQ(oldest.details.operation, kOne);
  EXPECT_EQ(oldest.details.flags, kViewUnlinked);
  EXPECT_STREQ(oldest.name, "vector_add");
  EXPECT_EQ(oldest.append_ns | oldest.submit_ns | oldest.start_ns | oldest.end_ns, 0u);
  EXPECT_NE(oldest.correlation, 0u);
  EXPECT_EQ(built.builder.statistics().evicted, 5u);
  EXPECT_EQ(built.builder.statistics().unlinked, 5u);
  EXPECT_EQ(built.builder.open_operations(), 10u);

  built.builder.add(WireScript().add(completed(kOne)).bytes());
  built.builder.deliver();
  EXPECT_EQ(built.views.count(), 5u) << "it is not written twice";
  EXPECT_EQ(built.builder.statistics().late, 1u);
}

TEST(ViewFaultsTest, AFullTableHandsOverWhatIsCompleteFirst) {
  ViewBuilderOptions options;
  options.max_open_operations = 4;
  WireScript script = described();
  for (std::uint64_t number = 1; number <= 9; ++number) {
    const std::uint64_t operation = make_operation(kWriter, number);
    script.add(submitted(operation, kKernelCommand)).add(completed(operation));
  }
  const Built built(script, everything(), options);
  EXPECT_EQ(built.builder.statistics().linked, 9u);
  EXPECT_EQ(built.builder.statistics().evicted, 0u);
  EXPECT_EQ(built.builder.statistics().unlinked, 0u);
}

TEST(ViewFaultsTest, HalvesThatComeTwiceAreCountedAndChangeNothing) {
  WireScript script = described();
  auto second_end = completed(kOne);
  second_end.end += 1'000'000;
  script.add(submitted(kOne, kKernelCommand)).add(submitted(kOne, kKernelCommand)).add(completed(kOne)).add(second_end);
  Built built(script, selection_of({ViewKind::kernel}));
  built.builder.add(WireScript().add(submitted(kOne, kKernelCommand)).add(second_end).bytes());
  built.builder.finish();
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::kernel));
  EXPECT_EQ(built.views.at<KernelView>(0).end_ns, kHostAtTick0 + 12'000);
  EXPECT_EQ(built.builder.statistics().duplicates, 4u);
}

TEST(ViewFaultsTest, ACompletionWithoutASubmissionIsCountedAndNoGuessIsMade) {
  WireScript script = described();
  script.add(completed(kOne));
  Built built(script);
  EXPECT_EQ(built.builder.open_operations(), 1u);
  built.builder.finish();
  EXPECT_EQ(built.views.count(), 0u);
  EXPECT_EQ(built.builder.statistics().orphans, 1u);
  EXPECT_EQ(built.builder.open_operations(), 0u);
}

TEST(ViewFaultsTest, WhatNeverEndedIsWrittenAtTheEnd) {
  WireScript script = described();
  script.add(submitted(kOne, kFillCommand)).add(copy_detail(kOne, 0, 2));
  Built built(script);
  EXPECT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api));
  built.builder.finish();
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::driver_api, ViewKind::memory_fill));
  const auto& fill = built.views.at<FillView>(1);
  EXPECT_EQ(fill.details.flags, kViewUnlinked);
  EXPECT_EQ(fill.start_ns | fill.end_ns, 0u);
  EXPECT_EQ(fill.bytes, 4'096u);
  EXPECT_EQ(fill.correlation, built.views.at<ApiView>(0).correlation);
  EXPECT_EQ(built.builder.statistics().unlinked, 1u);
}

TEST(ViewFaultsTest, ALossThatNamesItsOperationEndsIt) {
  WireScript script = described();
  auto loss = make_record<LossRecord>(kFlagCompletionLost);
  loss.first_operation = loss.last_operation = kOne;
  loss.count = 1;
  auto range = loss;
  range.last_operation = kOne + 5;
  range.count = 2;
  auto others = loss;
  others.header.flags = kFlagNotOperation;
  script.add(submitted(kOne, kKernelCommand)).add(submitted(kOne + 1, kKernelCommand)).add(loss).add(range).add(others);
  Built built(script, selection_of({ViewKind::kernel}));
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::kernel));
  EXPECT_EQ(built.views.at<KernelView>(0).details.flags, std::uint32_t{kViewLost} | kViewUnlinked);
  EXPECT_EQ(built.builder.statistics().lost, 3u);
  EXPECT_EQ(built.builder.statistics().linked, 0u);
  EXPECT_EQ(built.builder.open_operations(), 1u) << "of a range nobody knows whom it names";
}

TEST(ViewFaultsTest, ACallThatTheDriverRefusedHasNoCommand) {
  WireScript script = described();
  auto refused = submitted(kOne, kKernelCommand);
  refused.header.flags |= kFlagFailed;
  refused.queue_sequence = 0;
  refused.result = -54;
  script.add(external(kOne, ExternalKind::custom_0, 3)).add(refused);
  Built built(script);
  built.builder.finish();
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::external_correlation, ViewKind::driver_api));
  EXPECT_EQ(built.views.at<ApiView>(1).flags, kViewFailed);
  EXPECT_EQ(static_cast<std::int32_t>(built.views.at<ApiView>(1).return_code), -54);
  EXPECT_EQ(built.builder.statistics().linked, 0u);
  EXPECT_EQ(built.builder.open_operations(), 0u);
}

TEST(ViewFaultsTest, WithoutReadingsOfItsClockTimesAreUnknown) {
  WireScript script;
  add_names(script);
  add_objects(script);
  auto foreign = clock_reading(kDevice, 0);  // against a clock that the host times are not of
  foreign.domain = static_cast<std::uint32_t>(ClockDomain::realtime);
  script.add(foreign).add(submitted(kOne, kKernelCommand)).add(completed(kOne));
  Built built(script, selection_of({ViewKind::kernel}));
  EXPECT_EQ(built.views.count(), 0u) << "a reading may still come";
  built.builder.deliver(ViewBuilder::Completeness::as_known);
  ASSERT_THAT(built.views.kinds(), ElementsAre(ViewKind::kernel));
  const auto& kernel = built.views.at<KernelView>(0);
  EXPECT_EQ(kernel.details.flags, kViewUnplaced);
  EXPECT_EQ(kernel.append_ns | kernel.submit_ns | kernel.start_ns | kernel.end_ns | kernel.details.clock_error_ns, 0u);
  EXPECT_EQ(built.builder.statistics().unplaced, 1u);
}

TEST(ViewFaultsTest, ADriverWithoutTimesGivesNone) {
  for (const std::uint32_t flag : {std::uint32_t{kFlagUntimed}, std::uint32_t{kFlagUnfinishedAtExit}, 0u}) {
    WireScript script = described();
    auto end = completed(kOne);
    end.header.flags |= flag;
    if (flag == 0) end.queued = end.submit = end.start = end.end = 0;
    script.add(submitted(kOne, kKernelCommand)).add(end);
    const Built built(script, selection_of({ViewKind::kernel}));
    const auto& kernel = built.views.at<KernelView>(0);
    EXPECT_EQ(kernel.append_ns | kernel.submit_ns | kernel.start_ns | kernel.end_ns, 0u);
    EXPECT_EQ(kernel.details.flags, kViewUntimed | (flag == kFlagUnfinishedAtExit ? std::uint32_t{kViewUnfinished} : 0u));
    EXPECT_EQ(built.builder.statistics().untimed, 1u);
  }
}

TEST(ViewFaultsTest, StampsOutOfOrderAreUnknownAndTheOthersStay) {
  const auto times_of = [](std::uint64_t queued, std::uint64_t submit, std::uint64_t start, std::uint64_t end) {
    DeviceClock clock(ClockDomain::monotonic);
    clock.describe(device_record(kDevice));
    clock.add(clock_reading(kDevice, 0));
    clock.add(clock_reading(kDevice, 1'000'000));
    OperationCompletedRecord record{};
    record.queued = queued;
    record.submit = submit;
    record.start = start;
    record.end = end;
    const DeviceTimes times = clock.place(record, 0);
    const auto tick = [](std::uint64_t ns) { return ns == 0 ? 0 : ns - kHostAtTick0; };
    return std::vector<std::uint64_t>{tick(times.append_ns), tick(times.submit_ns), tick(times.start_ns), tick(times.end_ns)};
  };
  EXPECT_THAT(times_of(100, 200, 300, 400), ElementsAre(100, 200, 300, 400));
  EXPECT_THAT(times_of(300, 300, 300, 300), ElementsAre(300, 300, 300, 300));
  EXPECT_THAT(times_of(0, 0, 300, 400), ElementsAre(0, 0, 300, 400)) << "not told";
  EXPECT_THAT(times_of(100, 301, 300, 400), ElementsAre(100, 0, 300, 400)) << "submitted after the start";
  EXPECT_THAT(times_of(250, 200, 300, 400), ElementsAre(0, 200, 300, 400)) << "queued after the submission";
  EXPECT_THAT(times_of(100, 200, 300, 299), ElementsAre(0, 0, 0, 0)) << "ended before the start";
}

TEST(ViewFaultsTest, ACounterThatWrapsIsPlacedByTheCall) {
  constexpr std::uint64_t kTurn = std::uint64_t{1} << 32;
  DeviceClock clock(ClockDomain::monotonic);
  clock.describe(device_record(kDevice, 32));
  clock.add(clock_reading(kDevice, 1'000));
  OperationCompletedRecord record{};
  record.submit = kTurn - 50;  // before the turn
  record.start = 10;
  record.end = 2'010;
  EXPECT_FALSE(clock.place(record, 0).is_placed) << "which turn it was, nobody knows";
  const std::uint64_t turn_begins_ns = kHostAtTick0 + 3 * kTurn;
  const DeviceTimes times = clock.place(record, turn_begins_ns - 500);
  ASSERT_TRUE(times.is_placed);
  const auto away = static_cast<std::int64_t>(times.start_ns - (turn_begins_ns + 10));
  EXPECT_LE(static_cast<std::uint64_t>(std::abs(away)), times.error_ns);
  EXPECT_EQ(times.end_ns - times.start_ns, 2'000u);
  EXPECT_EQ(times.start_ns - times.submit_ns, 60u);
}

TEST(ViewFaultsTest, AClockThatIsTheHostsOwnIsExact) {
  DeviceClock clock(ClockDomain::monotonic);
  DeviceRecord device = device_record(kDevice);
  device.clock_domain = static_cast<std::uint32_t>(ClockDomain::monotonic);
  clock.describe(device);
  auto reading = clock_reading(kDevice, 0);
  reading.header.flags = 4;  // native
  reading.device_ticks = reading.host_before_ns + 50;
  clock.add(reading);
  OperationCompletedRecord record{};
  record.start = kHostAtTick0 + 77;
  record.end = kHostAtTick0 + 99;
  const DeviceTimes times = clock.place(record, 0);
  EXPECT_EQ(times.start_ns, record.start);
  EXPECT_EQ(times.end_ns, record.end);
  EXPECT_LE(times.error_ns, 1u);
}

TEST(ViewFaultsTest, ALongRunKeepsAsManyReadingsAsAShortOne) {
  DeviceClock clock(ClockDomain::monotonic);
  clock.describe(device_record(kDevice));
  for (std::uint64_t second = 1; second <= 20'000; ++second) clock.add(clock_reading(kDevice, second * 1'000'000'000));
  EXPECT_LE(clock.kept_readings(), 2'048u);
  EXPECT_GE(clock.kept_readings(), 1'000u);
  for (const std::uint64_t second : {2u, 9'000u, 19'999u}) {
    OperationCompletedRecord record{};
    record.start = second * 1'000'000'000 + 5;
    record.end = record.start + 1;
    const DeviceTimes times = clock.place(record, 0);
    EXPECT_EQ(times.start_ns, kHostAtTick0 + record.start);
    EXPECT_GT(times.error_ns, 0u);
  }
}

TEST(ViewFaultsTest, WhatNothingDescribesIsFlaggedAndNamedUnknown) {
  WireScript script;
  auto launch = submitted(kOne, kKernelCommand);
  script.add(launch).add(completed(kOne));
  auto copy = submitted(kOne + 1, kCopyCommand);
  copy.queue = 0;
  auto end = completed(kOne + 1);
  end.queue = 0;
  script.add(copy).add(end);
  Built built(script);
  EXPECT_EQ(built.views.count(), 0u);
  built.builder.finish();
  ASSERT_EQ(built.views.count(), 4u);
  const auto& call = built.views.at<ApiView>(0);
  EXPECT_STREQ(call.name, "unknown");
  EXPECT_EQ(call.api_id, kUnknownApiId);
  EXPECT_EQ(call.flags, kViewUndescribed);
  const auto& kernel = built.views.at<KernelView>(2);
  EXPECT_STREQ(kernel.name, "unknown");
  EXPECT_EQ(kernel.queue_handle, nullptr);
  EXPECT_EQ(kernel.queue_id, kQueue);
  EXPECT_STREQ(kernel.pci_address, "");
  EXPECT_EQ(kernel.dimensions, 0u);
  EXPECT_EQ(kernel.details.flags, std::uint32_t{kViewUndescribed} | kViewUnplaced);
  EXPECT_EQ(built.views.at<CopyView>(3).queue_id, kUnknownQueueId);
  EXPECT_EQ(built.builder.statistics().undescribed, 2u);
}

TEST(ViewFaultsTest, WhatIsNoRecordIsPassedOverAndCounted) {
  WireScript script = described();
  script.add(submitted(kOne, kKernelCommand)).add(completed(kOne));
  std::vector<std::byte> bytes(script.bytes().begin(), script.bytes().end());
  bytes.resize(bytes.size() + 24, std::byte{0x03});
  bytes[bytes.size() - 24 + 2] = std::byte{0};  // a size of 0x0300 would reach beyond the end as well
  Views views;
  ViewBuilder builder({.selection = everything()}, views.sink());
  builder.add(bytes);
  builder.finish();
  EXPECT_EQ(views.count(), 2u);
  EXPECT_EQ(builder.statistics().damaged_bytes, 24u);
}

TEST(ViewFaultsTest, EndedObjectsAreKnownToTheirLateCommands) {
  WireScript script = described();
  auto end = make_record<ObjectEndRecord>();
  end.kind = 5;  // kernel
  end.id = kKernel;
  script.add(end).add(submitted(kOne, kKernelCommand)).add(completed(kOne));
  const Built built(script, selection_of({ViewKind::kernel}));
  EXPECT_STREQ(built.views.at<KernelView>(0).name, "vector_add");
}

TEST(ViewFaultsTest, ManyEndedObjectsDoNotFillTheMemory) {
  DefinitionMap<KernelRecord> kernels;
  kernels.put(1, {});
  for (std::uint32_t id = 2; id < 1'000'000; ++id) {
    kernels.put(id, {});
    kernels.end(id);
    if (id % 1'000 == 0) kernels.find(2);  // still in use
  }
  EXPECT_LE(kernels.size(), 4 * DefinitionMap<KernelRecord>::kMaxIdle);
  EXPECT_NE(kernels.find(1), nullptr) << "it lives";
  EXPECT_NE(kernels.find(2), nullptr);
  EXPECT_EQ(kernels.find(10'000), nullptr);
}

TEST(ViewFaultsTest, OnlyTheNewestFinishedOperationsAreRemembered) {
  FinishedOperations finished;
  for (std::uint64_t operation = 1; operation <= 100'000; ++operation)
    finished.add(operation, {static_cast<std::uint32_t>(operation), true});
  EXPECT_EQ(finished.find(1), nullptr);
  ASSERT_NE(finished.find(100'000), nullptr);
  EXPECT_EQ(finished.find(100'000)->correlation, 100'000u);
  EXPECT_NE(finished.find(100'000 - 65'535), nullptr);
}

}  // namespace
}  // namespace xpu::trace::view
