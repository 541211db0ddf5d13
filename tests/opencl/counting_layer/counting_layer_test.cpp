// The counting layer against the null driver's own count of calls, in every way in which a process can end.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "counting_layer/counts_file.hpp"
#include "run_program.hpp"

namespace xpu::counting_layer {
namespace {

namespace fs = std::filesystem;
using opencl_support::Child;
using opencl_support::start_program;

// XPU_TEST_PROGRAMS and XPU_TEST_LAYER are set by CTest.
std::string program(const char* name) { return std::string(std::getenv("XPU_TEST_PROGRAMS")) + "/" + name; }
std::string layer() { return std::getenv("XPU_TEST_LAYER"); }

/// The number behind `"key": ` in a JSON text, or 0.
std::uint64_t number_behind(const std::string& json, const std::string& key) {
  const std::size_t found = json.find("\"" + key + "\": ");
  return found == std::string::npos ? 0 : std::strtoull(json.c_str() + found + key.size() + 4, nullptr, 10);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class CountingLayerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "xpu_counts_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Child start(std::vector<std::string> arguments, opencl_support::Variables more = {}) {
    arguments[0] = program(arguments[0].c_str());
    more.emplace_back("XPU_TEST_COUNTS", (folder_ / "counts").string());
    more.emplace_back("XPU_NULL_CALLS", (folder_ / "calls.%p").string());
    if (layers_.empty()) layers_ = layer();
    more.emplace_back("OPENCL_LAYERS", layers_);
    return start_program(std::move(arguments), more);
  }

  /// The files of counts, one per process image, in the order of their names.
  std::vector<std::string> counts() {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".counts") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> texts;
    for (const fs::path& path : paths) {
      const auto file = std::make_unique<CountsFile>();
      std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(file.get()), sizeof(CountsFile));
      EXPECT_EQ(file->magic, CountsFile::kMagic);
      texts.push_back(to_json(*file));
    }
    return texts;
  }

  std::string driver_calls(pid_t process) { return text_of(folder_ / ("calls." + std::to_string(process))); }

  fs::path folder_;
  std::string layers_;
};

TEST_F(CountingLayerTest, CountsWhatTheDriverCounts) {
  Child child = start({"xpu_test_workload", "mtshared", "4000", "100", "4"});
  child.rest_of_output();
  ASSERT_EQ(child.wait(), 0);
  ASSERT_EQ(counts().size(), 1u);
  const std::string own = counts().front();
  EXPECT_EQ(number_behind(own, "submitted"), 4004u);
  EXPECT_EQ(number_behind(driver_calls(child.pid), "clEnqueueNDRangeKernel"), 4004u);
  EXPECT_EQ(text_of(folder_ / ("counts." + std::to_string(child.pid) + ".json")), own) << "at exit both say the same";
}

TEST_F(CountingLayerTest, CountsEverySubmittingEntryPoint) {
  Child child = start({"xpu_test_workload", "allcalls"});
  const std::string output = child.rest_of_output();
  ASSERT_EQ(child.wait(), 0);
  const std::string own = counts().front();
  EXPECT_EQ(number_behind(own, "submitted"), std::strtoull(output.c_str() + output.find("submitted=") + 10, nullptr, 10));
  const std::string driver = driver_calls(child.pid);
#define XPU_COUNTED_ENTRY(name)                                                         \
  if (std::string(#name).find("GL") == std::string::npos) {                             \
    EXPECT_NE(own.find("\"" #name "\": {\"submitted\": "), std::string::npos) << #name; \
    EXPECT_GT(number_behind(driver, #name), 0u) << #name;                               \
  }
#include "counting_layer/submitting_entries.inc"
}

TEST_F(CountingLayerTest, CountsRefusedCallsApart) {
  Child child = start({"xpu_test_profiling", "10", "1"}, {{"XPU_NULL_FAULTS", "fail_enqueue=5"}});
  const std::string output = child.rest_of_output();
  ASSERT_EQ(child.wait(), 0);
  const std::string own = counts().front();
  EXPECT_EQ(number_behind(own, "submitted"), static_cast<std::uint64_t>(std::count(output.begin(), output.end(), '\n')));
  // The driver refuses every fifth call that reaches it with valid arguments, and all of these have them.
  EXPECT_EQ(number_behind(own, "refused"), (number_behind(own, "submitted") + number_behind(own, "refused")) / 5);
}

TEST_F(CountingLayerTest, KeepsTheQueuesApart) {
  Child child = start({"xpu_test_workload", "twoq", "1000", "100"});
  child.rest_of_output();
  ASSERT_EQ(child.wait(), 0);
  EXPECT_NE(counts().front().find("\"queues\": [{\"submitted\": 1000, \"refused\": 0}, {\"submitted\": 10, \"refused\": 0}]"),
            std::string::npos)
      << counts().front();
}

TEST_F(CountingLayerTest, CountsSurviveEndsWithoutHandlers) {
  for (const auto& [mode, code] :
       std::vector<std::pair<std::string, int>>{{"_exit", 7}, {"sigkill", 137}, {"abort", 134}, {"quick_exit", 7}}) {
    Child child = start({"xpu_test_exit", mode, "50"});
    child.rest_of_output();
    EXPECT_EQ(child.wait(), code) << mode;
  }
  for (const std::string& own : counts()) EXPECT_EQ(number_behind(own, "submitted"), 50u) << own;
  EXPECT_EQ(counts().size(), 4u);
}

TEST_F(CountingLayerTest, NothingThatTheProgramReportedIsMissingAfterAKill) {
  Child child = start({"xpu_test_kill", "100"});
  char byte = 0;
  for (int lines = 0; lines < 20 && read(child.output, &byte, 1) == 1;) lines += byte == '\n' ? 1 : 0;
  kill(child.pid, SIGKILL);
  const std::string rest = child.rest_of_output();
  EXPECT_EQ(child.wait(), 137);
  const std::size_t last = rest.rfind("submitted ");
  const std::uint64_t reported = last == std::string::npos ? 20'000 : std::strtoull(rest.c_str() + last + 10, nullptr, 10);
  EXPECT_GE(number_behind(counts().front(), "submitted"), reported);
}

TEST_F(CountingLayerTest, AForkedChildHasItsOwnCounts) {
  Child child = start({"xpu_test_exit", "fork_child_uses", "50"});
  child.rest_of_output();
  EXPECT_EQ(child.wait(), 0);
  const std::vector<std::string> both = counts();
  ASSERT_EQ(both.size(), 2u);
  const std::uint64_t a = number_behind(both[0], "submitted"), b = number_behind(both[1], "submitted");
  EXPECT_EQ(std::min(a, b), 50u) << "the child's";
  EXPECT_EQ(std::max(a, b), 100u) << "the parent's, before and after the fork";
}

TEST_F(CountingLayerTest, AnExecutedProgramHasItsOwnCountsUnderTheSameProcess) {
  Child child = start({"xpu_test_exit", "exec", "50"});
  child.rest_of_output();
  EXPECT_EQ(child.wait(), 0);
  const std::vector<std::string> both = counts();
  ASSERT_EQ(both.size(), 2u);
  for (const std::string& own : both) EXPECT_EQ(number_behind(own, "submitted"), 50u);
}

TEST_F(CountingLayerTest, WorksBesideAnotherLayer) {
  // A copy is another library with its own state: two layers in a chain.
  const fs::path copy = folder_ / "copy_of_layer.so";
  fs::copy_file(layer(), copy);
  layers_ = layer() + ":" + copy.string();
  Child child = start({"xpu_test_workload", "launch", "1000", "100"});
  child.rest_of_output();
  ASSERT_EQ(child.wait(), 0);
  ASSERT_EQ(counts().size(), 2u);
  for (const std::string& own : counts()) EXPECT_EQ(number_behind(own, "submitted"), 1001u);
}

}  // namespace
}  // namespace xpu::counting_layer
