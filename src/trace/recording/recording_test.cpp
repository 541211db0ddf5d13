#include "xpu/trace/recording/recording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/recording_builder.hpp"
#include "trace/recording/manifest.hpp"

namespace xpu::trace {
namespace {

using test_support::read_bytes;
using test_support::RecordingBuilder;
using test_support::submission;
using test_support::write_bytes;
using ::testing::HasSubstr;

// Which operations came from which process, and how many records of each kind.
struct Seen {
  std::map<std::pair<std::size_t, std::uint64_t>, int> submissions;
  std::map<std::uint16_t, int> kinds;
  std::vector<std::string> texts;
};

Seen see(const Recording& recording, std::span<const RecordKind> kinds = {}) {
  Seen seen;
  const auto visit = [&](std::size_t process, std::span<const std::byte> records) {
    EXPECT_LT(process, recording.processes().size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(records.data()) % 8, 0u);
    std::size_t bytes = 0;
    for_each_record(records, [&](const RecordHeader& header) {
      bytes += header.size;
      ++seen.kinds[header.kind];
      if (header.kind == static_cast<std::uint16_t>(RecordKind::operation_submitted)) {
        ++seen.submissions[{process, reinterpret_cast<const OperationSubmittedRecord&>(header).operation}];
      }
      if (header.kind == static_cast<std::uint16_t>(RecordKind::string)) {
        const auto& text = reinterpret_cast<const StringRecord&>(header);
        seen.texts.emplace_back(reinterpret_cast<const char*>(&text + 1), text.bytes);
      }
    });
    EXPECT_EQ(bytes, records.size()) << "a batch holds nothing but whole records";
  };
  EXPECT_TRUE(recording.for_each_batch(kinds, visit));
  return seen;
}

class RecordingTest : public ::testing::Test {
 protected:
  RecordingTest() {
    for (std::uint64_t pid : {41u, 42u}) {
      ProcessInfo info;
      info.pid = pid;
      info.start_ns = pid * 10;
      info.domain = ClockDomain::monotonic_raw;
      info.state = pid == 41 ? SegmentState::closed : SegmentState::attached;
      info.writer_count = 2;
      info.lost_before_any_chunk = pid;
      info.filtered = 7;
      builder_.add_process(info);
    }
    builder_.manifest.program = "./a.out";
    for (std::size_t process : {0u, 1u}) {
      builder_.add_string(process, 1, 9, "kernel of " + std::to_string(process));
      for (std::uint32_t number = 1; number <= kPerWriter; ++number) {
        for (std::uint32_t writer : {1u, 2u}) builder_.add(process, writer, submission(make_operation(writer, number), 1, number));
        if (number == kPerWriter / 2) builder_.next_chunk(process, 1);
      }
      builder_.count_filtered(process, 1, 100);
    }
  }

  Recording open(const std::string& path) {
    Result<Recording> recording = Recording::open(path);
    if (!recording) {
      ADD_FAILURE() << to_string(recording.error());
      std::abort();
    }
    return *std::move(recording);
  }
  std::string segment(const std::string& folder, std::size_t process) { return folder + "/" + builder_.segment_name(process); }

  void expect_everything(const Recording& recording) {
    EXPECT_EQ(recording.damage(), "");
    const Seen seen = see(recording);
    EXPECT_EQ(seen.submissions.size(), 4 * kPerWriter);
    for (const auto& [operation, times] : seen.submissions) EXPECT_EQ(times, 1) << operation.first << " " << operation.second;
    EXPECT_THAT(seen.texts, ::testing::UnorderedElementsAre("kernel of 0", "kernel of 1"));
    EXPECT_EQ(recording.damage(), "");
  }

  static constexpr std::uint32_t kPerWriter = 50;
  RecordingBuilder builder_;
  test_support::TemporaryFolder folder_;
};

TEST_F(RecordingTest, DeliversEveryRecordOfAFinishedFileOnce) {
  ASSERT_TRUE(builder_.write_file(folder_ / "a.xpu"));
  const Recording recording = open(folder_ / "a.xpu");
  EXPECT_TRUE(recording.finished());
  EXPECT_EQ(recording.path(), folder_ / "a.xpu");
  EXPECT_EQ(recording.file_bytes(), std::filesystem::file_size(folder_ / "a.xpu"));
  EXPECT_EQ(recording.manifest().program, "./a.out");
  ASSERT_EQ(recording.processes().size(), 2u);
  const ProcessInfo& info = recording.processes()[1];
  EXPECT_EQ(info.pid, 42u);
  EXPECT_EQ(info.start_ns, 420u);
  EXPECT_EQ(info.domain, ClockDomain::monotonic_raw);
  EXPECT_EQ(info.state, SegmentState::attached);
  EXPECT_EQ(info.writer_count, 2u);
  EXPECT_EQ(info.lost_before_any_chunk, 42u);
  EXPECT_EQ(info.filtered, 107u);
  expect_everything(recording);
  expect_everything(recording);  // as often as one likes
}

TEST_F(RecordingTest, DeliversEveryRecordOfALiveFolderOnceHoweverMuchIsCompacted) {
  for (const std::size_t compacted : {0u, 1u, 2u, 3u}) {
    const std::string path = folder_ / ("a" + std::to_string(compacted) + ".xpu.live");
    ASSERT_TRUE(builder_.write_folder(path, compacted));
    const Recording recording = open(path);
    EXPECT_FALSE(recording.finished());
    EXPECT_EQ(recording.manifest().program, "./a.out");
    ASSERT_EQ(recording.processes().size(), 2u);
    for (const ProcessInfo& info : recording.processes()) EXPECT_EQ(info.filtered, 107u) << compacted;
    EXPECT_EQ(recording.processes()[0].state, SegmentState::closed);
    EXPECT_EQ(recording.processes()[1].state, SegmentState::attached);
    expect_everything(recording);
  }
}

TEST_F(RecordingTest, ReadsAFolderWithNothingButSegments) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  std::filesystem::remove(path + "/compacted.part");
  expect_everything(open(path));
  std::filesystem::remove(path + "/manifest.json");
  EXPECT_THAT(open(path).damage(), HasSubstr("manifest.json is missing"));
}

TEST_F(RecordingTest, ReadsAFolderWhoseSegmentsAreGone) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path, 3));
  for (std::size_t process : {0u, 1u}) std::filesystem::remove(segment(path, process));
  const Recording recording = open(path);
  for (const ProcessInfo& info : recording.processes()) EXPECT_EQ(info.filtered, 107u);
  expect_everything(recording);
}

TEST_F(RecordingTest, DeliversOnlyTheKindsThatAreWantedFromACompactedFile) {
  ASSERT_TRUE(builder_.write_file(folder_ / "a.xpu"));
  const RecordKind kinds[] = {RecordKind::string, RecordKind::queue};
  const Seen seen = see(open(folder_ / "a.xpu"), kinds);
  EXPECT_EQ(seen.kinds.size(), 1u);
  EXPECT_EQ(seen.texts.size(), 2u);
}

TEST_F(RecordingTest, DeliversLossRecordsOfTheLossArea) {
  builder_.add_loss(1, 2, test_support::loss(1, 1, 33));
  ASSERT_TRUE(builder_.write_folder(folder_ / "a.xpu.live"));
  EXPECT_EQ(see(open(folder_ / "a.xpu.live")).kinds[static_cast<std::uint16_t>(RecordKind::loss)], 1);
}

TEST_F(RecordingTest, FindsARecordingByItsNameWithOrWithoutSuffix) {
  ASSERT_TRUE(builder_.write_folder(folder_ / "a.xpu.live"));
  for (const char* name : {"a", "a.xpu", "a.xpu.live", "a.xpu.live/"})
    EXPECT_EQ(open(folder_ / name).path(), folder_ / "a.xpu.live") << name;
  ASSERT_TRUE(builder_.write_file(folder_ / "a.xpu"));
  for (const char* name : {"a", "a.xpu"}) EXPECT_EQ(open(folder_ / name).path(), folder_ / "a.xpu") << name;
  std::filesystem::remove_all(folder_ / "a.xpu.live");
  EXPECT_EQ(open(folder_ / "a.xpu.live").path(), folder_ / "a.xpu") << "it was finished meanwhile";
}

TEST_F(RecordingTest, PassesOverAProgramOrAFolderOfTheSameName) {
  ASSERT_TRUE(builder_.write_file(folder_ / "a.xpu"));
  const std::string program = "\177ELF";
  write_bytes(folder_ / "a", std::as_bytes(std::span(program)));
  EXPECT_EQ(open(folder_ / "a").path(), folder_ / "a.xpu");
  std::filesystem::remove(folder_ / "a");
  std::filesystem::create_directory(folder_ / "a");
  EXPECT_EQ(open(folder_ / "a").path(), folder_ / "a.xpu");
}

TEST_F(RecordingTest, SaysWhichNamesItTried) {
  const Result<Recording> recording = Recording::open(folder_ / "nothing");
  ASSERT_FALSE(recording);
  EXPECT_EQ(recording.error().code, ErrorCode::not_found);
  EXPECT_THAT(recording.error().message, HasSubstr(folder_ / "nothing, "));
  EXPECT_THAT(recording.error().message, HasSubstr(folder_ / "nothing.xpu, "));
  EXPECT_THAT(recording.error().message, HasSubstr(folder_ / "nothing.xpu.live"));
}

TEST_F(RecordingTest, RefusesWhatIsNoRecording) {
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_EQ(Recording::open(folder_ / "folder").error().code, ErrorCode::invalid_argument);
  const std::string text = "something else, and not short enough to be cut off";
  write_bytes(folder_ / "text.xpu", std::as_bytes(std::span(text)));
  EXPECT_EQ(Recording::open(folder_ / "text.xpu").error().code, ErrorCode::invalid_argument);
  write_bytes(folder_ / "empty.xpu", {});
  EXPECT_EQ(Recording::open(folder_ / "empty.xpu").error().code, ErrorCode::invalid_argument);
  ASSERT_EQ(::mkfifo((folder_ / "pipe.xpu").c_str(), 0600), 0);
  EXPECT_EQ(Recording::open(folder_ / "pipe.xpu").error().code, ErrorCode::invalid_argument) << "and does not wait for a writer";
}

TEST_F(RecordingTest, LeavesSpareSegmentsAlone) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  builder_.process(0).state = SegmentState::spare;
  builder_.process(0).pid = 0;
  write_bytes(path + "/spare-0.seg", builder_.segment_bytes(0));
  write_bytes(path + "/9-9.seg", builder_.segment_bytes(0));  // claimed a moment ago
  builder_.process(0).pid = 41;
  expect_everything(open(path));
}

TEST_F(RecordingTest, DoesNotFollowLinksInsideTheFolder) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  std::filesystem::rename(segment(path, 0), folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", segment(path, 0));
  const Recording recording = open(path);
  EXPECT_EQ(recording.processes().size(), 1u);
  EXPECT_THAT(recording.damage(), HasSubstr(builder_.segment_name(0)));
}

TEST_F(RecordingTest, StopsAChunkAtTheFirstBadRecordAndSaysSo) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  std::vector<std::byte> bytes = builder_.segment_bytes(1);
  // Writer 2 of process 1 has the second chunk; its eleventh record gets a size of 12.
  const std::size_t record = chunk_offset(1) + kChunkHeaderBytes + 10 * sizeof(OperationSubmittedRecord);
  bytes[record + offsetof(RecordHeader, size)] = std::byte{12};
  write_bytes(segment(path, 1), bytes);
  const Recording recording = open(path);
  EXPECT_EQ(recording.damage(), "1 of 8 chunks hold bytes that are not records");
  EXPECT_EQ(see(recording).submissions.size(), 3 * kPerWriter + 10);
  EXPECT_EQ(recording.damage(), "1 of 8 chunks hold bytes that are not records");
}

TEST_F(RecordingTest, PassesOverChunksWhoseHeadersCannotBe) {
  const std::string path = folder_ / "a.xpu.live";
  struct Change {
    std::size_t offset;
    std::uint64_t value;
    std::size_t bytes;
  };
  for (const Change& change : {Change{offsetof(ChunkHeader, magic), 0, 4},
                               {offsetof(ChunkHeader, state), 9, 4},
                               {offsetof(ChunkHeader, committed), kChunkBytes, 8},
                               {offsetof(ChunkHeader, loss_count), 999, 4}}) {
    ASSERT_TRUE(builder_.write_folder(path));
    std::vector<std::byte> bytes = builder_.segment_bytes(0);
    std::memcpy(bytes.data() + chunk_offset(1) + change.offset, &change.value, change.bytes);
    write_bytes(segment(path, 0), bytes);
    const Recording recording = open(path);
    EXPECT_THAT(recording.damage(), HasSubstr("1 of 8 chunks")) << change.offset;
    EXPECT_EQ(see(recording).submissions.size(), 3 * kPerWriter) << change.offset;
  }
}

TEST_F(RecordingTest, LeavesOutBadLossRecords) {
  builder_.add_loss(0, 2, test_support::loss(1, 1, 33));
  auto bad = test_support::loss(1, 1, 44);
  bad.header.size = 48;
  builder_.add_loss(0, 2, bad);
  builder_.add_loss(0, 2, test_support::loss(2, 1, 55));
  ASSERT_TRUE(builder_.write_folder(folder_ / "a.xpu.live"));
  const Recording recording = open(folder_ / "a.xpu.live");
  EXPECT_THAT(recording.damage(), HasSubstr("1 of 8 chunks"));
  EXPECT_EQ(see(recording).kinds[static_cast<std::uint16_t>(RecordKind::loss)], 2);
}

TEST_F(RecordingTest, ReadsWhatIsLeftOfASegmentThatIsCutOff) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  // In the middle of the second chunk's tenth record.
  std::filesystem::resize_file(segment(path, 0), chunk_offset(1) + kChunkHeaderBytes + 9 * sizeof(OperationSubmittedRecord) + 20);
  const Recording recording = open(path);
  EXPECT_EQ(recording.damage(), "1 of 8 chunks hold bytes that are not records; 2 of 8 chunks are missing");
  // The first chunk of process 0 holds writer 1's first half, the second nine of writer 2.
  EXPECT_EQ(see(recording).submissions.size(), 2 * kPerWriter + kPerWriter / 2 + 9);

  std::filesystem::resize_file(segment(path, 0), 40);
  const Recording less = open(path);
  EXPECT_THAT(less.damage(), HasSubstr(builder_.segment_name(0) + " (the file is shorter than a segment's header)"));
  EXPECT_EQ(see(less).submissions.size(), 2 * kPerWriter);
}

TEST_F(RecordingTest, NamesSegmentsThatItCannotRead) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  for (const char* name : {"1-1.seg", "1-2.seg", "1-3.seg", "1-4.seg", "1-5.seg"})
    write_bytes(path + "/" + name, std::vector<std::byte>(8'192));
  std::vector<std::byte> newer = builder_.segment_bytes(0);
  newer[offsetof(SegmentHeader, format)] = std::byte{2};
  const Recording recording = open(path);
  EXPECT_EQ(recording.damage(),
            "could not read 1-1.seg (the file is not a segment), 1-2.seg (the file is not a segment), 1-3.seg (the file is not a segment) "
            "and 2 more");
  EXPECT_EQ(see(recording).submissions.size(), 4 * kPerWriter);

  write_bytes(path + "/1-1.seg", newer);
  EXPECT_THAT(open(path).damage(), HasSubstr("1-1.seg (the segment has format 2"));
  for (const char* name : {"1-1.seg", "1-2.seg", "1-3.seg", "1-4.seg", "1-5.seg"}) std::filesystem::remove(path + "/" + name);
  write_bytes(path + "/99-1.seg", builder_.segment_bytes(0));
  EXPECT_EQ(open(path).damage(), "could not read 99-1.seg (it repeats another process)");
}

TEST_F(RecordingTest, DescribesAManifestThatCannotBeRead) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  const std::string text = "{\"program\": ";
  write_bytes(path + "/manifest.json", std::as_bytes(std::span(text)));
  EXPECT_THAT(open(path).damage(), HasSubstr("the manifest could not be read"));
}

TEST_F(RecordingTest, ReadsSegmentsBesideACompactedFileThatCannotBeRead) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  const std::string text = "neither a compacted file nor empty";
  write_bytes(path + "/compacted.part", std::as_bytes(std::span(text)));
  const Recording recording = open(path);
  EXPECT_THAT(recording.damage(), HasSubstr("compacted.part could not be read"));
  EXPECT_EQ(see(recording).submissions.size(), 4 * kPerWriter);
}

TEST_F(RecordingTest, SaysWhatATruncatedFileLacks) {
  ASSERT_TRUE(builder_.write_file(folder_ / "a.xpu"));
  std::filesystem::resize_file(folder_ / "a.xpu", std::filesystem::file_size(folder_ / "a.xpu") - 1);
  const Recording recording = open(folder_ / "a.xpu");
  EXPECT_FALSE(recording.finished());
  EXPECT_THAT(recording.damage(), HasSubstr("the end of the file is missing"));
  EXPECT_EQ(see(recording).submissions.size(), 4 * kPerWriter) << "only the table was cut off";
}

TEST_F(RecordingTest, FollowsARecorderThatCompactsWhileItIsRead) {
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path));
  const Recording recording = open(path);
  expect_everything(recording);
  // The recorder takes everything in, recycles the chunks, and removes a segment whose process has ended.
  RecordingBuilder recycled;
  recycled.add_process(builder_.process(0));
  const std::string elsewhere = folder_ / "b.xpu.live";
  ASSERT_TRUE(builder_.write_folder(elsewhere, 3));
  std::filesystem::copy_file(elsewhere + "/compacted.part", path + "/compacted.part", std::filesystem::copy_options::overwrite_existing);
  write_bytes(segment(path, 0), recycled.segment_bytes(0));
  std::filesystem::remove(segment(path, 1));
  expect_everything(recording);
  // It is finished: renamed, and the folder gone.
  std::filesystem::rename(path + "/compacted.part", folder_ / "a.xpu");
  std::filesystem::remove_all(path);
  expect_everything(recording);
}

TEST_F(RecordingTest, FindsTheNewestByTheStartInTheManifest) {
  EXPECT_EQ(newest_recording(folder_.path()).error().code, ErrorCode::not_found);
  EXPECT_EQ(newest_recording(folder_ / "no such folder").error().code, ErrorCode::not_found);
  builder_.manifest.start_realtime_ns = 2'000;
  ASSERT_TRUE(builder_.write_file(folder_ / "middle.xpu"));
  builder_.manifest.start_realtime_ns = 3'000;
  ASSERT_TRUE(builder_.write_folder(folder_ / "newest.xpu.live"));
  builder_.manifest.start_realtime_ns = 1'000;
  ASSERT_TRUE(builder_.write_file(folder_ / "oldest.xpu"));  // written last
  write_bytes(folder_ / "broken.xpu", {});
  std::filesystem::create_directory(folder_ / "empty.xpu.live");
  const Result<std::string> newest = newest_recording(folder_.path());
  ASSERT_TRUE(newest);
  EXPECT_EQ(*newest, folder_ / "newest.xpu.live");
}

TEST_F(RecordingTest, SurvivesEveryTruncation) {
  ASSERT_TRUE(builder_.write_file(folder_ / "a.xpu"));
  const std::vector<std::byte> whole = read_bytes(folder_ / "a.xpu");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 13) {
    write_bytes(folder_ / "b.xpu", std::span(whole).first(bytes));
    const Result<Recording> recording = Recording::open(folder_ / "b.xpu");
    if (!recording) continue;
    EXPECT_FALSE(recording->finished());
    for (const auto& [operation, times] : see(*recording).submissions) EXPECT_EQ(times, 1);
  }
}

TEST_F(RecordingTest, SurvivesAnyByteBeingWrong) {
  std::mt19937 random(20'261);
  const std::string path = folder_ / "a.xpu.live";
  ASSERT_TRUE(builder_.write_folder(path, 1));
  const std::vector<std::string> names = {"compacted.part", "manifest.json", builder_.segment_name(0), builder_.segment_name(1)};
  for (const std::string& name : names) {
    const std::vector<std::byte> whole = read_bytes(path + "/" + name);
    for (int round = 0; round < 40; ++round) {
      std::vector<std::byte> bytes = whole;
      // Where something is: headers of the segment and of its chunks, and the first records.
      for (int change = 0; change < 3; ++change) {
        const std::size_t chunk = random() % 4;
        const std::size_t place = chunk == 3 ? random() % 256 : chunk_offset(static_cast<std::uint32_t>(chunk)) + random() % 2'048;
        bytes[place < bytes.size() ? place : random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
      }
      write_bytes(path + "/" + name, bytes);
      const Recording recording = open(path);
      see(recording);
    }
    write_bytes(path + "/" + name, whole);
  }
  expect_everything(open(path));
}

}  // namespace
}  // namespace xpu::trace
