#include "cli/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/console.hpp"

namespace xpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

RecordRequest recorded(const Words& words) {
  auto parsed = parse_record(words);
  EXPECT_TRUE(parsed.request.has_value());
  return parsed.request.value_or(RecordRequest{});
}

TEST(CommandLine, TheProgramBeginsBehindTheDashes) {
  const RecordRequest request = recorded({"-o", "a", "-f", "--", "prog", "-o", "b", "--", "--help"});
  EXPECT_EQ(request.output, "a");
  EXPECT_TRUE(request.overwrite);
  EXPECT_THAT(request.program, ElementsAre("prog", "-o", "b", "--", "--help"));
}

TEST(CommandLine, TheDashesMayBeLeftOut) {
  EXPECT_THAT(recorded({"-o", "a", "prog", "--delay", "x", "--", "y"}).program, ElementsAre("prog", "--delay", "x", "--", "y"));
  EXPECT_THAT(recorded({"--output=a", "prog"}).program, ElementsAre("prog"));
  EXPECT_THAT(recorded({"-oa", "prog"}).program, ElementsAre("prog"));
  EXPECT_THAT(recorded({"-fo", "a", "prog"}).program, ElementsAre("prog"));
  EXPECT_EQ(recorded({"-foa", "prog"}).output, "a");
}

TEST(CommandLine, AProgramMayBeginWithADash) { EXPECT_THAT(recorded({"--", "-prog", "-f"}).program, ElementsAre("-prog", "-f")); }

TEST(CommandLine, EveryOptionOfRecordReachesTheRequest) {
  const RecordRequest request =
      recorded({"--api", "--delay", "2", "--duration", "500ms", "--kernels", "^a", "--max-live", "512M", "--", "prog"});
  EXPECT_EQ(request.mode, trace::RecordMode::api);
  EXPECT_EQ(request.schedule.delay_ns, 2'000'000'000u);
  EXPECT_EQ(request.schedule.duration_ns, 500'000'000u);
  EXPECT_EQ(request.kernels, "^a");
  EXPECT_EQ(request.max_live_bytes, 512u << 20);
  EXPECT_EQ(recorded({"--device-only", "prog"}).mode, trace::RecordMode::device_only);
  EXPECT_TRUE(recorded({"--start-paused", "prog"}).schedule.start_paused);
}

TEST(CommandLine, WrongCommandLinesOfRecordAreOurFailure) {
  for (const Words& wrong : {Words{}, Words{"--"}, Words{"-o", "a"}, Words{"--no-such", "prog"}, Words{"--delay", "soon", "prog"},
                             Words{"--max-live", "much", "prog"}, Words{"--duration", "-1", "prog"},
                             Words{"--api", "--device-only", "prog"}, Words{"--delay", "1", "--start-paused", "prog"}, Words{"-o"}}) {
    const auto parsed = parse_record(wrong);
    EXPECT_FALSE(parsed.request) << testing::PrintToString(wrong);
    EXPECT_EQ(parsed.exit_code, kRecordFailed) << testing::PrintToString(wrong);
  }
}

TEST(CommandLine, EveryOptionOfReportReachesTheRequest) {
  const auto parsed = parse_report(Words{"a.xpu", "--top", "5", "--sort", "max", "--kernels", "b", "--by", "queue", "--wide", "--json"});
  ASSERT_TRUE(parsed.request);
  EXPECT_EQ(parsed.request->name, "a.xpu");
  EXPECT_EQ(parsed.request->options.top, 5);
  EXPECT_EQ(parsed.request->options.sort, "max");
  EXPECT_EQ(parsed.request->options.kernels_regex, "b");
  EXPECT_EQ(parsed.request->options.by, profiler::ReportOptions::By::queue);
  EXPECT_TRUE(parsed.request->options.wide);
  EXPECT_EQ(parsed.request->format, Format::json);
  EXPECT_EQ(parse_report(Words{"--csv"}).request->format, Format::csv);
}

TEST(CommandLine, WrongCommandLinesElsewhereAreUsageErrors) {
  for (const Words& wrong : {Words{"--sort", "size"}, Words{"--by", "moon"}, Words{"--top", "-1"}, Words{"--top", "x"},
                             Words{"--json", "--csv"}, Words{"a", "b"}, Words{"--no-such"}}) {
    const auto parsed = parse_report(wrong);
    EXPECT_FALSE(parsed.request) << testing::PrintToString(wrong);
    EXPECT_EQ(parsed.exit_code, kUsage) << testing::PrintToString(wrong);
  }
  EXPECT_EQ(parse_export(Words{"--format", "parquet"}).exit_code, kUsage);
  EXPECT_EQ(parse_check(Words{"--csv"}).exit_code, kUsage);
}

TEST(CommandLine, AWrongWordIsNamedInTheMessage) {
  testing::internal::CaptureStderr();
  parse_report(Words{"--no-such"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("xpu: '--no-such' was not expected; see xpu report --help"));
}

TEST(CommandLine, AWrongNumberOfRowsGetsASentence) {
  for (const char* wrong : {"-1", "x", "1x", "99999999999"}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(parse_report(Words{std::string("--top=") + wrong}).exit_code, kUsage);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              std::string("xpu: --top: '") + wrong + "' is not a number of rows, 0 or more; see xpu report --help\n");
  }
}

TEST(CommandLine, EveryOptionOfInfoReachesTheRequest) {
  const auto plain = parse_info(Words{});
  ASSERT_TRUE(plain.request);
  EXPECT_FALSE(plain.request->device);
  EXPECT_FALSE(plain.request->open_devices);
  EXPECT_EQ(plain.request->format, Format::text);
  const auto parsed = parse_info(Words{"--device", "3", "-v", "--json"});
  ASSERT_TRUE(parsed.request);
  EXPECT_EQ(parsed.request->device, 3);
  EXPECT_TRUE(parsed.request->open_devices);
  EXPECT_EQ(parsed.request->format, Format::json);
}

TEST(CommandLine, AWrongIndexOfADeviceGetsASentence) {
  for (const char* wrong : {"-1", "x", "1x", "99999999999"}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(parse_info(Words{std::string("--device=") + wrong}).exit_code, kUsage);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              std::string("xpu: --device: '") + wrong + "' is not the index of a device, 0 or more; see xpu info --help\n");
  }
}

TEST(CommandLine, ExportTakesItsNameAndItsFile) {
  const auto parsed = parse_export(Words{"a", "--format", "chrome", "-o", "b.json", "-f", "--device-only"});
  ASSERT_TRUE(parsed.request);
  EXPECT_EQ(parsed.request->name, "a");
  EXPECT_EQ(parsed.request->output, "b.json");
  EXPECT_TRUE(parsed.request->overwrite);
  EXPECT_TRUE(parsed.request->device_only);
}

TEST(CommandLine, ExportKnowsItsFormatByTheNameOfTheFileUnlessItIsTold) {
  const auto format = [](std::vector<std::string> words) {
    const auto parsed = parse_export(words);
    EXPECT_TRUE(parsed.request);
    return parsed.request ? parsed.request->format : ExportFormat::chrome;
  };
  EXPECT_EQ(format({}), ExportFormat::chrome);
  EXPECT_EQ(format({"-o", "a.json.gz"}), ExportFormat::chrome);
  EXPECT_EQ(format({"-o", "pftrace"}), ExportFormat::chrome);
  EXPECT_EQ(format({"-o", "a.pftrace"}), ExportFormat::perfetto);
  EXPECT_EQ(format({"-o", "a.pftrace.gz"}), ExportFormat::perfetto);
  EXPECT_EQ(format({"--format", "perfetto"}), ExportFormat::perfetto);
  EXPECT_EQ(format({"--format", "perfetto", "-o", "a.bin"}), ExportFormat::perfetto);
  EXPECT_EQ(format({"--format", "chrome", "-o", "a.pftrace"}), ExportFormat::chrome);
}

TEST(CommandLine, NamesForAnotherReaderAreOfTheJsonOnly) {
  EXPECT_EQ(parse_export(Words{}).request->compatibility, profiler::Compatibility::none);
  EXPECT_EQ(parse_export(Words{"--compat", "hta"}).request->compatibility, profiler::Compatibility::hta);
  for (const Words& words : {Words{"--compat", "tensorboard"}, Words{"--compat", "hta", "-o", "a.pftrace"}}) {
    const auto parsed = parse_export(words);
    EXPECT_FALSE(parsed.request);
    EXPECT_EQ(parsed.exit_code, kUsage);
  }
}

}  // namespace
}  // namespace xpu::cli
