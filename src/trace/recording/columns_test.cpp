#include "trace/recording/columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "trace/recording/column_codec.hpp"
#include "trace/recording/column_schema.hpp"
#include "trace/recording/record_validator.hpp"

namespace xpu::trace {
namespace {

constexpr std::uint64_t kSeed = 20'260'101;

using Bytes = std::vector<std::byte>;

void append(Bytes& records, std::uint16_t kind, std::span<const std::byte> body) {
  const RecordHeader header{kind, static_cast<std::uint16_t>(sizeof(RecordHeader) + body.size()), 0};
  const auto bytes = std::as_bytes(std::span(&header, 1));
  records.insert(records.end(), bytes.begin(), bytes.end());
  records.insert(records.end(), body.begin(), body.end());
}

template <typename Record>
void append(Bytes& records, const Record& record) {
  const auto bytes = std::as_bytes(std::span(&record, 1));
  records.insert(records.end(), bytes.begin(), bytes.end());
}

// Numbers of the sorts that fields hold: constant, counting, noisy, jumping, anything.
class NumberMaker {
 public:
  explicit NumberMaker(std::mt19937_64& random) : random_(random), sort_(random() % 6), state_(random()) {}
  std::uint64_t next() {
    switch (sort_) {
      case 0: return 0;
      case 1: return state_;
      case 2: return ++state_;
      case 3: return state_ += 900 + random_() % 300;
      case 4: return random_() % 50 == 0 ? random_() : state_;
      default: return random_() >> (random_() % 64);
    }
  }

 private:
  std::mt19937_64& random_;
  std::uint64_t sort_;
  std::uint64_t state_;
};

// `count` records of a kind that is stored as columns, each of its fields of one sort.
Bytes random_records(const RecordSchema& schema, std::size_t count, std::mt19937_64& random) {
  std::vector<NumberMaker> fields;
  for (std::size_t column = 0; column < schema.columns.size(); ++column) fields.emplace_back(random);
  Bytes records(count * schema.bytes);
  for (std::size_t index = 0; index < count; ++index) {
    std::byte* record = records.data() + index * schema.bytes;
    const std::array<std::uint16_t, 2> header{static_cast<std::uint16_t>(schema.kind), schema.bytes};
    std::memcpy(record, header.data(), sizeof header);
    for (std::size_t column = 0; column < schema.columns.size(); ++column) {
      const std::uint64_t number = fields[column].next();
      std::memcpy(record + schema.columns[column].offset, &number, schema.columns[column].bytes);
    }
  }
  return records;
}

void expect_round_trip(std::uint16_t kind, const Bytes& records) {
  BlockEncoder encoder;
  Bytes stored;
  const BlockFacts facts = encoder.encode(kind, records, stored);
  EXPECT_EQ(facts.raw_bytes, records.size());
  BlockDecoder decoder;
  Bytes decoded;
  ASSERT_TRUE(decoder.decode(facts, stored, decoded)) << "kind " << kind;
  EXPECT_TRUE(decoded == records) << "kind " << kind << ", " << facts.records << " records";
}

TEST(ColumnsTest, EveryKindWithColumnsComesBackBitForBit) {
  std::mt19937_64 random(kSeed);
  for (const RecordSchema& schema : all_schemas()) {
    for (const std::size_t count : {1u, 7u, 8u, 9u, 255u, 257u, 1000u, 5000u}) {
      expect_round_trip(static_cast<std::uint16_t>(schema.kind), random_records(schema, count, random));
    }
  }
}

TEST(ColumnsTest, EveryKindOfRecordComesBackBitForBitWhateverItsSize) {
  std::mt19937_64 random(kSeed);
  for (std::uint16_t kind = 0; kind < 70; ++kind) {
    Bytes records;
    for (int record = 0; record < 200; ++record) {
      Bytes body(8 * (random() % 40));
      for (std::byte& byte : body) byte = static_cast<std::byte>(random() % 5);
      append(records, kind, body);
    }
    expect_round_trip(kind, records);
  }
}

TEST(ColumnsTest, RecordsLongerThanOurStructureAreStoredAsTheyAre) {
  Bytes records;
  for (std::uint64_t number = 0; number < 100; ++number) {
    append(records, static_cast<std::uint16_t>(RecordKind::operation_submitted), Bytes(sizeof(OperationSubmittedRecord)));
  }
  Bytes stored;
  EXPECT_NE(BlockEncoder().encode(static_cast<std::uint16_t>(RecordKind::operation_submitted), records, stored).encoding,
            BlockEncoding::columns);
  expect_round_trip(static_cast<std::uint16_t>(RecordKind::operation_submitted), records);
}

TEST(ColumnsTest, AFullBlockComesBack) {
  std::mt19937_64 random(kSeed);
  const RecordSchema* schema = find_schema(static_cast<std::uint16_t>(RecordKind::operation_completed));
  ASSERT_NE(schema, nullptr);
  expect_round_trip(static_cast<std::uint16_t>(RecordKind::operation_completed), random_records(*schema, kMaxBlockRecords, random));
}

// Launches of a few kernels on two queues, with the jitter of a real clock.
TEST(ColumnsTest, ALaunchTakesAtMostTwelveBytes) {
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> jitter(0, 1);
  const auto noisy = [&](double mean, double deviation) {
    return static_cast<std::uint64_t>(std::max(1.0, mean + deviation * jitter(random)));
  };
  Bytes submitted, completed;
  std::uint64_t now = 5'000'000'000'000, end_before = 0;
  constexpr std::size_t kLaunches = 8'700;
  for (std::uint64_t launch = 1; launch <= kLaunches; ++launch) {
    now += noisy(900, 80) + (launch % 64 == 0 ? noisy(12'000, 2'000) : 0);
    OperationSubmittedRecord start{};
    start.header = {static_cast<std::uint16_t>(RecordKind::operation_submitted), sizeof start, 1u << kCommandShift};
    start.operation = make_operation(1, launch);
    start.enter_ns = now;
    start.exit_ns = now + noisy(400, 40);
    start.queue = 1 + static_cast<std::uint32_t>(launch % 2);
    start.queue_sequence = static_cast<std::uint32_t>((launch + 1) / 2);
    start.what = 1 + static_cast<std::uint32_t>(launch % 7);
    start.geometry = start.what;
    start.thread = 1;
    start.api = 9;
    append(submitted, start);
    OperationCompletedRecord done{};
    done.header = {static_cast<std::uint16_t>(RecordKind::operation_completed), sizeof done, 0};
    done.operation = start.operation;
    done.queue = start.queue;
    done.queued = now + noisy(150, 15);
    done.submit = done.queued + noisy(250, 30);
    done.start = std::max(done.submit + noisy(200, 20), end_before + noisy(100, 10));
    done.end = done.start + noisy(1'500, 60);
    end_before = done.end;
    append(completed, done);
  }
  BlockEncoder encoder;
  Bytes stored;
  EXPECT_EQ(encoder.encode(static_cast<std::uint16_t>(RecordKind::operation_submitted), submitted, stored).encoding,
            BlockEncoding::columns);
  EXPECT_EQ(encoder.encode(static_cast<std::uint16_t>(RecordKind::operation_completed), completed, stored).encoding,
            BlockEncoding::columns);
  EXPECT_LE(static_cast<double>(stored.size()) / kLaunches, 12.0);
}

TEST(ColumnsTest, DamagedBlocksGiveWholeRecordsOrAnError) {
  std::mt19937_64 random(kSeed);
  BlockEncoder encoder;
  BlockDecoder decoder;
  Bytes decoded;
  int refused = 0;
  for (const RecordSchema& schema : all_schemas()) {
    const auto kind = static_cast<std::uint16_t>(schema.kind);
    Bytes stored;
    const BlockFacts facts = encoder.encode(kind, random_records(schema, 300, random), stored);
    for (int round = 0; round < 300; ++round) {
      Bytes damaged = stored;
      if (round % 3 == 0) damaged.resize(random() % damaged.size());
      for (std::size_t flips = random() % 4; flips != 0 && !damaged.empty(); --flips)
        damaged[random() % damaged.size()] ^= static_cast<std::byte>(1u << (random() % 8));
      BlockFacts claimed = facts;
      if (round % 5 == 0) claimed.records = static_cast<std::uint32_t>(random() % 100'000);
      if (round % 7 == 0) claimed.raw_bytes = static_cast<std::uint32_t>(random());
      if (round % 11 == 0) claimed.encoding = static_cast<BlockEncoding>(random() % 5);
      if (round % 13 == 0) claimed.kind = static_cast<std::uint16_t>(random() % 64);
      if (!decoder.decode(claimed, damaged, decoded)) {
        ++refused;
        EXPECT_TRUE(decoded.empty());
        continue;
      }
      EXPECT_EQ(decoded.size(), claimed.raw_bytes);
      std::uint32_t records = 0;
      for (std::size_t offset = 0; offset < decoded.size(); ++records) {
        RecordHeader header;
        ASSERT_LE(sizeof header, decoded.size() - offset);
        std::memcpy(&header, decoded.data() + offset, sizeof header);
        ASSERT_EQ(header.kind, claimed.kind);
        ASSERT_GE(header.size, sizeof header);
        offset += header.size;
      }
      EXPECT_EQ(records, claimed.records);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(ColumnsTest, AnInflatedBlockBeyondTheBoundsIsRefused) {
  BlockDecoder decoder;
  Bytes decoded;
  BlockFacts facts{static_cast<std::uint16_t>(RecordKind::api_call), BlockEncoding::columns, kMaxBlockRecords + 1,
                   (kMaxBlockRecords + 1) * 48};
  EXPECT_FALSE(decoder.decode(facts, Bytes(100), decoded));
  facts = {77, BlockEncoding::raw_deflated, 1, kMaxBlockBytes + 8};
  EXPECT_FALSE(decoder.decode(facts, Bytes(100), decoded));
}

std::vector<std::int64_t> through_a_column(const std::vector<std::int64_t>& numbers) {
  Bytes stored;
  ColumnEncoder().encode(numbers, stored);
  std::vector<std::int64_t> decoded(numbers.size());
  BlockReader in(stored);
  EXPECT_TRUE(ColumnDecoder().decode(in, decoded));
  EXPECT_TRUE(in.at_end());
  return decoded;
}

TEST(ColumnCodecTest, ExtremeNumbersComeBack) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min(), kHighest = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<std::int64_t>& numbers : {std::vector<std::int64_t>{},
                                                   {0},
                                                   {kLowest},
                                                   {kHighest},
                                                   {kLowest, kHighest},
                                                   {kHighest, kLowest, 0, -1, 1, kLowest},
                                                   {-1, -1, -1, kHighest, -1}}) {
    EXPECT_EQ(through_a_column(numbers), numbers);
  }
}

TEST(ColumnCodecTest, NumbersOfEveryWidthComeBack) {
  std::mt19937_64 random(kSeed);
  for (unsigned bits = 0; bits <= 64; ++bits) {
    std::vector<std::int64_t> numbers(3'000);
    const std::uint64_t base = random();
    for (std::int64_t& number : numbers) {
      const std::uint64_t low = bits == 0 ? 0 : random() >> (64 - bits);
      number = static_cast<std::int64_t>(random() % 100 == 0 ? random() : base + low);
    }
    EXPECT_EQ(through_a_column(numbers), numbers) << bits << " bits";
  }
}

TEST(ColumnCodecTest, AConstantColumnTakesAFewBytesHoweverLong) {
  Bytes stored;
  ColumnEncoder().encode(std::vector<std::int64_t>(60'000, 12'345), stored);
  EXPECT_LE(stored.size(), 6u);
}

TEST(ColumnCodecTest, APeriodIsFound) {
  std::mt19937_64 random(kSeed);
  std::vector<std::int64_t> period(97);
  for (std::int64_t& number : period) number = static_cast<std::int64_t>(random() % 200);
  std::vector<std::int64_t> numbers;
  for (std::size_t index = 0; index < 20'000; ++index) numbers.push_back(period[index % period.size()]);
  Bytes stored;
  ColumnEncoder().encode(numbers, stored);
  EXPECT_LE(stored.size(), 1'000u);
}

TEST(ColumnCodecTest, ReadingPastTheEndStaysFailed) {
  const Bytes unfinished(3, std::byte{0x80});
  BlockReader in(unfinished);
  EXPECT_EQ(in.varint(), 0u);
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.u8(), 0);
  EXPECT_TRUE(in.failed());
}

}  // namespace
}  // namespace xpu::trace
