#include "profiler/sinks/file_output.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace xpu::profiler {
namespace {

namespace fs = std::filesystem;

class FileOutputTest : public testing::Test {
 protected:
  FileOutputTest() {
    std::string pattern = (fs::temp_directory_path() / "xpu_file_output_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileOutputTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator())); }
  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(FileOutputTest, ShowsTheFileOnlyWhenItIsComplete) {
  auto file = FileOutput::create(path("a.json"));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write("hello"));
  EXPECT_FALSE(fs::exists(path("a.json")));
  const auto bytes = (*file)->finish();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, 5u);
  EXPECT_EQ(contents(path("a.json")), "hello");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileOutputTest, LeavesNothingBehindWhenItIsGivenUp) {
  {
    auto file = FileOutput::create(path("a.json"));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write("half"));
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(FileOutputTest, KeepsAnOlderFileWhenItIsGivenUp) {
  std::ofstream(path("a.json")) << "old";
  {
    auto file = FileOutput::create(path("a.json"));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write("new"));
  }
  EXPECT_EQ(contents(path("a.json")), "old");
}

TEST_F(FileOutputTest, CompressesByName) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "line " + std::to_string(i % 100) + '\n';
  auto file = FileOutput::create(path("a.json.gz"));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(std::string_view(text).substr(0, 1'000)));
  ASSERT_TRUE((*file)->write(std::string_view(text).substr(1'000)));
  const auto bytes = (*file)->finish();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, fs::file_size(path("a.json.gz")));
  EXPECT_LT(*bytes, text.size() / 10);

  std::string unpacked(text.size() + 1, '\0');
  gzFile in = gzopen(path("a.json.gz").c_str(), "rb");
  ASSERT_NE(in, nullptr);
  const int got = gzread(in, unpacked.data(), static_cast<unsigned>(unpacked.size()));
  gzclose(in);
  ASSERT_EQ(got, static_cast<int>(text.size()));
  unpacked.resize(text.size());
  EXPECT_EQ(unpacked, text);
}

TEST_F(FileOutputTest, AFlushShowsWhatWasWrittenAndThePartStaysWhereItIsWanted) {
  for (const char* name : {"a.json", "a.json.gz"}) {
    {
      auto file = FileOutput::create(path(name));
      ASSERT_TRUE(file);
      (*file)->keep_part(true);
      ASSERT_TRUE((*file)->write("hello"));
      ASSERT_TRUE((*file)->flush());
      ASSERT_TRUE((*file)->flush()) << "with nothing new";
      char shown[16] = {};
      gzFile in = gzopen((*file)->temporary_path().c_str(), "rb");
      ASSERT_NE(in, nullptr);
      EXPECT_EQ(gzread(in, shown, sizeof shown), 5);
      gzclose(in);
      EXPECT_STREQ(shown, "hello");
      EXPECT_EQ((*file)->bytes(), fs::file_size((*file)->temporary_path()));
    }
    EXPECT_TRUE(fs::exists(path(name) + ".tmp"));
    EXPECT_FALSE(fs::exists(path(name)));
  }
}

TEST_F(FileOutputTest, NamesTheFileAndTheReasonWhenItCannotBeMade) {
  const auto file = FileOutput::create(path("no/such/folder.json"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::unavailable);
  EXPECT_NE(file.error().message.find("no/such/folder.json"), std::string::npos);
  EXPECT_NE(file.error().message.find("No such file or directory"), std::string::npos);
}

TEST_F(FileOutputTest, DoesNotWriteThroughALinkThatSomebodyPutThere) {
  std::ofstream(path("victim")) << "precious";
  fs::create_symlink(path("victim"), path("a.json.tmp"));
  auto file = FileOutput::create(path("a.json"));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write("new"));
  ASSERT_TRUE((*file)->finish());
  EXPECT_EQ(contents(path("victim")), "precious");
  EXPECT_EQ(contents(path("a.json")), "new");
}

/// The file-size limit of this process, lowered for a while: a full disk that needs no privileges.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit lowered{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &lowered);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST_F(FileOutputTest, ReportsAFullDiskAndLeavesNoFile) {
  for (const char* name : {"a.json", "a.json.gz"}) {
    const FileSizeLimit limit(4'096);
    auto file = FileOutput::create(path(name));
    ASSERT_TRUE(file);
    std::string noise(1'000'000, '\0');
    std::uint32_t state = 1;
    for (char& byte : noise) byte = static_cast<char>((state = state * 1'664'525u + 1'013'904'223u) >> 24);
    Result<> written = (*file)->write(noise);
    if (written) {
      const auto finished = (*file)->finish();
      ASSERT_FALSE(finished);
      written = finished.error();
    }
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_NE(written.error().message.find("File too large"), std::string::npos) << written.error().message;
    file->reset();
    EXPECT_EQ(files(), 0u);
  }
}

}  // namespace
}  // namespace xpu::profiler
