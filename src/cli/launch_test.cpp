#include "cli/launch.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace xpu::cli {
namespace {

class FindProgram : public testing::Test {
 protected:
  FindProgram() {
    std::string path = testing::TempDir() + "find_program_XXXXXX";
    folder_ = mkdtemp(path.data());
    std::filesystem::create_directory(folder_ + "/a");
    std::filesystem::create_directory(folder_ + "/b");
  }
  ~FindProgram() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, mode_t mode) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n";
    chmod(path.c_str(), mode);
    return path;
  }
  std::string both() const { return folder_ + "/a:" + folder_ + "/b"; }

  std::string folder_;
};

TEST_F(FindProgram, LooksThroughTheWholePath) {
  file("b/prog", 0755);
  const FoundProgram found = find_program("prog", both().c_str());
  EXPECT_EQ(found.error, 0);
  EXPECT_EQ(found.path, folder_ + "/b/prog");
  EXPECT_EQ(find_program("prog", (folder_ + "/a").c_str()).error, ENOENT);
}

TEST_F(FindProgram, AFileThatMayNotBeExecutedIsPassedOverWhenALaterOneMay) {
  file("a/prog", 0644);
  EXPECT_EQ(find_program("prog", both().c_str()).error, EACCES);
  file("b/prog", 0755);
  EXPECT_EQ(find_program("prog", both().c_str()).path, folder_ + "/b/prog");
}

TEST_F(FindProgram, ANameWithASlashIsNotSearchedFor) {
  const std::string path = file("a/prog", 0755);
  EXPECT_EQ(find_program(path, "").error, 0);
  EXPECT_EQ(find_program(path, "").path, path);
  EXPECT_EQ(find_program("./nowhere/prog", both().c_str()).error, ENOENT);
}

TEST_F(FindProgram, AFolderIsNoProgram) { EXPECT_EQ(find_program(folder_ + "/a", nullptr).error, EACCES); }

TEST_F(FindProgram, WithoutAPathTheSystemsFoldersAreSearched) { EXPECT_EQ(find_program("sh", nullptr).error, 0); }

}  // namespace
}  // namespace xpu::cli
