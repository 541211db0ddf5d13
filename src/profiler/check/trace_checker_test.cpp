#include "xpu/profiler/trace_checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "profiler/check/rules.hpp"
#include "profiler/test_support/written_trace.hpp"

namespace xpu::profiler {
namespace {

using test_support::check_text;
using test_support::findings_in;
using test_support::WrittenTrace;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(TraceCheckerTest, RulesHaveStableNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const TraceRule& rule : trace_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_EQ(rule.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << rule.name;
    EXPECT_FALSE(rule.meaning.empty()) << rule.name;
  }
  EXPECT_EQ(description(Rule::invalid_json).name, "invalid-json");
  EXPECT_EQ(description(Rule::stale_correlation).name, "stale-correlation");
  EXPECT_EQ(description(Rule::no_events).name, "no-events");
}

/// What Kineto is known to write, in one small trace each.
TEST(TraceCheckerTest, FindsTheKnownFaultsOfKineto) {
  WrittenTrace dangling = WrittenTrace().add_launch(1, 0.5).add_call(2, 30);
  dangling.add_flow('s', 2, 100, 101, 30);  // the kernel fell out of the window
  EXPECT_THAT(findings_in(dangling), ElementsAre("flow-without-finish: 1"));

  WrittenTrace allow_list = WrittenTrace().add_call(1, 0.5).add_kernel(1, 10);
  allow_list.add_flow('f', 1, 0, 1, 10);  // the launching function was not on the list of those that start an arrow
  EXPECT_THAT(findings_in(allow_list), ElementsAre("flow-without-start: 1"));

  WrittenTrace stale = WrittenTrace().add_launch(1, 0.5).add_kernel(77, 20);  // its call belonged to the session before
  EXPECT_THAT(findings_in(stale), ElementsAre("stale-correlation: 1"));

  WrittenTrace early = WrittenTrace().add_call(1, 50.5).add_kernel(1, 20);
  EXPECT_THAT(findings_in(early), ElementsAre("device-before-call: 1"));

  WrittenTrace unknown = WrittenTrace().add_slice("user_annotation", "unknown", 100, 101, 0, 1.5);  // was not plain ASCII
  EXPECT_THAT(findings_in(unknown), ElementsAre("unknown-name: 1"));

  WrittenTrace sixteen = WrittenTrace().add_launch(1, 0.5);
  for (int i = 0; i < 16; ++i) {
    const std::string index = std::to_string(i);
    sixteen.add_metadata("process_name", i, 0, R"("name":"python")")
        .add_metadata("process_labels", i, 0, R"("labels":"GPU )" + index + '"')
        .add_metadata("process_sort_index", i, 0, R"("sort_index":)" + std::to_string(5'000'000 + i));
  }
  EXPECT_THAT(findings_in(sixteen), ElementsAre("phantom-devices: 15")) << "one has work";

  WrittenTrace negative = WrittenTrace().add_slice("cpu_op", "never finished", 100, 101, 5, -3.25);
  EXPECT_THAT(findings_in(negative), ElementsAre("negative-duration: 1"));

  const auto quoted = check_text(R"({"traceEvents":[{"ph":"i","name":"a","ts":0},{"ph":"X","name":"say "hello"","ts":0}]})");
  ASSERT_TRUE(quoted);
  EXPECT_EQ(quoted->events, 1u) << "what comes before is examined";
  ASSERT_EQ(quoted->findings.size(), 1u);
  EXPECT_EQ(quoted->findings[0].rule->name, "invalid-json");
}

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() : folder_(std::filesystem::temp_directory_path() / ("trace_file_test." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TraceFileTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string write_gzip(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(TraceFileTest, ReadsPlainAndGzipWhateverTheName) {
  const std::string text = WrittenTrace().add_launch(1, 0.5).text();
  for (const std::string& path : {write("a.txt", text), write_gzip("b", text)}) {
    EXPECT_TRUE(TraceChecker::looks_like_trace(path));
    const auto check = TraceChecker().check_file(path);
    ASSERT_TRUE(check) << check.error().message;
    EXPECT_EQ(check->path, path);
    EXPECT_EQ(check->events, 4u);
    EXPECT_TRUE(check->ok());
  }
}

TEST_F(TraceFileTest, KnowsATraceByItsContents) {
  EXPECT_TRUE(TraceChecker::looks_like_trace(write("a", "\xef\xbb\xbf\n [")));
  EXPECT_FALSE(TraceChecker::looks_like_trace(write("b.json", "no trace")));
  EXPECT_FALSE(TraceChecker::looks_like_trace(write("c.json", "")));
  EXPECT_FALSE(TraceChecker::looks_like_trace(write_gzip("d.json.gz", "no trace")));
  EXPECT_FALSE(TraceChecker::looks_like_trace(folder_));
  EXPECT_FALSE(TraceChecker::looks_like_trace(folder_ / "nothing"));
}

TEST_F(TraceFileTest, AFileThatIsNoTraceIsAnErrorThatNamesIt) {
  for (const std::string& path : {write("a", "{\"a\":1}"), write("b", "{"), write("c", "")}) {
    const auto check = TraceChecker().check_file(path);
    ASSERT_FALSE(check);
    EXPECT_EQ(check.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(check.error().message, HasSubstr(path));
  }
}

TEST_F(TraceFileTest, AFileThatCannotBeReadIsAnErrorThatNamesIt) {
  std::string text = WrittenTrace().add_launch(1, 0.5).text();
  for (int i = 0; i < 200; ++i) text += std::to_string(i * 7'919);
  const std::string whole = write_gzip("whole.gz", text);
  std::ifstream file(whole, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string cut = write("cut.gz", bytes.substr(0, bytes.size() - 12));
  std::string damaged = bytes;
  damaged[bytes.size() / 2] = static_cast<char>(~damaged[bytes.size() / 2]);
  for (const std::string& path : {cut, write("damaged.gz", damaged), std::string(folder_), std::string(folder_ / "nothing")}) {
    const auto check = TraceChecker().check_file(path);
    ASSERT_FALSE(check) << path;
    EXPECT_EQ(check.error().code, ErrorCode::unavailable) << check.error().message;
    EXPECT_THAT(check.error().message, HasSubstr(path));
    EXPECT_THAT(check.error().message, testing::Not(HasSubstr("fd:"))) << "the library's own name for it";
  }
}

}  // namespace
}  // namespace xpu::profiler
