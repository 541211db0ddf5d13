#include "cli/process_watch.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "xpu/base/clock.hpp"

namespace xpu::cli {
namespace {

using testing::Contains;

/// A file in the memory of this process, as a loader would put it there.
class MappedFile {
 public:
  MappedFile(const std::string& path, const std::string& contents) {
    std::ofstream(path) << contents;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    bytes_ = contents.size();
    address_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
  }
  ~MappedFile() { munmap(address_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

 private:
  void* address_;
  std::size_t bytes_;
};

class Watch : public testing::Test {
 protected:
  Watch() {
    std::string path = testing::TempDir() + "process_watch_XXXXXX";
    folder_ = std::filesystem::canonical(mkdtemp(path.data())).string();
  }
  ~Watch() override { std::filesystem::remove_all(folder_); }

  /// One look at this process.
  ImageSight look_at_ourselves(const std::string& layer = "/nowhere/layer.so") {
    ProcessWatch watch(getpid(), "/live", layer, now_ns());
    watch.look();
    EXPECT_FALSE(watch.images().empty());
    return watch.images().empty() ? ImageSight{} : watch.images().front();
  }

  std::string folder_;
};

TEST_F(Watch, SeesTheExecutableAndItsLibraries) {
  const ImageSight image = look_at_ourselves();
  EXPECT_EQ(image.executable, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(image.looks, 1u);
  EXPECT_FALSE(image.privileged);
  EXPECT_EQ(image.foreign_machine, "");
  EXPECT_EQ(image.loader, "");
  EXPECT_THAT(image.files, Contains(image.executable));
}

TEST_F(Watch, KnowsALoaderByItsNameAndWhatItKnowsByItsText) {
  const std::string path = folder_ + "/libOpenCL.so.1.0.0";
  const MappedFile loader(path, "getenv OPENCL_LAYERS ...");
  const ImageSight image = look_at_ourselves();
  EXPECT_EQ(image.loader, path);
  EXPECT_TRUE(image.loader_knows_layers);
}

TEST_F(Watch, ALoaderWithoutTheTextKnowsNoLayers) {
  const MappedFile loader(folder_ + "/libOpenCL.so.1", "nothing of the kind");
  const ImageSight image = look_at_ourselves();
  EXPECT_NE(image.loader, "");
  EXPECT_FALSE(image.loader_knows_layers);
}

TEST_F(Watch, SeesOurLayer) {
  const std::string path = folder_ + "/layer.so";
  EXPECT_FALSE(look_at_ourselves(path).layer_mapped);
  const MappedFile layer(path, "layer");
  EXPECT_TRUE(look_at_ourselves(path).layer_mapped);
}

TEST_F(Watch, ALoaderThatWasClosedAgainIsRemembered) {
  ProcessWatch watch(getpid(), "/live", "/nowhere/layer.so", now_ns());
  {
    const MappedFile loader(folder_ + "/libOpenCL.so", "OPENCL_LAYERS");
    watch.look();
  }
  watch.look();
  ASSERT_EQ(watch.images().size(), 1u);
  EXPECT_EQ(watch.images()[0].looks, 2u);
  EXPECT_TRUE(watch.images()[0].loader_knows_layers);
}

TEST_F(Watch, FollowsChildrenAndReadsWhatTheyWereGiven) {
  std::string program = "sleep", time = "100", record = "XPU_RECORD=/live", layers = "OPENCL_LAYERS=/a.so";
  char* const arguments[] = {program.data(), time.data(), nullptr};
  char* const environment[] = {record.data(), layers.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawnp(&child, "sleep", nullptr, nullptr, arguments, environment), 0);

  ProcessWatch watch(getpid(), "/live", "/nowhere/layer.so", now_ns());
  const ImageSight* seen = nullptr;
  const std::uint64_t deadline_ns = now_ns() + 30'000'000'000;
  while (seen == nullptr && now_ns() < deadline_ns) {
    watch.look();
    for (const ImageSight& image : watch.images()) {
      if (image.pid == child && image.executable.ends_with("sleep")) seen = &image;
    }
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_NE(seen, nullptr);
  EXPECT_TRUE(seen->environment_known);
  EXPECT_TRUE(seen->has_record);
  EXPECT_TRUE(seen->has_layers);
  EXPECT_EQ(seen->layers, "/a.so");
}

TEST_F(Watch, AProcessThatIsGoneIsNoFailure) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  ProcessWatch watch(child, "/live", "/nowhere/layer.so", now_ns());
  watch.look();
  EXPECT_TRUE(watch.images().empty());
}

TEST_F(Watch, AProcessThatExecutesOrEndsDuringALookIsSeenWholeOrNotAtAll) {
  // Shells that execute each other in one process and at last this program, whose map is longer than one read of it, each with exactly one
  // of the two variables.
  const std::string path = folder_ + "/chain";
  std::ofstream(path) << "n=$(($1 - 1))\n"
                         "[ $n -gt 0 ] || exec \"$2\" --gtest_list_tests > /dev/null\n"
                         "if [ \"$XPU_RECORD\" ]; then unset XPU_RECORD; export OPENCL_LAYERS=/a.so\n"
                         "else unset OPENCL_LAYERS; export XPU_RECORD=/live; fi\n"
                         "exec sh \"$0\" $n \"$2\"\n";
  const std::string ourselves = std::filesystem::read_symlink("/proc/self/exe").string();
  std::uint64_t images = 0, unknown = 0;
  const std::uint64_t end_ns = now_ns() + 2'000'000'000;
  while (now_ns() < end_ns || images == 0) {
    std::string program = "sh", script = path, count = "3", last = ourselves, record = "XPU_RECORD=/live";
    char* const arguments[] = {program.data(), script.data(), count.data(), last.data(), nullptr};
    char* const environment[] = {record.data(), nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawnp(&child, "sh", nullptr, nullptr, arguments, environment), 0);
    ProcessWatch watch(child, "/live", "/nowhere/layer.so", now_ns());
    while (waitpid(child, nullptr, WNOHANG) == 0) watch.look();
    for (const ImageSight& image : watch.images()) {
      EXPECT_NE(image.executable, "");
      if (image.environment_known) {
        EXPECT_NE(image.has_record, image.has_layers) << "record " << image.has_record;
      } else {
        ++unknown;
      }
    }
    images += watch.images().size();
  }
  EXPECT_LE(unknown, images / 20) << "of " << images;
}

TEST_F(Watch, ALayerThatWasUnmappedAgainDidNotStay) {
  const std::string path = folder_ + "/layer.so";
  ProcessWatch watch(getpid(), "/live", path, now_ns());
  {
    const MappedFile layer(path, "layer");
    watch.look();
    EXPECT_TRUE(watch.images().front().layer_mapped);
  }
  watch.look();
  EXPECT_FALSE(watch.images().front().layer_mapped);
}

TEST_F(Watch, LooksOftenAtFirstAndSeldomLater) {
  ProcessWatch young(getpid(), "/live", "/nowhere/layer.so", now_ns());
  young.look();
  if (young.last_look_ns() - young.start_ns() < 100'000'000u) {
    EXPECT_EQ(young.next_ns() - young.last_look_ns(), 1'000'000u);
  }
  ProcessWatch old(getpid(), "/live", "/nowhere/layer.so", now_ns() - 10'000'000'000);  // the machine itself may be young
  old.look();
  EXPECT_EQ(old.next_ns() - old.last_look_ns(), 250'000'000u);
}

TEST_F(Watch, HowOftenItIsAskedItSpendsOnlyWhatItMay) {
  const std::uint64_t start_ns = now_ns();
  ProcessWatch watch(getpid(), "/live", "/nowhere/layer.so", start_ns);
  // Far more looks than the allowance pays for: the next one moves away in proportion to what they cost.
  while (watch.spent_ns() < 60'000'000u) watch.look();
  EXPECT_GE(watch.next_ns() - start_ns, 200 * (watch.spent_ns() - 30'000'000u));
}

}  // namespace
}  // namespace xpu::cli
