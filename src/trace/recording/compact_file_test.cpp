#include "trace/recording/compact_file.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "trace/recording/storage.hpp"

namespace xpu::trace {
namespace {

constexpr std::uint16_t kCalls = static_cast<std::uint16_t>(RecordKind::api_call);
constexpr std::uint16_t kTexts = static_cast<std::uint16_t>(RecordKind::string);

using Bytes = std::vector<std::byte>;

// A batch of process 41 and 42 with `number` in every record.
CompactBatch make_batch(std::uint32_t number, BlockEncoder& encoder) {
  CompactBatch batch;
  for (const std::uint64_t pid : {41u, 42u}) {
    CompactProcess process;
    process.info.pid = pid;
    process.info.start_ns = 1'000 + pid;
    process.info.writer_count = number;
    process.info.lost_before_any_chunk = number;
    process.info.state = number == 0 ? SegmentState::attached : SegmentState::closed;
    process.chunks_filtered = 10 * number;
    process.unread_bytes = number;
    batch.processes.push_back(process);
    const auto index = static_cast<std::uint32_t>(batch.processes.size() - 1);
    batch.chunks.push_back({index, 3, number});

    Bytes calls;
    for (std::uint64_t call = 0; call < 500; ++call) {
      ApiCallRecord record{};
      record.header = {kCalls, sizeof record, 0};
      record.enter_ns = call * 1'000;
      record.operation = number;
      record.thread = static_cast<std::uint32_t>(pid);
      const auto bytes = std::as_bytes(std::span(&record, 1));
      calls.insert(calls.end(), bytes.begin(), bytes.end());
    }
    batch.add(index, kCalls, calls, encoder);
    StringRecord text{};
    text.header = {kTexts, sizeof text, 0};
    text.id = number;
    batch.add(index, kTexts, std::as_bytes(std::span(&text, 1)), encoder);
  }
  return batch;
}

class CompactFileTest : public ::testing::Test {
 protected:
  CompactFileTest() : fd_(::memfd_create("compact", MFD_CLOEXEC)) { EXPECT_TRUE(writer_.start(::dup(fd_.get()))); }

  void append(std::uint32_t batches) {
    for (std::uint32_t number = 0; number < batches; ++number) {
      const Result<> appended = writer_.append(make_batch(number, encoder_));
      ASSERT_TRUE(appended) << appended.error().message;
      ends_.push_back(writer_.bytes());
    }
  }
  Bytes contents() const {
    Bytes bytes(static_cast<std::size_t>(::lseek(fd_.get(), 0, SEEK_END)));
    EXPECT_TRUE(read_all_at(fd_.get(), bytes, 0));
    return bytes;
  }

  UniqueFd fd_;
  CompactWriter writer_;
  BlockEncoder encoder_;
  std::vector<std::uint64_t> ends_;  // of each batch
};

// How often each batch's number is in the records of `kind`.
std::map<std::uint64_t, int> numbers_in(const CompactFile& file, std::uint16_t kind) {
  std::map<std::uint64_t, int> numbers;
  BlockDecoder decoder;
  Bytes records;
  for (const CompactSection& section : file.sections()) {
    if (section.facts.kind != kind) continue;
    const Result<> read = file.read(section, decoder, records);
    EXPECT_TRUE(read) << read.error().message;
    for_each_record(std::span<const std::byte>(records), [&](const RecordHeader& header) {
      if (kind == kCalls) {
        const auto& call = reinterpret_cast<const ApiCallRecord&>(header);
        EXPECT_EQ(call.thread, file.processes()[section.process].info.pid);
        ++numbers[call.operation];
      } else {
        ++numbers[reinterpret_cast<const StringRecord&>(header).id];
      }
    });
  }
  return numbers;
}

std::map<std::uint64_t, int> each(std::uint32_t batches, int times) {
  std::map<std::uint64_t, int> numbers;
  for (std::uint32_t number = 0; number < batches; ++number) numbers[number] = times;
  return numbers;
}

TEST_F(CompactFileTest, AnUnfinishedFileGivesItsBatchesAndTheirChunks) {
  append(5);
  const Result<CompactFile> file = CompactFile::from_bytes(contents());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->finished());
  EXPECT_EQ(file->damage(), "");
  EXPECT_EQ(file->manifest(), "");
  EXPECT_EQ(numbers_in(*file, kCalls), each(5, 1'000));
  EXPECT_EQ(numbers_in(*file, kTexts), each(5, 2));
  ASSERT_EQ(file->consumed_chunks().size(), 10u);
  EXPECT_TRUE(std::is_sorted(file->consumed_chunks().begin(), file->consumed_chunks().end()));
  EXPECT_EQ(file->consumed_chunks().front(), (ChunkKey{41, 1'041, 3, 0}));
  EXPECT_EQ(file->consumed_chunks().back(), (ChunkKey{42, 1'042, 3, 4}));
}

TEST_F(CompactFileTest, OfAProcessTheNewestFactsCount) {
  append(3);
  const Result<CompactFile> file = CompactFile::from_bytes(contents());
  ASSERT_TRUE(file);
  ASSERT_EQ(file->processes().size(), 2u);
  for (const CompactProcess& process : file->processes()) {
    EXPECT_EQ(process.info.start_ns, 1'000 + process.info.pid);
    EXPECT_EQ(process.info.state, SegmentState::closed);
    EXPECT_EQ(process.info.writer_count, 2u);
    EXPECT_EQ(process.info.lost_before_any_chunk, 2u);
    EXPECT_EQ(process.chunks_filtered, 20u);
    EXPECT_EQ(process.unread_bytes, 2u);
  }
}

TEST_F(CompactFileTest, AFinishedFileGivesTheSameAndItsManifest) {
  append(5);
  ASSERT_TRUE(writer_.finish("{\"a\": 1}"));
  const Result<CompactFile> file = CompactFile::open(::dup(fd_.get()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->finished());
  EXPECT_EQ(file->damage(), "");
  EXPECT_EQ(file->manifest(), "{\"a\": 1}");
  EXPECT_EQ(numbers_in(*file, kCalls), each(5, 1'000));
  EXPECT_EQ(file->consumed_chunks().size(), 10u);
  EXPECT_EQ(file->processes().size(), 2u);
  EXPECT_EQ(file->file_bytes(), writer_.bytes());
}

TEST_F(CompactFileTest, ATruncatedFileKeepsEveryBatchBeforeTheCut) {
  append(6);
  ASSERT_TRUE(writer_.finish("{}"));
  const Bytes whole = contents();
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::size_t length = 16 + random() % (whole.size() - 16);
    const Result<CompactFile> file = CompactFile::from_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->finished());
    const auto kept =
        static_cast<std::uint32_t>(std::count_if(ends_.begin(), ends_.end(), [&](std::uint64_t end) { return end <= length; }));
    EXPECT_EQ(numbers_in(*file, kCalls), each(kept, 1'000)) << "cut at " << length;
    EXPECT_EQ(file->consumed_chunks().size(), 2 * kept);
    const bool between = length == 16 || std::find(ends_.begin(), ends_.end(), length) != ends_.end();
    EXPECT_EQ(file->damage().empty(), between) << file->damage();
  }
}

TEST_F(CompactFileTest, AFlippedBitInAFinishedFileCostsOneBlock) {
  append(6);
  ASSERT_TRUE(writer_.finish("{}"));
  const Result<CompactFile> intact = CompactFile::from_bytes(contents());
  ASSERT_TRUE(intact);
  const CompactSection victim = intact->sections()[4];
  Bytes damaged = contents();
  damaged[victim.offset + victim.stored_bytes / 2] ^= std::byte{4};
  const Result<CompactFile> file = CompactFile::from_bytes(std::move(damaged));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->finished());
  EXPECT_EQ(file->sections().size(), intact->sections().size() - 1);
  EXPECT_NE(file->damage().find("1 of 24 blocks"), std::string::npos) << file->damage();
}

TEST_F(CompactFileTest, WithoutItsTableAFileIsReadBatchByBatch) {
  append(6);
  ASSERT_TRUE(writer_.finish("{\"b\": 2}"));
  Bytes damaged = contents();
  damaged.back() ^= std::byte{1};
  const Result<CompactFile> file = CompactFile::from_bytes(std::move(damaged));
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->finished());
  EXPECT_EQ(file->manifest(), "{\"b\": 2}");
  EXPECT_EQ(numbers_in(*file, kCalls), each(6, 1'000));
}

TEST_F(CompactFileTest, ADamagedBatchHeaderCostsThatBatchAlone) {
  append(6);
  Bytes damaged = contents();
  damaged[ends_[1] + 9] ^= std::byte{1};
  const Result<CompactFile> file = CompactFile::from_bytes(std::move(damaged));
  ASSERT_TRUE(file);
  std::map<std::uint64_t, int> expected = each(6, 1'000);
  expected.erase(2);
  EXPECT_EQ(numbers_in(*file, kCalls), expected);
  EXPECT_EQ(file->consumed_chunks().size(), 10u);
  EXPECT_NE(file->damage().find("skipped"), std::string::npos) << file->damage();
}

TEST_F(CompactFileTest, TheLastBatchOfAnUnfinishedFileCountsWholeOrNotAtAll) {
  append(3);
  Bytes damaged = contents();
  damaged[damaged.size() - 20] ^= std::byte{1};
  const Result<CompactFile> file = CompactFile::from_bytes(std::move(damaged));
  ASSERT_TRUE(file);
  EXPECT_EQ(numbers_in(*file, kCalls), each(2, 1'000));
  EXPECT_EQ(file->consumed_chunks().size(), 4u);
}

TEST_F(CompactFileTest, DamageAnywhereNeverCrashesAndNeverInvents) {
  append(4);
  ASSERT_TRUE(writer_.finish("{}"));
  const Bytes whole = contents();
  std::mt19937_64 random(12);
  BlockDecoder decoder;
  Bytes records;
  for (int round = 0; round < 1'000; ++round) {
    Bytes damaged = whole;
    for (int change = 0; change < 4; ++change) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    const Result<CompactFile> file = CompactFile::from_bytes(std::move(damaged));
    if (!file) continue;
    EXPECT_LE(file->sections().size(), 16u);
    for (const CompactSection& section : file->sections()) EXPECT_TRUE(file->read(section, decoder, records));
  }
}

TEST_F(CompactFileTest, WhatIsNoRecordingIsRefused) {
  for (const std::size_t length : {0u, 5u, 16u, 100u}) {
    const Result<CompactFile> file = CompactFile::from_bytes(Bytes(length, std::byte{'x'}));
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::invalid_argument);
  }
  append(1);
  Bytes newer = contents();
  newer[8] = std::byte{2};
  const Result<CompactFile> file = CompactFile::from_bytes(std::move(newer));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::unsupported);
}

TEST_F(CompactFileTest, AFileThatShrinksUnderTheReaderIsAnError) {
  append(2);
  const Result<CompactFile> file = CompactFile::open(::dup(fd_.get()));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(fd_.get(), 20), 0);
  BlockDecoder decoder;
  Bytes records;
  EXPECT_FALSE(file->read(file->sections().back(), decoder, records));
  EXPECT_TRUE(records.empty());
}

// In a child: the limit cannot be raised again.
TEST_F(CompactFileTest, AtTheFileSizeLimitTheFileEndsWithAWholeBatchAndNobodyDies) {
  append(2);
  const std::uint64_t before = writer_.bytes();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{before + 100, before + 100};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    const Result<> refused = writer_.append(make_batch(2, encoder_));
    if (refused || refused.error().native_code != EFBIG || writer_.bytes() != before) ::_exit(2);
    ::_exit(::lseek(fd_.get(), 0, SEEK_END) == static_cast<off_t>(before) ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // The same batch, once there is room.
  ASSERT_TRUE(writer_.append(make_batch(2, encoder_)));
  const Result<CompactFile> file = CompactFile::open(::dup(fd_.get()));
  ASSERT_TRUE(file);
  EXPECT_EQ(numbers_in(*file, kCalls), each(3, 1'000));
}

}  // namespace
}  // namespace xpu::trace
