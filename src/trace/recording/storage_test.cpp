#include "trace/recording/storage.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace xpu::trace {
namespace {

namespace fs = std::filesystem;

class StorageTest : public ::testing::Test {
 protected:
  StorageTest() {
    std::string pattern = (fs::temp_directory_path() / "xpu_storage_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    folder_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY));
  }
  ~StorageTest() override { fs::remove_all(path_); }

  std::string path_;
  UniqueFd folder_;
};

// Runs `act` in a child with a file-size limit; its exit code, or -1 when a signal ended it.
template <typename Act>
int with_file_size_limit(rlim_t bytes, Act&& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{bytes, bytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(100);
    ::_exit(act());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(StorageTest, WritingBeyondTheFileSizeLimitIsAnErrorAndNoSignal) {
  const int code = with_file_size_limit(1'000, [&] {
    Result<UniqueFd> file = create_file_at(folder_.get(), "f");
    if (!file) return 1;
    const Result<> written = write_all_at(file->get(), std::vector<std::byte>(2'000), 0, "f");
    if (written || written.error().native_code != EFBIG) return 2;
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGXFSZ) == 1) return 3;  // it would end the process later
    return allocate_storage(file->get(), 0, 1 << 20, "f") ? 4 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(StorageTest, TheGuardRestoresTheMaskAndLeavesAnotherPendingSignalAlone) {
  sigset_t signals, before, now;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  {
    const FileSizeSignalGuard guard;
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGXFSZ), 0);

  pthread_sigmask(SIG_BLOCK, &signals, &before);
  ::raise(SIGXFSZ);
  {
    const FileSizeSignalGuard guard;
  }
  sigpending(&now);
  EXPECT_EQ(sigismember(&now, SIGXFSZ), 1);
  const timespec at_once{};
  EXPECT_EQ(sigtimedwait(&signals, nullptr, &at_once), SIGXFSZ);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(StorageTest, AllocatedStorageIsThereAndZero) {
  Result<UniqueFd> file = create_file_at(folder_.get(), "f");
  ASSERT_TRUE(file);
  ASSERT_TRUE(allocate_storage(file->get(), 0, 1'000'000, "f"));
  struct stat status{};
  ASSERT_EQ(::fstat(file->get(), &status), 0);
  EXPECT_EQ(status.st_size, 1'000'000);
  EXPECT_GE(status.st_blocks * 512, status.st_size);
  std::vector<std::byte> bytes(1'000'000, std::byte{1});
  ASSERT_TRUE(read_all_at(file->get(), bytes, 0));
  EXPECT_EQ(bytes, std::vector<std::byte>(1'000'000));
  EXPECT_FALSE(read_all_at(file->get(), bytes, 1));
}

TEST_F(StorageTest, AFileIsMadeOnceAndNeverThroughALink) {
  ASSERT_TRUE(create_file_at(folder_.get(), "f"));
  EXPECT_FALSE(create_file_at(folder_.get(), "f"));
  fs::create_symlink(path_ + "/target", path_ + "/link");
  EXPECT_FALSE(create_file_at(folder_.get(), "link"));
  EXPECT_FALSE(fs::exists(path_ + "/target"));
}

TEST_F(StorageTest, AReplacedFileIsTheOldOneOrTheNewOne) {
  const std::string first = "first", second = "the second";
  ASSERT_TRUE(replace_file_at(folder_.get(), "f", std::as_bytes(std::span(first))));
  ASSERT_TRUE(replace_file_at(folder_.get(), "f", std::as_bytes(std::span(second))));
  EXPECT_EQ(fs::file_size(path_ + "/f"), second.size());
  const int code = with_file_size_limit(4, [&] { return replace_file_at(folder_.get(), "f", std::as_bytes(std::span(first))) ? 1 : 0; });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(fs::file_size(path_ + "/f"), second.size());
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1) << "nothing temporary is left";
}

}  // namespace
}  // namespace xpu::trace
