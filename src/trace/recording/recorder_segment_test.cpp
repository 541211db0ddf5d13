#include "trace/recording/recorder_segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace xpu::trace {
namespace {

namespace fs = std::filesystem;

class RecorderSegmentTest : public ::testing::Test {
 protected:
  RecorderSegmentTest() {
    std::string pattern = (fs::temp_directory_path() / "xpu_segment_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    folder_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY));
  }
  ~RecorderSegmentTest() override { fs::remove_all(path_); }

  RecorderSegment create(std::uint32_t chunks) {
    Result<RecorderSegment> segment = RecorderSegment::create_spare(folder_.get(), 3, chunks, false);
    EXPECT_TRUE(segment) << segment.error().message;
    return *std::move(segment);
  }
  blkcnt_t blocks(const std::string& name) const {
    struct stat status{};
    EXPECT_EQ(::stat((path_ + "/" + name).c_str(), &status), 0);
    return status.st_blocks;
  }

  std::string path_;
  UniqueFd folder_;
};

ChunkState state_of(const ChunkHeader& chunk) { return static_cast<ChunkState>(chunk.state.load()); }

TEST_F(RecorderSegmentTest, IsFoundUnderTheNameThatAProgramGaveIt) {
  const RecorderSegment segment = create(4);
  EXPECT_EQ(segment.name(), "spare-3.seg");
  EXPECT_TRUE(segment.is_named(folder_.get(), "spare-3.seg"));
  EXPECT_FALSE(fs::exists(path_ + "/spare-3.new"));
  fs::rename(path_ + "/spare-3.seg", path_ + "/77-5.seg");
  std::ofstream(path_ + "/spare-3.seg") << "another file";
  EXPECT_FALSE(segment.is_named(folder_.get(), "spare-3.seg"));
  EXPECT_EQ(segment.find_name(folder_.get()), "77-5.seg");
  fs::remove(path_ + "/77-5.seg");
  EXPECT_EQ(segment.find_name(folder_.get()), "");
}

TEST_F(RecorderSegmentTest, GrowsWithReadyChunksAndKeepsTheOldOnes) {
  RecorderSegment segment = create(4);
  segment.chunk(1).committed.store(123);
  segment.chunk(1).state.store(static_cast<std::uint32_t>(ChunkState::full));
  EXPECT_EQ(segment.grow(60), 60u);
  EXPECT_EQ(segment.chunk_count(), 64u);
  EXPECT_EQ(segment.header().chunk_count.load(), 64u);
  EXPECT_EQ(segment.chunk(1).committed.load(), 123u);
  EXPECT_EQ(state_of(segment.chunk(1)), ChunkState::full);
  for (std::uint32_t index = 4; index < 64; ++index) {
    EXPECT_EQ(segment.chunk(index).magic, kChunkMagic);
    EXPECT_EQ(state_of(segment.chunk(index)), ChunkState::free);
  }
  EXPECT_GE(blocks("spare-3.seg") * 512, static_cast<blkcnt_t>(segment_bytes(64)));
}

// A program that is killed between taking a chunk and writing its own name there leaves what the recorder left.
TEST_F(RecorderSegmentTest, ARecycledChunkHoldsNothingBeforeItIsTaken) {
  RecorderSegment segment = create(4);
  ChunkHeader& chunk = segment.chunk(2);
  chunk.state.store(static_cast<std::uint32_t>(ChunkState::full));
  chunk.committed.store(640);
  chunk.loss_count.store(3);
  chunk.filtered.store(9);
  segment.recycle(2);
  EXPECT_EQ(state_of(chunk), ChunkState::free);
  EXPECT_EQ(chunk.committed.load(), 0u);
  EXPECT_EQ(chunk.loss_count.load(), 0u);
  EXPECT_EQ(chunk.filtered.load(), 0u);
}

TEST_F(RecorderSegmentTest, ReleasedStorageIsThatOfFreeAndDrainedChunksAlone) {
  RecorderSegment segment = create(8);
  std::byte* const records = reinterpret_cast<std::byte*>(&segment.chunk(5)) + 8'192;
  *records = std::byte{42};
  segment.chunk(5).state.store(static_cast<std::uint32_t>(ChunkState::full));
  segment.chunk(6).state.store(static_cast<std::uint32_t>(ChunkState::drained));
  const blkcnt_t before = blocks("spare-3.seg");
  EXPECT_TRUE(segment.release_storage());
  const blkcnt_t released = before - blocks("spare-3.seg");
  EXPECT_GE(released * 512, static_cast<blkcnt_t>(7 * (kChunkBytes - 8'192)));
  EXPECT_EQ(*records, std::byte{42});
  EXPECT_EQ(segment.chunk(0).magic, kChunkMagic);
  EXPECT_EQ(state_of(segment.chunk(6)), ChunkState::drained);
  EXPECT_FALSE(segment.release_storage()) << "once";
}

}  // namespace
}  // namespace xpu::trace
