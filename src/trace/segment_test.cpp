#include "trace/segment.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "trace/test_support/live_folder.hpp"

namespace xpu::trace {
namespace {

using test_support::LiveFolder;
using test_support::SegmentView;

constexpr std::uint64_t kMaxLive = std::uint64_t{64} << 20;

TEST(SegmentTest, ClaimingRenamesASpareAndSaysWhoHasIt) {
  const LiveFolder folder(4, 2);
  const Result<Segment*> segment = Segment::claim(folder.path(), kMaxLive, 0);
  ASSERT_TRUE(segment) << segment.error().message;
  EXPECT_EQ(folder.spare_count(), 1u);
  const SegmentView seen = folder.segment_of(static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(seen.header().pid, static_cast<std::uint64_t>(getpid()));
  EXPECT_GT(seen.header().start_ns, 0u);
  EXPECT_EQ(seen.header().domain, 1u);
  EXPECT_EQ(seen.header().state.load(), static_cast<std::uint32_t>(SegmentState::attached));
}

TEST(SegmentTest, WithoutASpareClaimingFailsWithASentence) {
  const LiveFolder folder(4, 0);
  const Result<Segment*> segment = Segment::claim(folder.path(), kMaxLive, 3);
  ASSERT_FALSE(segment);
  EXPECT_EQ(segment.error().code, ErrorCode::unavailable);
  EXPECT_NE(segment.error().message.find("no spare segment within 3 ms"), std::string::npos) << segment.error().message;
}

TEST(SegmentTest, ClaimingWaitsForASpareThatComesLate) {
  LiveFolder folder(4, 0);
  std::atomic<bool> waiting{false};
  std::thread recorder([&] {
    while (!waiting) std::this_thread::yield();
    folder.add_spare(4);
  });
  waiting = true;
  EXPECT_TRUE(Segment::claim(folder.path(), kMaxLive, 10'000));
  recorder.join();
}

TEST(SegmentTest, AFolderOrSegmentBehindALinkIsNotTouched) {
  const LiveFolder folder(4, 1);
  const std::string link = folder.path() + "-link";
  std::filesystem::create_directory_symlink(folder.path(), link);
  EXPECT_FALSE(Segment::claim(link, kMaxLive, 0));
  EXPECT_EQ(folder.spare_count(), 1u);

  std::filesystem::rename(folder.path() + "/spare-0.seg", folder.path() + "/elsewhere");
  std::filesystem::create_symlink(folder.path() + "/elsewhere", folder.path() + "/spare-1.seg");
  EXPECT_FALSE(Segment::claim(folder.path(), kMaxLive, 0));
}

TEST(SegmentTest, AForeignOrShortFileIsRefused) {
  const LiveFolder folder(4, 0);
  std::ofstream(folder.path() + "/spare-0.seg") << std::string(segment_bytes(1), 'x');
  const Result<Segment*> foreign = Segment::claim(folder.path(), kMaxLive, 0);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::invalid_argument);

  std::ofstream(folder.path() + "/spare-1.seg") << "short";
  EXPECT_FALSE(Segment::claim(folder.path(), kMaxLive, 0));
}

TEST(SegmentTest, ChunksAreTakenOnceEachFromTheLowest) {
  const LiveFolder folder(3);
  Segment* segment = Segment::claim(folder.path(), kMaxLive, 0).value();
  const ChunkHeader* first = segment->take_chunk(1, 0, 100);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->magic, kChunkMagic);
  EXPECT_EQ(first->writer, 1u);
  EXPECT_EQ(first->first_ns, 100u);
  EXPECT_EQ(folder.segment().chunks_in_state(ChunkState::open), (std::vector<std::uint32_t>{0}));
  ASSERT_NE(segment->take_chunk(2, 0, 100), nullptr);
  ASSERT_NE(segment->take_chunk(2, 1, 100), nullptr);
  EXPECT_EQ(segment->take_chunk(2, 2, 100), nullptr);
  EXPECT_EQ(segment->header().chunks_taken.load(), 3u);

  // A recycled one is preferred to none, and its old contents are gone.
  folder.segment().chunk(1).state = static_cast<std::uint32_t>(ChunkState::free);
  folder.segment().chunk(1).committed = 64;
  const ChunkHeader* again = segment->take_chunk(3, 7, 200);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->committed.load(), 0u);
  EXPECT_EQ(again->sequence, 7u);
}

TEST(SegmentTest, ChunksThatTheRecorderAddsLaterAreFound) {
  const LiveFolder folder(1);
  Segment* segment = Segment::claim(folder.path(), kMaxLive, 0).value();
  ASSERT_NE(segment->take_chunk(1, 0, 1), nullptr);
  ASSERT_EQ(segment->take_chunk(1, 1, 1), nullptr);
  folder.segment().grow(2);
  ChunkHeader* added = segment->take_chunk(1, 1, 1);
  ASSERT_NE(added, nullptr);
  std::memset(static_cast<void*>(added + 1), 1, kChunkBytes - sizeof *added);  // its pages exist
}

TEST(SegmentTest, ManyThreadsNeverShareAChunk) {
  constexpr std::uint32_t kChunks = 64;
  const LiveFolder folder(kChunks);
  Segment* segment = Segment::claim(folder.path(), kMaxLive, 0).value();
  std::vector<std::vector<ChunkHeader*>> taken(8);
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < taken.size(); ++thread) {
    threads.emplace_back([&, thread] {
      while (ChunkHeader* chunk = segment->take_chunk(thread, 0, 1)) taken[thread].push_back(chunk);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<ChunkHeader*> all;
  std::size_t total = 0;
  for (const auto& chunks : taken) {
    all.insert(chunks.begin(), chunks.end());
    total += chunks.size();
  }
  EXPECT_EQ(total, kChunks);
  EXPECT_EQ(all.size(), kChunks);
}

TEST(SegmentTest, ClosedIsNotReachedFromOff) {
  const LiveFolder folder(1);
  Segment* segment = Segment::claim(folder.path(), kMaxLive, 0).value();
  segment->switch_off(OffReason::internal_error);
  segment->close();
  EXPECT_TRUE(segment->is_off());
  EXPECT_EQ(segment->header().off_reason.load(), static_cast<std::uint32_t>(OffReason::internal_error));
}

}  // namespace
}  // namespace xpu::trace
