// What the ring of a flight recorder keeps and drops, with records and times of our own.

#include "profiler/session/flight_ring.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/probe.hpp"

namespace xpu::profiler {
namespace {

using trace::RecordKind;

constexpr std::uint64_t kRingSecond = 1'000'000'000;

/// Records as a thread would write them.
class RingRecords {
 public:
  RingRecords& submit(std::uint64_t operation, std::uint32_t queue = 1, std::uint32_t kernel = 7) {
    trace::OperationSubmittedRecord record{};
    record.operation = operation;
    record.enter_ns = operation;
    record.queue = queue;
    record.queue_sequence = static_cast<std::uint32_t>(operation);
    record.what = kernel;
    return add(RecordKind::operation_submitted, record);
  }
  RingRecords& complete(std::uint64_t operation, std::uint32_t queue = 1) {
    trace::OperationCompletedRecord record{};
    record.operation = operation;
    record.queue = queue;
    return add(RecordKind::operation_completed, record);
  }
  RingRecords& lose_ends(std::uint64_t first, std::uint64_t last) {
    trace::LossRecord record{};
    record.first_operation = first;
    record.last_operation = last;
    record.count = 1;
    record.queue = 1;
    return add(RecordKind::loss, record, trace::kFlagCompletionLost);
  }
  RingRecords& describe_kernel(std::uint32_t id, std::uint32_t name = 1) {
    trace::KernelRecord record{};
    record.what = id;
    record.name = name;
    return add(RecordKind::kernel, record);
  }
  RingRecords& end_kernel(std::uint32_t id) {
    trace::ObjectEndRecord record{};
    record.kind = static_cast<std::uint32_t>(probe::ObjectKind::kernel);
    record.id = id;
    return add(RecordKind::object_end, record);
  }
  RingRecords& read_clock(std::uint64_t ticks) {
    trace::ClockReadingRecord record{};
    record.device = 3;
    record.device_ticks = ticks;
    return add(RecordKind::clock_reading, record);
  }
  RingRecords& name_queue(std::uint32_t text) {
    trace::AnnotationRecord record{};
    record.range = 99;
    record.text = text;
    return add(RecordKind::annotation, record, static_cast<std::uint32_t>(probe::AnnotationType::name_queue));
  }
  void into(FlightRing& ring, std::uint64_t now_ns) {
    const ActivityBuffer buffer(std::move(bytes_));
    bytes_ = {};
    ring.add({&buffer, 1}, now_ns);
  }

 private:
  template <typename Record>
  RingRecords& add(RecordKind kind, Record record, std::uint32_t flags = 0) {
    record.header = {static_cast<std::uint16_t>(kind), sizeof record, flags};
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof record);
    return *this;
  }
  std::vector<std::byte> bytes_;
};

template <typename Record>
std::vector<Record> records_in(const FlightRing& ring, RecordKind kind) {
  std::vector<Record> records;
  for (const ActivityBuffer& buffer : ring.contents()) {
    trace::for_each_record(buffer.records(), [&](const trace::RecordHeader& header) {
      if (header.kind == static_cast<std::uint16_t>(kind)) records.push_back(reinterpret_cast<const Record&>(header));
    });
  }
  return records;
}
std::multiset<std::uint64_t> submitted_in(const FlightRing& ring) {
  std::multiset<std::uint64_t> operations;
  for (const auto& record : records_in<trace::OperationSubmittedRecord>(ring, RecordKind::operation_submitted))
    operations.insert(record.operation);
  return operations;
}

TEST(FlightRingTest, KeepsTheLastSecondsAndCountsWhatItDrops) {
  FlightRing ring(10 * kRingSecond, 1 << 20);
  for (std::uint64_t second = 1; second <= 100; ++second) RingRecords().submit(second).complete(second).into(ring, second * kRingSecond);
  EXPECT_EQ(submitted_in(ring), (std::multiset<std::uint64_t>{90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100}));
  EXPECT_EQ(ring.counts().submitted, 100u);
  EXPECT_EQ(ring.counts().dropped, 89u);
  EXPECT_EQ(ring.counts().dropped_bytes, 89u * (64 + 56));
  EXPECT_EQ(ring.counts().kept_bytes, 11u * (64 + 56));
  EXPECT_EQ(ring.counts().dropped_for_room_bytes, 0u);
  EXPECT_EQ(ring.oldest_ns(), 90 * kRingSecond);
  ring.add({}, 200 * kRingSecond);
  EXPECT_TRUE(submitted_in(ring).empty()) << "time goes by without records, too";
  EXPECT_EQ(ring.counts().kept_bytes, 0u);
}

TEST(FlightRingTest, NeverHoldsMoreThanItMay) {
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  FlightRing ring(1'000 * kRingSecond, kMaxBytes);
  std::uint64_t operation = 0;
  for (int round = 0; round < 40; ++round) {
    RingRecords records;
    for (int launch = 0; launch < 5'000; ++launch, ++operation) records.submit(operation + 1).complete(operation + 1);
    records.into(ring, kRingSecond);
    ASSERT_LE(ring.counts().kept_bytes, kMaxBytes);
  }
  EXPECT_GT(ring.counts().kept_bytes, kMaxBytes / 2);
  EXPECT_EQ(ring.counts().dropped_for_room_bytes, ring.counts().dropped_bytes);
  EXPECT_EQ(ring.counts().dropped + submitted_in(ring).size(), operation);
  EXPECT_EQ(*submitted_in(ring).rbegin(), operation) << "the newest is what is kept";
  EXPECT_EQ(ring.pending().size(), 0u);
}

TEST(FlightRingTest, OneDescriptionOfEachThingStaysHoweverOftenItIsSaid) {
  FlightRing ring(kRingSecond, 1 << 20);
  for (std::uint64_t second = 1; second <= 1'000; ++second)
    RingRecords()
        .describe_kernel(7, static_cast<std::uint32_t>(second))
        .name_queue(static_cast<std::uint32_t>(second))
        .into(ring, second * kRingSecond);
  const auto kernels = records_in<trace::KernelRecord>(ring, RecordKind::kernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, 1'000u) << "the newest";
  EXPECT_EQ(ring.counts().description_bytes, sizeof(trace::KernelRecord) + sizeof(trace::AnnotationRecord));
  EXPECT_EQ(records_in<trace::AnnotationRecord>(ring, RecordKind::annotation).at(0).text, 1'000u)
      << "the name of a queue is said once, too";
}

TEST(FlightRingTest, ThingsThatEndedAreForgottenOnceNothingRefersToThem) {
  FlightRing ring(10 * kRingSecond, 1 << 20);
  RingRecords().describe_kernel(7).submit(1).end_kernel(7).into(ring, kRingSecond);
  RingRecords().describe_kernel(8).submit(2, 1, 8).complete(2).end_kernel(8).into(ring, kRingSecond);
  ring.add({}, 5 * kRingSecond);
  EXPECT_EQ(records_in<trace::KernelRecord>(ring, RecordKind::kernel).size(), 2u);
  RingRecords().submit(3, 1, 9).into(ring, 50 * kRingSecond);
  EXPECT_NE(ring.find<trace::KernelRecord>(RecordKind::kernel, 7), nullptr) << "released, and it still runs";
  EXPECT_EQ(ring.find<trace::KernelRecord>(RecordKind::kernel, 8), nullptr);
  RingRecords().complete(1).into(ring, 51 * kRingSecond);
  ring.add({}, 100 * kRingSecond);
  EXPECT_EQ(ring.find<trace::KernelRecord>(RecordKind::kernel, 7), nullptr);
  EXPECT_EQ(ring.counts().description_bytes, 0u);
}

TEST(FlightRingTest, WhatIsPendingStaysHoweverOldItIs) {
  FlightRing ring(kRingSecond, 1 << 20);
  RingRecords().submit(1).submit(2).complete(2).into(ring, kRingSecond);
  ring.add({}, 100 * kRingSecond);
  EXPECT_EQ(submitted_in(ring), (std::multiset<std::uint64_t>{1}));
  // And when it ends, its end is not alone.
  RingRecords().complete(1).into(ring, 101 * kRingSecond);
  EXPECT_EQ(submitted_in(ring), (std::multiset<std::uint64_t>{1}));
  EXPECT_EQ(records_in<trace::OperationCompletedRecord>(ring, RecordKind::operation_completed).size(), 1u);
  EXPECT_EQ(ring.pending().size(), 0u);
}

TEST(FlightRingTest, ADeviceKeepsOneClockReadingFromBeforeWhatIsKept) {
  FlightRing ring(10 * kRingSecond, 1 << 20);
  for (std::uint64_t second = 1; second <= 30; ++second) RingRecords().read_clock(second).into(ring, second * kRingSecond);
  std::multiset<std::uint64_t> ticks;
  for (const auto& record : records_in<trace::ClockReadingRecord>(ring, RecordKind::clock_reading)) ticks.insert(record.device_ticks);
  EXPECT_EQ(ticks, (std::multiset<std::uint64_t>{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}));
}

TEST(FlightRingTest, QueuesKnowTheirOldestCommandInAnyOrderOfRecords) {
  FlightRing ring(10 * kRingSecond, 1 << 20);
  RingRecords().complete(5).into(ring, kRingSecond);  // its submission is read later
  RingRecords().submit(5).submit(7).submit(6).submit(9, 2).into(ring, kRingSecond);
  const auto queues = ring.pending().queues();
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues.at(1).pending, 2u);
  EXPECT_EQ(queues.at(1).ended, 1u);
  EXPECT_EQ(queues.at(1).last_end_ns, kRingSecond);
  ASSERT_NE(queues.at(1).oldest, nullptr);
  EXPECT_EQ(queues.at(1).oldest->submission.operation, 6u);
  EXPECT_EQ(queues.at(2).pending, 1u);
  EXPECT_EQ(queues.at(2).last_end_ns, 0u);
}

TEST(FlightRingTest, WhoseEndWasDroppedIsNotWaitedFor) {
  FlightRing ring(10 * kRingSecond, 1 << 20);
  RingRecords().submit(1).submit(2).submit(3).lose_ends(2, 2).into(ring, kRingSecond);
  EXPECT_EQ(ring.pending().size(), 2u);
  RingRecords().lose_ends(4, 6).submit(5).submit(7).into(ring, kRingSecond);
  EXPECT_EQ(ring.pending().size(), 3u);
  EXPECT_EQ(ring.counts().lost, 2u);
}

TEST(FlightRingTest, CommandsThatNeverEndTakeBoundedMemory) {
  FlightRing ring(kRingSecond, 1 << 20);
  constexpr std::uint64_t kLaunches = PendingOperations::kMostTracked + 1'000;
  for (std::uint64_t operation = 1; operation <= kLaunches; ++operation) RingRecords().submit(operation).into(ring, kRingSecond);
  EXPECT_EQ(ring.pending().size(), PendingOperations::kMostTracked);
  EXPECT_EQ(ring.pending().untracked(), 1'000u);
}

TEST(FlightRingTest, WhatWasReadFromItDoesNotChange) {
  FlightRing ring(kRingSecond, 1 << 20);
  RingRecords().submit(1).into(ring, kRingSecond);
  const std::vector<ActivityBuffer> contents = ring.contents();
  ring.add({}, 100 * kRingSecond);
  std::size_t submissions = 0;
  for (const ActivityBuffer& buffer : contents) {
    trace::for_each_record(buffer.records(), [&](const trace::RecordHeader& header) {
      if (header.kind == static_cast<std::uint16_t>(RecordKind::operation_submitted)) ++submissions;
    });
  }
  EXPECT_EQ(submissions, 1u);
}

}  // namespace
}  // namespace xpu::profiler
