// What the probe's functions write, record by record. One thread, enough chunks.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "trace/test_support/recorded_process.hpp"

namespace xpu::trace {
namespace {

using test_support::CopiedRecord;
using test_support::finish;
using test_support::launch;
using test_support::LiveFolder;
using test_support::RecordedProcess;
using test_support::submit;

/// Texts by id as a reader puts them together.
std::map<std::uint32_t, std::string> texts_of(const std::vector<CopiedRecord>& records) {
  std::map<std::uint32_t, std::string> texts;
  bool goes_on = false;
  for (const CopiedRecord& record : records) {
    if (record.kind() != RecordKind::string) continue;
    const auto& string = record.as<StringRecord>();
    if (!goes_on) texts[string.id].clear();
    texts[string.id].append(reinterpret_cast<const char*>(record.bytes.data()) + sizeof string, string.bytes);
    goes_on = (string.header.flags & kFlagContinues) != 0;
  }
  return texts;
}

class SubscriberTest : public testing::Test {
 protected:
  template <typename Record>
  Record only(RecordKind kind) {
    const std::vector<CopiedRecord> found = folder_.segment().records(kind);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Record{} : found[0].as<Record>();
  }

  template <typename Record>
  std::vector<Record> all(RecordKind kind) {
    std::vector<Record> records;
    for (const CopiedRecord& found : folder_.segment().records(kind)) records.push_back(found.as<Record>());
    return records;
  }

  LiveFolder folder_;
  RecordedProcess process_{folder_};
  const probe::Subscriber& table_ = *process_.table;
};

TEST_F(SubscriberTest, NothingIsClaimedBeforeTheFirstRecord) {
  EXPECT_EQ(folder_.spare_count(), 1u);
  launch(table_, 1, 1);
  EXPECT_EQ(folder_.spare_count(), 0u);
}

TEST_F(SubscriberTest, TheFirstRecordBringsProcessThreadAndTexts) {
  const probe::Id text = probe::intern("known before the first record");
  launch(table_, 1, 1);
  const auto process = only<ProcessRecord>(RecordKind::process);
  EXPECT_EQ(process.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(process.parent, static_cast<std::uint32_t>(getppid()));
  EXPECT_EQ(process.rank, -1);
  EXPECT_EQ(process.start_ns, folder_.segment().header().start_ns);
  const std::vector<CopiedRecord> processes = folder_.segment().records(RecordKind::process);
  const auto name = reinterpret_cast<const char*>(processes[0].bytes.data()) + sizeof process;
  EXPECT_EQ(std::string(name, process.name_bytes), program_invocation_short_name);

  const auto thread = only<ThreadRecord>(RecordKind::thread);
  EXPECT_EQ(thread.os_thread, static_cast<std::uint32_t>(gettid()));
  EXPECT_EQ(thread.process, process.pid);
  EXPECT_EQ(operation_writer(only<OperationSubmittedRecord>(RecordKind::operation_submitted).operation), thread.thread);
  auto texts = texts_of(folder_.segment().records());
  EXPECT_EQ(texts[text], "known before the first record");
  EXPECT_FALSE(texts[thread.name].empty());
}

TEST_F(SubscriberTest, ALaunchIsOneSubmittedAndOneCompletedRecord) {
  const probe::Geometry geometry = {.dimensions = 2, .offset = {1, 2, 0}, .global = {64, 32, 1}, .local = {8, 4, 1}};
  probe::Operation operation;
  operation.enter_ns = 500;
  operation.queue = 3;
  operation.api = 9;
  operation.kernel = 4;
  operation.command = probe::Command::ndrange_kernel;
  operation.flags = probe::kOutOfOrderQueue | probe::kUserEvent | 1u << 20;
  operation.geometry = &geometry;
  const probe::OperationId id = table_.begin(operation);
  ASSERT_NE(id, 0u);
  ASSERT_TRUE(table_.submitted(id, operation, {600, 0, 17}));
  table_.complete(id, {3, probe::CompletionStatus::ok, true, 0, {10, 20, 30, 40}});

  const auto record = only<OperationSubmittedRecord>(RecordKind::operation_submitted);
  EXPECT_EQ(record.operation, id);
  EXPECT_EQ(record.enter_ns, 500u);
  EXPECT_EQ(record.exit_ns, 600u);
  EXPECT_EQ(record.queue, 3u);
  EXPECT_EQ(record.queue_sequence, 17u);
  EXPECT_EQ(record.what, 4u);
  EXPECT_EQ(record.api, 9u);
  EXPECT_EQ(record.result, 0);
  EXPECT_EQ(record.header.flags, kFlagOutOfOrderQueue | kFlagUserEvent | 1u << kCommandShift);

  const auto shape = only<GeometryRecord>(RecordKind::geometry);
  EXPECT_EQ(shape.geometry, record.geometry);
  EXPECT_EQ(shape.dimensions, 2u);
  EXPECT_EQ(shape.offset[1], 2u);
  EXPECT_EQ(shape.global[0], 64u);
  EXPECT_EQ(shape.local[1], 4u);

  const auto done = only<OperationCompletedRecord>(RecordKind::operation_completed);
  EXPECT_EQ(done.operation, id);
  EXPECT_EQ(done.header.flags, std::uint32_t{kFlagClamped});
  EXPECT_EQ(done.queued, 10u);
  EXPECT_EQ(done.submit, 20u);
  EXPECT_EQ(done.start, 30u);
  EXPECT_EQ(done.end, 40u);
  EXPECT_EQ(done.queue, 3u);
}

TEST_F(SubscriberTest, ARefusedCallIsFailedAndHasNoSequence) {
  probe::Operation operation;
  operation.queue = 1;
  operation.command = probe::Command::write;
  const probe::OperationId id = table_.begin(operation);
  ASSERT_TRUE(table_.submitted(id, operation, {0, -5, 0}));
  const auto record = only<OperationSubmittedRecord>(RecordKind::operation_submitted);
  EXPECT_EQ(record.result, -5);
  EXPECT_EQ(record.queue_sequence, 0u);
  EXPECT_EQ(record.what, 0u);
  EXPECT_EQ(record.header.flags, kFlagFailed | kFlagExitUnknown | 5u << kCommandShift);
}

TEST_F(SubscriberTest, EveryCompletionStatusHasItsFlag) {
  using probe::CompletionStatus;
  for (const CompletionStatus status :
       {CompletionStatus::ok, CompletionStatus::failed, CompletionStatus::untimed, CompletionStatus::unfinished}) {
    table_.complete(launch(table_, 1, 1), {1, status, false, -14, {}});
  }
  const auto records = folder_.segment().records(RecordKind::operation_completed);
  ASSERT_EQ(records.size(), 4u);
  const std::uint32_t expected[] = {0, kFlagFailed, kFlagUntimed, kFlagUnfinishedAtExit};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(records[i].header().flags, expected[i]);
  EXPECT_EQ(records[1].as<OperationCompletedRecord>().status, -14);
}

TEST_F(SubscriberTest, AGeometryIsWrittenOnceAndBeforeItsFirstLaunch) {
  // More shapes than the cache holds, so that some are written again: then under a new id, never under the id of another shape.
  std::map<std::uint32_t, std::uint64_t> global_of;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t size = 1; size <= 400; ++size) {
      const probe::Geometry geometry = {.dimensions = 1, .global = {size, 1, 1}};
      probe::Operation operation;
      operation.geometry = &geometry;
      operation.command = probe::Command::ndrange_kernel;
      ASSERT_NE(submit(table_, operation, 1), 0u);
      ASSERT_NE(submit(table_, operation, 1), 0u);
    }
  }
  std::size_t launches = 0;
  for (const CopiedRecord& record : folder_.segment().records()) {
    if (record.kind() == RecordKind::geometry) {
      EXPECT_TRUE(global_of.emplace(record.as<GeometryRecord>().geometry, record.as<GeometryRecord>().global[0]).second);
    } else if (record.kind() == RecordKind::operation_submitted) {
      ASSERT_EQ(global_of.at(record.as<OperationSubmittedRecord>().geometry), launches / 2 % 400 + 1);
      ++launches;
    }
  }
  EXPECT_EQ(launches, 2'400u);
  EXPECT_GE(global_of.size(), 400u);
  EXPECT_LE(global_of.size(), 1'200u);
}

TEST_F(SubscriberTest, ACopyBringsItsDetailAndItsRectangle) {
  probe::Rectangle rectangle;
  rectangle.origins[1][2] = 5;
  rectangle.region[0] = 64;
  rectangle.pitches[3] = 4'096;
  probe::CopyDetail copy;
  copy.bytes = 4'096;
  copy.source = 0xabc;
  copy.destination = 0xdef;
  copy.source_type = probe::MemoryType::host;
  copy.destination_type = probe::MemoryType::device;
  copy.direction = probe::CopyDirection::host_to_device;
  copy.form = probe::CopyForm::rectangle;
  copy.peer_device = 2;
  copy.rectangle = &rectangle;
  probe::Operation operation;
  operation.command = probe::Command::write;
  operation.copy = &copy;
  const probe::OperationId id = submit(table_, operation, 1);
  ASSERT_NE(id, 0u);

  const auto detail = only<CopyDetailRecord>(RecordKind::copy_detail);
  EXPECT_EQ(detail.operation, id);
  EXPECT_EQ(detail.bytes, 4'096u);
  EXPECT_EQ(detail.source, 0xabcu);
  EXPECT_EQ(detail.destination, 0xdefu);
  EXPECT_EQ(detail.source_type, 1);
  EXPECT_EQ(detail.destination_type, 2);
  EXPECT_EQ(detail.direction, 1);
  EXPECT_EQ(detail.form, 1);
  EXPECT_EQ(detail.peer_device, 2u);
  EXPECT_EQ(detail.pattern_bytes, 0u);
  const auto shape = only<RectangleRecord>(RecordKind::rectangle);
  EXPECT_EQ(shape.id, detail.rectangle);
  EXPECT_EQ(shape.origins[1][2], 5u);
  EXPECT_EQ(shape.region[0], 64u);
  EXPECT_EQ(shape.pitches[3], 4'096u);
}

TEST_F(SubscriberTest, AFillKeepsItsPatternLongOnesAsAText) {
  const std::string pattern("\x01\x00\x02pattern of 16.", 16);
  for (const std::uint32_t bytes : {4u, 8u, 16u, 16u}) {
    probe::CopyDetail copy;
    copy.form = probe::CopyForm::pattern;
    copy.pattern = pattern.data();
    copy.pattern_bytes = bytes;
    probe::Operation operation;
    operation.command = probe::Command::fill;
    operation.copy = &copy;
    ASSERT_NE(submit(table_, operation, 1), 0u);
  }
  const auto details = folder_.segment().records(RecordKind::copy_detail);
  ASSERT_EQ(details.size(), 4u);
  EXPECT_EQ(std::memcmp(&details[0].as<CopyDetailRecord>().pattern, pattern.data(), 4), 0);
  EXPECT_EQ(std::memcmp(&details[1].as<CopyDetailRecord>().pattern, pattern.data(), 8), 0);
  const auto texts = texts_of(folder_.segment().records());
  EXPECT_EQ(texts.at(static_cast<std::uint32_t>(details[2].as<CopyDetailRecord>().pattern)), pattern);
  EXPECT_EQ(details[3].as<CopyDetailRecord>().pattern, details[2].as<CopyDetailRecord>().pattern);
}

TEST_F(SubscriberTest, OtherRecordsCarryWhatWasPublished) {
  table_.call_begin(7, 100);
  table_.call({.enter_ns = 100, .exit_ns = 150, .api = 7, .result = -3, .operation = 99});
  table_.wait({.enter_ns = 1,
               .exit_ns = 2,
               .handle = 3,
               .type = probe::WaitType::events,
               .api = 4,
               .context = 5,
               .queue = 6,
               .result = 0,
               .wait_count = 8});
  table_.memory({.time_ns = 10,
                 .address = 11,
                 .bytes = 12,
                 .total_bytes = 13,
                 .device = 14,
                 .context = 15,
                 .action = probe::MemoryAction::release,
                 .type = probe::MemoryType::shared});
  table_.clock({.host_before_ns = 20,
                .host_after_ns = 22,
                .device_ticks = 21,
                .device = 2,
                .method = probe::ClockMethod::command_bracket,
                .error_ps = 500});
  table_.overhead(probe::OverheadType::driver, 30, 31, 64);
  table_.communicate({.begin_ns = 50, .end_ns = 52, .send_bytes = 53, .receive_bytes = 54, .communicator = 55, .name = "allreduce"});
  table_.annotate({.time_ns = 40, .range = 41, .type = probe::AnnotationType::counter, .text = "bytes", .value = 2.5});
  const probe::OperationId first = launch(table_, 3, 1);
  table_.lost({.queue = 3, .cause = probe::LossCause::ring_full, .first = first, .last = first + 10, .count = 7});

  EXPECT_EQ(only<CallBeginRecord>(RecordKind::call_begin).api, 7u);
  const auto call = only<ApiCallRecord>(RecordKind::api_call);
  EXPECT_EQ(call.operation, 99u);
  EXPECT_EQ(call.result, -3);
  EXPECT_EQ(call.header.flags, std::uint32_t{kFlagFailed});
  const auto wait = only<SynchronizationRecord>(RecordKind::synchronization);
  EXPECT_EQ(wait.handle, 3u);
  EXPECT_EQ(wait.type, 2u);
  EXPECT_EQ(wait.queue, 6u);
  EXPECT_EQ(wait.wait_count, 8u);
  EXPECT_EQ(wait.thread, call.thread);
  const auto memory = only<MemoryRecord>(RecordKind::memory);
  EXPECT_EQ(memory.total, 13u);
  EXPECT_EQ(memory.action, 1);
  EXPECT_EQ(memory.type, 3);
  const auto clock = only<ClockReadingRecord>(RecordKind::clock_reading);
  EXPECT_EQ(clock.device_ticks, 21u);
  EXPECT_EQ(clock.domain, 1u);
  EXPECT_EQ(clock.header.flags, 3u);
  const std::vector<OverheadRecord> overheads = all<OverheadRecord>(RecordKind::overhead);
  ASSERT_EQ(overheads.size(), 2u);
  EXPECT_EQ(overheads[0].type, static_cast<std::uint32_t>(probe::OverheadType::resource)) << "the first chunk has its price";
  EXPECT_LE(overheads[0].begin_ns, overheads[0].end_ns);
  EXPECT_EQ(overheads[1].type, static_cast<std::uint32_t>(probe::OverheadType::driver));
  EXPECT_EQ(overheads[1].count, 64u);
  const auto communication = only<CommunicationRecord>(RecordKind::communication);
  EXPECT_EQ(communication.begin_ns, 50u);
  EXPECT_EQ(communication.end_ns, 52u);
  EXPECT_EQ(communication.send_bytes, 53u);
  EXPECT_EQ(communication.receive_bytes, 54u);
  EXPECT_EQ(communication.communicator, 55u);
  EXPECT_EQ(communication.thread, call.thread);
  EXPECT_EQ(texts_of(folder_.segment().records())[communication.name], "allreduce");
  const auto annotation = only<AnnotationRecord>(RecordKind::annotation);
  EXPECT_EQ(annotation.header.flags, 3u);
  EXPECT_EQ(annotation.value, 2.5);
  EXPECT_EQ(texts_of(folder_.segment().records())[annotation.text], "bytes");
  const auto loss = only<LossRecord>(RecordKind::loss);
  EXPECT_EQ(loss.header.flags, kFlagCompletionLost);
  EXPECT_EQ(loss.count, 7u);
  EXPECT_EQ(loss.cause, 2u);
  EXPECT_EQ(loss.queue, 3u);
}

TEST_F(SubscriberTest, ObjectsAreDescribedAndEnd) {
  probe::DeviceDescription device;
  device.name = "pthread-test";
  device.driver = "driver 1.0";
  device.uuid[15] = 9;
  device.tick_numerator = 80;
  device.valid_bits = 36;
  device.clock_domain = ClockDomain::monotonic_raw;
  table_.object(probe::ObjectKind::device, 1, probe::ObjectEvent::created, &device);
  const probe::Id devices[] = {1, 7, 9};
  probe::ContextDescription context{.native = 3, .device_count = 3, .devices = devices};
  table_.object(probe::ObjectKind::context, 2, probe::ObjectEvent::created, &context);
  probe::QueueDescription queue{
      .context = 2, .device = 1, .properties = 3, .native = 4, .priority = -1, .out_of_order = true, .published_before = 6};
  table_.object(probe::ObjectKind::queue, 3, probe::ObjectEvent::created, &queue);
  probe::ModuleDescription module{.context = 2, .name = "module", .source_bytes = 5, .hash = 6};
  table_.object(probe::ObjectKind::module, 4, probe::ObjectEvent::created, &module);
  probe::KernelDescription kernel{
      .name = "saxpy", .module = 4, .device = 1, .native = 7, .local_bytes = 8, .private_bytes = 9, .sub_group = 32};
  table_.object(probe::ObjectKind::kernel, 5, probe::ObjectEvent::created, &kernel);
  table_.object(probe::ObjectKind::queue, 3, probe::ObjectEvent::destroyed, nullptr);
  table_.object(probe::ObjectKind::memory, 1, probe::ObjectEvent::created, nullptr);  // has no record of its own

  auto texts = texts_of(folder_.segment().records());
  const auto device_record = only<DeviceRecord>(RecordKind::device);
  EXPECT_EQ(texts[device_record.name], "pthread-test");
  EXPECT_EQ(texts[device_record.driver], "driver 1.0");
  EXPECT_EQ(device_record.uuid[15], 9);
  EXPECT_EQ(device_record.tick_numerator, 80u);
  EXPECT_EQ(device_record.valid_bits, 36u);
  EXPECT_EQ(device_record.clock_domain, 2u);
  const auto contexts = folder_.segment().records(RecordKind::context);
  ASSERT_EQ(contexts.size(), 1u);
  ASSERT_EQ(contexts[0].bytes.size(), 24u + 16u);
  EXPECT_EQ(reinterpret_cast<const std::uint32_t*>(contexts[0].bytes.data() + 24)[2], 9u);
  const auto queue_record = only<QueueRecord>(RecordKind::queue);
  EXPECT_EQ(queue_record.header.flags, kFlagQueueOutOfOrder);
  EXPECT_EQ(queue_record.priority, -1);
  EXPECT_EQ(queue_record.published_before, 6u);
  EXPECT_EQ(texts[only<ModuleRecord>(RecordKind::module).name], "module");
  EXPECT_EQ(texts[only<KernelRecord>(RecordKind::kernel).name], "saxpy");
  EXPECT_EQ(only<KernelRecord>(RecordKind::kernel).sub_group, 32u);
  EXPECT_EQ(only<ObjectEndRecord>(RecordKind::object_end).id, 3u);
}

TEST_F(SubscriberTest, ALongTextIsSplitAndAnEmptyOneIsNot) {
  std::string text(150'001, 'a');
  text[65'000] = 'b';
  text.back() = 'c';
  const probe::Id id = probe::intern(text);
  table_.string(77'777'777, "");
  auto texts = texts_of(folder_.segment().records());
  EXPECT_TRUE(texts[id] == text) << "of " << texts[id].size() << " bytes";
  ASSERT_TRUE(texts.contains(77'777'777));
  EXPECT_EQ(texts[77'777'777], "");
}

TEST_F(SubscriberTest, ModesAskForWhatTheyRecord) {
  EXPECT_EQ(table_.wanted.load(), wanted_by(RecordMode::standard));
  EXPECT_EQ(wanted_by(RecordMode::device_only), probe::kOperations | probe::kAnnotations);
  EXPECT_EQ(wanted_by(RecordMode::standard),
            probe::kOperations | probe::kAnnotations | probe::kHostExitTimes | probe::kAllTicks | probe::kWaits | probe::kMemory);
  EXPECT_EQ(wanted_by(RecordMode::api), wanted_by(RecordMode::standard) | probe::kCalls);
}

TEST_F(SubscriberTest, PausedOperationsAreFilteredAndCounted) {
  const probe::OperationId before = launch(table_, 1, 1);
  folder_.segment().header().paused = 1;
  EXPECT_EQ(launch(table_, 1, 2), 0u);
  EXPECT_EQ(launch(table_, 1, 2), 0u);
  table_.wait({});
  finish(table_, before, 1);  // belongs to what was recorded
  folder_.segment().header().paused = 0;
  EXPECT_NE(launch(table_, 1, 2), 0u);
  EXPECT_EQ(folder_.segment().filtered(), 2u);
  EXPECT_EQ(folder_.segment().records(RecordKind::operation_submitted).size(), 2u);
  EXPECT_EQ(folder_.segment().records(RecordKind::operation_completed).size(), 1u);
  EXPECT_TRUE(folder_.segment().records(RecordKind::synchronization).empty());
}

TEST_F(SubscriberTest, OffMeansThatNothingIsWanted) {
  ASSERT_NE(launch(table_, 1, 1), 0u);
  folder_.segment().header().paused = 1;  // as the recorder does it
  folder_.segment().header().state = static_cast<std::uint32_t>(SegmentState::off);
  EXPECT_EQ(launch(table_, 1, 2), 0u);
}

TEST(KernelFilterAttachTest, OnlyKernelsThatMatchAreWantedAndEverythingThatIsNoKernel) {
  const LiveFolder folder;
  const RecordedProcess process(folder, RecordMode::standard, "^(sa|da)xpy$|gemm");
  const probe::Subscriber& table = *process.table;
  const std::pair<const char*, bool> kernels[] = {
      {"saxpy", true}, {"daxpy", true}, {"xsaxpy", false}, {"my_gemm_nn", true}, {"copy", false}};
  probe::Id id = 40'000;  // beyond the first block of the table
  for (const auto& [name, wanted] : kernels) {
    probe::KernelDescription description;
    description.name = name;
    table.object(probe::ObjectKind::kernel, ++id, probe::ObjectEvent::created, &description);
    EXPECT_EQ(launch(table, 1, 1, id) != 0, wanted) << name;
  }
  EXPECT_NE(launch(table, 1, 1, 3), 0u) << "a kernel without a name is recorded";
  probe::Operation copy;
  copy.command = probe::Command::copy;
  copy.kernel = id;
  EXPECT_NE(submit(table, copy, 1), 0u);
  EXPECT_EQ(folder.segment().filtered(), 2u);
}

TEST(KernelFilterAttachTest, ABadExpressionIsAnErrorThatNamesIt) {
  const LiveFolder folder;
  Attachment attachment;
  attachment.live_path = folder.path();
  attachment.kernels = "a(b";
  const Result<> attached = attach(attachment);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(attached.error().message.find("a(b"), std::string::npos);
  EXPECT_EQ(probe::subscriber(), nullptr);
}

TEST(AttachTest, ASecondAttachmentIsRefused) {
  const LiveFolder folder;
  const RecordedProcess process(folder);
  Attachment attachment;
  attachment.live_path = folder.path();
  const Result<> second = attach(attachment);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::failed_precondition);
}

TEST(AttachTest, WithoutASpareTheProgramGoesOnUnrecorded) {
  const LiveFolder folder(4, 0);
  Attachment attachment;
  attachment.live_path = folder.path();
  attachment.claim_wait_ms = 2;
  ASSERT_TRUE(attach(attachment));
  const probe::Subscriber* table = probe::subscriber();
  testing::internal::CaptureStderr();
  EXPECT_EQ(launch(*table, 1, 1), 0u);
  EXPECT_EQ(launch(*table, 1, 2), 0u);
  finish(*table, make_operation(1, 1), 1);
  table->wait({});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("this process is not recorded"), std::string::npos);
  EXPECT_EQ(probe::subscriber(), nullptr);
  detach();
}

TEST(AttachTest, DetachingClosesTheSegment) {
  const LiveFolder folder;
  {
    const RecordedProcess process(folder);
    launch(*process.table, 1, 1);
    EXPECT_EQ(folder.segment().header().state.load(), static_cast<std::uint32_t>(SegmentState::attached));
  }
  EXPECT_EQ(folder.segment().header().state.load(), static_cast<std::uint32_t>(SegmentState::closed));
  EXPECT_EQ(probe::subscriber(), nullptr);
}

TEST(AttachTest, RecordsAfterClosingAreKept) {
  const LiveFolder folder;
  const RecordedProcess process(folder);
  launch(*process.table, 1, 1);
  close_segment();
  EXPECT_NE(launch(*process.table, 1, 2), 0u);
  EXPECT_EQ(folder.segment().records(RecordKind::operation_submitted).size(), 2u);
  EXPECT_EQ(folder.segment().header().state.load(), static_cast<std::uint32_t>(SegmentState::closed));
}

}  // namespace
}  // namespace xpu::trace
