// Captures of this process: what each is handed, and that publishers are free whenever none is under way. The test publishes as a publisher
// would.

#include "xpu/trace/live_capture.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "base/external_correlation.hpp"
#include "trace/test_support/recorded_process.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::trace {
namespace {

using test_support::CopiedRecord;

/// Records of all buffers, by kind.
class TakenRecords {
 public:
  explicit TakenRecords(const std::vector<RecordBuffer>& buffers) {
    for (const RecordBuffer& buffer : buffers) add(buffer);
  }
  void add(const RecordBuffer& buffer) {
    for_each_record(buffer.records(), [&](const RecordHeader& header) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&header);
      records_[static_cast<RecordKind>(header.kind)].push_back({{bytes, bytes + header.size}});
    });
  }
  const std::vector<CopiedRecord>& of(RecordKind kind) { return records_[kind]; }
  std::size_t count(RecordKind kind) { return records_[kind].size(); }
  std::size_t launches() { return count(RecordKind::operation_submitted); }
  std::size_t completions() { return count(RecordKind::operation_completed); }
  /// Of operations.
  std::uint64_t losses() {
    std::uint64_t sum = 0;
    for (const CopiedRecord& record : of(RecordKind::loss)) {
      if ((record.header().flags & kFlagNotOperation) == 0) sum += record.as<LossRecord>().count;
    }
    return sum;
  }
  /// Of `losses`.
  std::uint64_t lost_completions() {
    std::uint64_t sum = 0;
    for (const CopiedRecord& record : of(RecordKind::loss)) {
      const auto& loss = record.as<LossRecord>();
      if ((loss.header.flags & kFlagCompletionLost) != 0) sum += loss.count;
    }
    return sum;
  }
  std::set<std::uint64_t> completed_operations() {
    std::set<std::uint64_t> operations;
    for (const CopiedRecord& record : of(RecordKind::operation_completed))
      operations.insert(record.as<OperationCompletedRecord>().operation);
    return operations;
  }

 private:
  std::map<RecordKind, std::vector<CopiedRecord>> records_;
};

std::unique_ptr<LiveCapture> begin(const CaptureOptions& options = {}) {
  Result<std::unique_ptr<LiveCapture>> begun = LiveCapture::begin(options);
  EXPECT_TRUE(begun) << begun.error().message;
  return begun ? std::move(*begun) : nullptr;
}

const probe::Geometry kGeometry = {.dimensions = 1, .global = {256, 1, 1}, .local = {64, 1, 1}};

/// As a publisher does it: nothing when nobody listens. 0 then, and when it is not wanted.
probe::OperationId launch(std::uint32_t sequence = 1) {
  const probe::Subscriber* listener = probe::subscriber();
  if (listener == nullptr) return 0;
  probe::Operation operation;
  operation.queue = 1;
  operation.kernel = 1;
  operation.command = probe::Command::ndrange_kernel;
  operation.geometry = &kGeometry;
  operation.enter_ns = now_ns(probe::clock_domain());
  const probe::OperationId id = listener->begin(operation);
  if (id == 0) return 0;
  return listener->submitted(id, operation, {operation.enter_ns + 5, 0, sequence}) ? id : 0;
}
void finish(probe::OperationId id) {
  if (const probe::Subscriber* listener = probe::subscriber(); listener != nullptr && id != 0) test_support::finish(*listener, id, 1);
}
void run(std::uint32_t sequence = 1) { finish(launch(sequence)); }

TEST(LiveCaptureTest, NobodyListensBeforeAndAfter) {
  EXPECT_EQ(probe::subscriber(), nullptr);
  {
    const auto capture = begin();
    EXPECT_NE(probe::subscriber(), nullptr);
    run();
    TakenRecords taken(capture->take());
    EXPECT_EQ(taken.launches(), 1u);
    EXPECT_EQ(taken.completions(), 1u);
    EXPECT_EQ(taken.count(RecordKind::thread), 1u);
    EXPECT_EQ(taken.count(RecordKind::geometry), 1u);
    EXPECT_EQ(TakenRecords(capture->take()).launches(), 0u);
  }
  EXPECT_EQ(probe::subscriber(), nullptr);
}

TEST(LiveCaptureTest, ALaterCaptureIsToldOfThreadsAndGeometriesAgain) {
  for (int round = 0; round < 3; ++round) {
    const auto capture = begin();
    run();
    TakenRecords taken(capture->take());
    ASSERT_EQ(taken.count(RecordKind::thread), 1u) << round;
    ASSERT_EQ(taken.count(RecordKind::geometry), 1u) << round;
    const auto operation = taken.of(RecordKind::operation_submitted)[0].as<OperationSubmittedRecord>();
    EXPECT_EQ(operation.geometry, taken.of(RecordKind::geometry)[0].as<GeometryRecord>().geometry);
    EXPECT_EQ(operation.thread, taken.of(RecordKind::thread)[0].as<ThreadRecord>().thread);
  }
}

TEST(LiveCaptureTest, EachSeesWhatHappensWhileItIsUnderWay) {
  const auto first = begin();
  run(1);
  const auto second = begin();
  run(2);
  first->finish();
  EXPECT_NE(probe::subscriber(), nullptr) << "the second one is under way";
  run(3);
  TakenRecords of_first(first->take()), of_second(second->take());
  EXPECT_EQ(of_first.launches(), 2u);
  EXPECT_EQ(of_second.launches(), 2u);
  EXPECT_EQ(of_second.count(RecordKind::thread), 1u);
  EXPECT_EQ(of_second.count(RecordKind::geometry), 1u);
  EXPECT_EQ(of_second.of(RecordKind::operation_submitted)[0].as<OperationSubmittedRecord>().queue_sequence, 2u);
}

TEST(LiveCaptureTest, LivingObjectsComeWithTheFirstBuffersAndTextsAtTheEnd) {
  const auto earlier = begin();
  const probe::DeviceDescription device{.name = "a device", .driver = "a driver"};
  probe::subscriber()->object(probe::ObjectKind::device, 1, probe::ObjectEvent::created, &device);
  const auto capture = begin();
  TakenRecords taken(capture->take());
  ASSERT_EQ(taken.count(RecordKind::device), 1u);
  probe::subscriber()->object(probe::ObjectKind::device, 1, probe::ObjectEvent::destroyed, nullptr);
  const probe::Id late = probe::intern("a text that came late");
  TakenRecords texts({capture->texts()});
  EXPECT_EQ(texts.count(RecordKind::process), 1u);
  std::map<std::uint32_t, std::string> by_id;
  for (const CopiedRecord& record : texts.of(RecordKind::string)) {
    const auto& text = record.as<StringRecord>();
    by_id[text.id].append(reinterpret_cast<const char*>(record.bytes.data()) + sizeof text, text.bytes);
  }
  EXPECT_EQ(by_id[taken.of(RecordKind::device)[0].as<DeviceRecord>().name], "a device");
  EXPECT_EQ(by_id[late], "a text that came late");
  EXPECT_EQ(TakenRecords(begin()->take()).count(RecordKind::device), 0u) << "it is gone, and is not told of any more";
}

TEST(LiveCaptureTest, WhilePausedNothingBeginsAndWhatBeganEnds) {
  const auto capture = begin();
  const probe::OperationId before = launch(1);
  capture->pause();
  EXPECT_EQ(launch(2), 0u);
  finish(before);
  capture->resume();
  run(3);
  capture->finish();
  TakenRecords taken(capture->take());
  EXPECT_EQ(taken.launches(), 2u);
  EXPECT_EQ(taken.completions(), 2u);
  EXPECT_EQ(taken.completed_operations().count(before), 1u);
  EXPECT_EQ(capture->process().filtered, 1u);
}

TEST(LiveCaptureTest, APauseOfOneIsNoneOfTheOther) {
  const auto paused = begin();
  const auto other = begin();
  const probe::OperationId before = launch(1);
  paused->pause();
  const probe::OperationId during = launch(2);
  EXPECT_NE(during, 0u);
  finish(before);
  paused->resume();
  TakenRecords of_paused(paused->take()), of_other(other->take());
  EXPECT_EQ(of_paused.launches(), 1u);
  EXPECT_EQ(of_paused.completed_operations(), (std::set<std::uint64_t>{before}));
  EXPECT_EQ(of_other.launches(), 2u);
}

TEST(LiveCaptureTest, AfterAPauseQueuesAreDescribedAgain) {
  const auto paused = begin();
  const probe::QueueDescription queue{.context = 1, .device = 1};
  probe::subscriber()->object(probe::ObjectKind::queue, 1, probe::ObjectEvent::created, &queue);
  paused->take();
  paused->pause();
  paused->resume();
  EXPECT_EQ(TakenRecords(paused->take()).count(RecordKind::queue), 1u);
}

TEST(LiveCaptureTest, WhatFindsNoRoomIsCountedAndTheRestIsWhole) {
  CaptureOptions options;
  options.max_bytes = 1 << 20;
  const auto capture = begin(options);
  constexpr std::uint32_t kLaunches = 50'000;
  for (std::uint32_t sequence = 1; sequence <= kLaunches; ++sequence) run(sequence);
  capture->finish();
  const std::vector<RecordBuffer> buffers = capture->take();
  TakenRecords taken(buffers);
  EXPECT_LT(taken.launches(), kLaunches);
  EXPECT_GT(taken.launches(), 7'000u);
  std::uint64_t submissions_lost = 0;
  for (const CopiedRecord& record : taken.of(RecordKind::loss)) {
    const auto& loss = record.as<LossRecord>();
    if (loss.header.flags == 0) submissions_lost += loss.count;
  }
  EXPECT_EQ(taken.launches() + submissions_lost, kLaunches);
  EXPECT_EQ(taken.completions() + taken.losses() - submissions_lost, taken.launches());
}

TEST(LiveCaptureTest, OthersThatCameAndWentLeaveNoRoomBehind) {
  CaptureOptions small, large;
  small.max_bytes = 1 << 20;
  large.max_bytes = 64 << 20;
  const auto capture = begin(small);
  for (int round = 0; round < 20; ++round) begin(large);
  for (std::uint32_t sequence = 1; sequence <= 50'000; ++sequence) run(sequence);
  EXPECT_LT(TakenRecords(capture->take()).launches(), 20'000u);
}

TEST(LiveCaptureTest, WhatIsLostDuringAPauseIsNotThatOfThePaused) {
  CaptureOptions small;
  small.max_bytes = 1 << 20;
  const auto paused = begin(small);
  const auto other = begin(small);
  paused->pause();
  for (std::uint32_t sequence = 1; sequence <= 50'000; ++sequence) run(sequence);
  other->finish();
  TakenRecords of_paused(paused->take()), of_other(other->take());
  EXPECT_GT(of_other.losses(), 0u);
  EXPECT_EQ(of_paused.losses() - of_paused.lost_completions(), 0u);
}

TEST(LiveCaptureTest, TakingMakesRoom) {
  CaptureOptions options;
  options.max_bytes = 1 << 20;
  const auto capture = begin(options);
  std::size_t launches = 0;
  for (std::uint32_t sequence = 1; sequence <= 50'000; ++sequence) {
    run(sequence);
    if (sequence % 1'000 == 0) launches += TakenRecords(capture->take()).launches();
  }
  EXPECT_EQ(launches, 50'000u);
}

TEST(LiveCaptureTest, AThreadThatFoundNoRoomWritesAsSoonAsThereIsSome) {
  CaptureOptions options;
  options.max_bytes = 1 << 20;
  const auto capture = begin(options);
  for (std::uint32_t sequence = 1; sequence <= 50'000; ++sequence) run(sequence);
  capture->take();
  run(77'777);
  EXPECT_EQ(TakenRecords(capture->take()).launches(), 1u);
}

TEST(LiveCaptureTest, WhatIsCountedInAChunkAfterItsRecordsWereTakenIsToldToo) {
  CaptureOptions options;
  options.max_bytes = 1 << 20;
  const auto capture = begin(options);
  std::uint64_t launched = 0, seen = 0;
  const auto look_at = [&](const std::vector<RecordBuffer>& buffers) {
    TakenRecords taken(buffers);
    seen += taken.launches() + taken.losses() - taken.lost_completions();
  };
  const auto launch = [&](std::uint32_t count) {
    for (std::uint32_t sequence = 1; sequence <= count; ++sequence) run(sequence);
    launched += count;
  };
  launch(20'000);
  std::vector<RecordBuffer> buffers = capture->take();
  look_at(buffers);
  // What is lost is told behind the records of the chunk that counts it.
  const auto losses =
      std::find_if(buffers.begin(), buffers.end(), [](const RecordBuffer& buffer) { return TakenRecords({buffer}).losses() != 0; });
  ASSERT_TRUE(losses != buffers.end() && losses != buffers.begin());
  auto counting = std::make_unique<const RecordBuffer>(*(losses - 1));
  launch(1'000);
  // The thread finds a free chunk, after a while in which it does not look for one; then that one is given back.
  buffers.clear();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  launch(10);
  counting.reset();
  capture->finish();
  look_at(capture->take());
  EXPECT_EQ(seen, launched);
}

TEST(LiveCaptureTest, ABufferKeepsItsBytes) {
  CaptureOptions options;
  options.max_bytes = 2 << 20;
  const auto capture = begin(options);
  run(77);
  const std::vector<RecordBuffer> kept = capture->take();
  for (std::uint32_t sequence = 1; sequence <= 100'000; ++sequence) {
    run(sequence + 1'000);
    if (sequence % 1'000 == 0) capture->take();
  }
  TakenRecords taken(kept);
  ASSERT_EQ(taken.launches(), 1u);
  EXPECT_EQ(taken.of(RecordKind::operation_submitted)[0].as<OperationSubmittedRecord>().queue_sequence, 77u);
}

TEST(LiveCaptureTest, ABufferOutlivesItsCapture) {
  std::vector<RecordBuffer> kept;
  {
    const auto capture = begin();
    run(5);
    kept = capture->take();
  }
  for (int round = 0; round < 3; ++round) {
    const auto capture = begin();
    for (std::uint32_t sequence = 1; sequence <= 10'000; ++sequence) run(sequence);
  }
  EXPECT_EQ(TakenRecords(kept).launches(), 1u);
}

TEST(LiveCaptureTest, ExternalCorrelationStandsBeforeItsOperation) {
  std::thread([] {
    const auto capture = begin();
    probe::push_correlation(probe::CorrelationFamily::custom_0, 41);
    run(1);
    probe::push_correlation(probe::CorrelationFamily::custom_1, 42);
    run(2);
    probe::pop_correlation(probe::CorrelationFamily::custom_0);
    run(3);
    probe::pop_correlation(probe::CorrelationFamily::custom_1);
    run(4);
    std::vector<std::string> order;
    std::uint64_t named = 0;
    for (const RecordBuffer& buffer : capture->take()) {
      for_each_record(buffer.records(), [&](const RecordHeader& header) {
        if (header.kind == static_cast<std::uint16_t>(RecordKind::external_correlation)) {
          const auto& record = reinterpret_cast<const ExternalCorrelationRecord&>(header);
          order.push_back(std::to_string(record.family) + ":" + std::to_string(record.external_id));
          named = record.operation;
        } else if (header.kind == static_cast<std::uint16_t>(RecordKind::operation_submitted)) {
          const auto& record = reinterpret_cast<const OperationSubmittedRecord&>(header);
          order.push_back("launch " + std::to_string(record.queue_sequence));
          if (record.queue_sequence < 4) {
            EXPECT_EQ(record.operation, named);
          }
        }
      });
    }
    EXPECT_EQ(order, (std::vector<std::string>{"2:41", "launch 1", "2:41", "3:42", "launch 2", "3:42", "launch 3", "launch 4"}));
  }).join();
}

TEST(LiveCaptureTest, WhatMakesNoSenseIsRefused) {
  CaptureOptions options;
  options.max_bytes = 1'000;
  const auto refused = LiveCapture::begin(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message, "1000 bytes are too few for a capture; at least 1048576 are needed");
  EXPECT_EQ(LiveCapture::begin({.kernels = "a(b"}).error().message, "\"a(b\" is no expression for names of kernels");
}

TEST(LiveCaptureTest, SomebodyElseWhoListensIsNotDisturbed) {
  static constinit probe::Subscriber other = {.abi = probe::kAbi};
  ASSERT_TRUE(probe::subscribe(&other));
  const auto refused = LiveCapture::begin();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(probe::subscriber(), &other);
  probe::unsubscribe();
  run();
  const auto capture = begin();
  run();
  EXPECT_EQ(TakenRecords(capture->take()).launches(), 1u);
}

TEST(LiveCaptureTest, AForkedChildHasNoneAndMayBeginItsOwn) {
  const auto capture = begin();
  run(1);
  const std::vector<RecordBuffer> taken = capture->take();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    int failures = 0;
    const auto expect = [&](bool condition) { failures += condition ? 0 : 1; };
    expect(probe::subscriber() == nullptr);
    expect(capture->take().empty());
    capture->pause();
    capture->finish();
    const auto own = LiveCapture::begin();
    expect(static_cast<bool>(own));
    run(2);
    TakenRecords of_child((*own)->take());
    expect(of_child.launches() == 1);
    expect(of_child.count(RecordKind::thread) == 1);
    expect((*own)->process().pid == static_cast<std::uint64_t>(getpid()));
    _exit(failures);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  run(3);
  EXPECT_EQ(TakenRecords(capture->take()).launches(), 1u);
}

TEST(LiveCaptureTest, CapturesComeAndGoWhileThreadsPublish) {
  constexpr int kThreads = 4;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&] {
      for (std::uint32_t sequence = 1; !stop.load(std::memory_order_relaxed); ++sequence) run(sequence);
    });
  }
  std::size_t seen = 0;
  CaptureOptions small;
  small.max_bytes = 4 << 20;
  for (int round = 0; round < 60; ++round) {
    const auto capture = begin(small);
    const auto other = round % 3 == 0 ? begin(small) : nullptr;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (round % 2 == 0) capture->pause();
    TakenRecords taken(capture->take());
    if (round % 2 == 0) capture->resume();
    seen += taken.launches();
    std::set<std::uint32_t> introduced;
    for (const CopiedRecord& record : taken.of(RecordKind::thread)) introduced.insert(record.as<ThreadRecord>().thread);
    std::set<std::uint32_t> geometries;
    for (const CopiedRecord& record : taken.of(RecordKind::geometry)) geometries.insert(record.as<GeometryRecord>().geometry);
    std::size_t unknown = 0;
    for (const CopiedRecord& record : taken.of(RecordKind::operation_submitted)) {
      const auto& operation = record.as<OperationSubmittedRecord>();
      unknown += introduced.count(operation.thread) == 0 || geometries.count(operation.geometry) == 0;
    }
    // A launch that was under way when the capture began is written without them.
    EXPECT_LE(unknown, std::size_t{kThreads}) << round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(seen, 0u);
  EXPECT_EQ(probe::subscriber(), nullptr);
}

std::size_t resident_kib() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long size = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1'024;
}

TEST(LiveCaptureTest, AThousandCapturesTakeNoMemory) {
  const auto one_round = [] {
    const auto capture = begin();
    for (std::uint32_t sequence = 1; sequence <= 200; ++sequence) run(sequence);
    EXPECT_EQ(TakenRecords(capture->take()).launches(), 200u);
  };
  for (int round = 0; round < 50; ++round) one_round();
  const std::size_t before_kib = resident_kib();
  for (int round = 0; round < 1'000; ++round) one_round();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident_kib(), before_kib + 2'048);
#else
  static_cast<void>(before_kib);
#endif
}

TEST(LiveCaptureTest, MemoryGoesBackWhenNobodyCaptures) {
  std::size_t full_kib = 0;
  {
    const auto capture = begin();
    for (std::uint32_t sequence = 1; sequence <= 600'000; ++sequence) run(sequence);
    full_kib = resident_kib();
    std::size_t launches = 0;
    for (const RecordBuffer& buffer : capture->take()) {
      for_each_record(buffer.records(), [&](const RecordHeader& header) {
        launches += header.kind == static_cast<std::uint16_t>(RecordKind::operation_submitted) ? 1 : 0;
      });
    }
    EXPECT_EQ(launches, 600'000u);
  }
  EXPECT_LT(resident_kib() + 40'000, full_kib) << "70 MB of records";
}

}  // namespace
}  // namespace xpu::trace
