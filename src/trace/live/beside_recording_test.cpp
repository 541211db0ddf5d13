// A capture beside a recording: the test is the recorder. A program of its own, because one that had a capture alone keeps its memory.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "trace/test_support/recorded_process.hpp"
#include "xpu/base/clock.hpp"
#include "xpu/trace/live_capture.hpp"

namespace xpu::trace {
namespace {

using test_support::CopiedRecord;
using test_support::LiveFolder;
using test_support::RecordedProcess;
using test_support::SegmentView;

std::vector<CopiedRecord> records_of(const std::vector<RecordBuffer>& buffers) {
  std::vector<CopiedRecord> all;
  for (const RecordBuffer& buffer : buffers) {
    for_each_record(buffer.records(), [&](const RecordHeader& header) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&header);
      all.push_back({{bytes, bytes + header.size}});
    });
  }
  return all;
}
std::multiset<std::uint64_t> operations(const std::vector<CopiedRecord>& records, RecordKind kind) {
  std::multiset<std::uint64_t> found;
  for (const CopiedRecord& record : records) {
    if (record.kind() == kind) found.insert(record.as<OperationSubmittedRecord>().operation);  // the first field of both
  }
  return found;
}
struct Counted {
  std::uint64_t submissions = 0, completions = 0;
};
Counted losses(const std::vector<CopiedRecord>& records) {
  Counted counted;
  for (const CopiedRecord& record : records) {
    if (record.kind() != RecordKind::loss) continue;
    const auto& loss = record.as<LossRecord>();
    if ((loss.header.flags & kFlagNotOperation) != 0) continue;
    ((loss.header.flags & kFlagCompletionLost) != 0 ? counted.completions : counted.submissions) += loss.count;
  }
  return counted;
}

const probe::Geometry kGeometry = {.dimensions = 1, .global = {256, 1, 1}, .local = {64, 1, 1}};

probe::OperationId launch_now(const probe::Subscriber& table, std::uint32_t sequence) {
  probe::Operation operation;
  operation.queue = 1;
  operation.kernel = 1;
  operation.command = probe::Command::ndrange_kernel;
  operation.geometry = &kGeometry;
  operation.enter_ns = now_ns(probe::clock_domain());
  const probe::OperationId id = table.begin(operation);
  return id != 0 && table.submitted(id, operation, {operation.enter_ns + 5, 0, sequence}) ? id : 0;
}
/// In several chunks.
void run_kernels(const probe::Subscriber& table, std::uint32_t count) {
  for (std::uint32_t sequence = 1; sequence <= count; ++sequence) test_support::finish(table, launch_now(table, sequence), 1);
}
std::unique_ptr<LiveCapture> begin_beside(const CaptureOptions& options = {}) {
  Result<std::unique_ptr<LiveCapture>> begun = LiveCapture::begin(options);
  EXPECT_TRUE(begun) << begun.error().message;
  return begun ? std::move(*begun) : nullptr;
}

TEST(CaptureBesideARecordingTest, SeesWhatIsRecordedWhileItIsUnderWay) {
  const LiveFolder folder(64);
  const RecordedProcess process(folder);
  run_kernels(*process.table, 10);
  const auto capture = begin_beside();
  run_kernels(*process.table, 12'000);
  std::vector<CopiedRecord> taken = records_of(capture->take());
  run_kernels(*process.table, 5);
  capture->finish();
  run_kernels(*process.table, 3);
  for (CopiedRecord& record : records_of(capture->take())) taken.push_back(std::move(record));
  const std::multiset<std::uint64_t> seen = operations(taken, RecordKind::operation_submitted);
  EXPECT_EQ(seen.size(), 12'005u);
  EXPECT_EQ(operations(taken, RecordKind::operation_completed), seen);
  const std::vector<CopiedRecord> recorded = folder.segment().records();
  EXPECT_EQ(operations(recorded, RecordKind::operation_submitted).size(), 12'018u);
  const auto of_kind = [](const std::vector<CopiedRecord>& records, RecordKind kind) {
    return std::count_if(records.begin(), records.end(), [&](const CopiedRecord& record) { return record.kind() == kind; });
  };
  EXPECT_EQ(of_kind(taken, RecordKind::thread), 1) << "who wrote before is introduced";
  EXPECT_EQ(of_kind(taken, RecordKind::geometry), 1);
}

TEST(CaptureBesideARecordingTest, ChunksThatTheRecorderTakesAreCopiedBefore) {
  const LiveFolder folder(8);
  const RecordedProcess process(folder);
  run_kernels(*process.table, 1);
  const SegmentView recorder = folder.segment();
  const auto capture = begin_beside();
  std::atomic<bool> is_over = false;
  std::thread recycler([&] {
    while (!is_over) {
      recorder.recycle();
      std::this_thread::yield();
    }
  });
  constexpr std::uint32_t kEach = 20'000;
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) threads.emplace_back([&] { run_kernels(*process.table, kEach); });
  std::vector<CopiedRecord> taken;
  for (int round = 0; round < 20; ++round) {
    for (CopiedRecord& record : records_of(capture->take())) taken.push_back(std::move(record));
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  recycler.join();
  capture->finish();
  for (CopiedRecord& record : records_of(capture->take())) taken.push_back(std::move(record));
  const std::multiset<std::uint64_t> seen = operations(taken, RecordKind::operation_submitted);
  EXPECT_EQ(seen.size(), std::set<std::uint64_t>(seen.begin(), seen.end()).size()) << "none twice";
  // Where the recycler was too slow, also for a thread that had no chunk yet.
  const Counted lost = losses(taken);
  EXPECT_EQ(seen.size() + lost.submissions + capture->process().lost_before_any_chunk, 2 * kEach);
  EXPECT_EQ(operations(taken, RecordKind::operation_completed).size() + lost.completions, seen.size());
}

TEST(CaptureBesideARecordingTest, WhatFindsNoMemoryIsCountedAndStaysInTheRecording) {
  const LiveFolder folder(64);
  const RecordedProcess process(folder);
  CaptureOptions options;
  options.max_bytes = 1 << 20;
  const auto capture = begin_beside(options);
  constexpr std::uint32_t kKernels = 30'000;
  run_kernels(*process.table, kKernels);
  const std::vector<RecordBuffer> kept = capture->take();
  const std::vector<CopiedRecord> taken = records_of(kept);
  const Counted lost = losses(taken);
  EXPECT_GT(lost.submissions, 10'000u);
  EXPECT_EQ(operations(taken, RecordKind::operation_submitted).size() + lost.submissions, kKernels);
  EXPECT_EQ(operations(taken, RecordKind::operation_completed).size() + lost.completions, kKernels - lost.submissions);
  EXPECT_EQ(operations(folder.segment().records(), RecordKind::operation_submitted).size(), kKernels);
}

TEST(CaptureBesideARecordingTest, APauseIsTheCapturesOwn) {
  const LiveFolder folder(64);
  const RecordedProcess process(folder);
  const auto capture = begin_beside();
  run_kernels(*process.table, 10);
  const probe::OperationId across = launch_now(*process.table, 11);
  capture->pause();
  test_support::finish(*process.table, across, 1);
  run_kernels(*process.table, 20);
  capture->resume();
  run_kernels(*process.table, 30);
  const std::vector<CopiedRecord> taken = records_of(capture->take());
  EXPECT_EQ(operations(taken, RecordKind::operation_submitted).size(), 41u);
  EXPECT_EQ(operations(taken, RecordKind::operation_completed).count(across), 1u);
  EXPECT_EQ(operations(folder.segment().records(), RecordKind::operation_submitted).size(), 61u);
}

TEST(CaptureBesideARecordingTest, WhatItWantsInAdditionIsAskedForOnlyMeanwhile) {
  const LiveFolder folder(64);
  const RecordedProcess process(folder, RecordMode::device_only);
  const std::uint32_t before = process.table->wanted.load();
  {
    CaptureOptions options;
    options.calls = true;
    const auto capture = begin_beside(options);
    EXPECT_NE(process.table->wanted.load() & probe::kCalls, 0u);
  }
  EXPECT_EQ(process.table->wanted.load(), before);
  EXPECT_EQ(probe::subscriber(), process.table) << "the recording goes on";
  run_kernels(*process.table, 2);
  EXPECT_EQ(operations(folder.segment().records(), RecordKind::operation_submitted).size(), 2u);
}

TEST(CaptureBesideARecordingTest, AForkedChildIsRecordedAndHasNoCapture) {
  const LiveFolder folder(8, 2);
  const RecordedProcess process(folder);
  CaptureOptions options;
  options.calls = true;
  const auto capture = begin_beside(options);
  run_kernels(*process.table, 3);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    const bool wants_calls = (process.table->wanted.load() & probe::kCalls) != 0;
    run_kernels(*process.table, 4'000);
    _exit(wants_calls || !capture->take().empty() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(operations(records_of(capture->take()), RecordKind::operation_submitted).size(), 3u);
  EXPECT_EQ(operations(folder.segment_of(static_cast<std::uint64_t>(child)).records(), RecordKind::operation_submitted).size(), 4'000u);
}

}  // namespace
}  // namespace xpu::trace
