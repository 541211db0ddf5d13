#include "xpu/profiler/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xpu::profiler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config parsed(std::string_view text) {
  const ParsedConfig result = parse_config(text).value();
  EXPECT_THAT(result.warnings, IsEmpty()) << text;
  return result.config;
}
std::vector<std::string> warnings(std::string_view text) { return parse_config(text).value().warnings; }
/// "" where it is accepted.
std::string refusal(std::string_view text) {
  const Result<ParsedConfig> result = parse_config(text);
  if (result) return "";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument) << text;
  return result.error().message;
}

TEST(ProfilerConfigTest, NothingIsTheDefault) {
  for (const char* text : {"", "\n\n", "  # only a comment", "\r\n"}) EXPECT_EQ(parsed(text), Config()) << text;
  const Config config;
  EXPECT_TRUE(config.is_enabled);
  EXPECT_EQ(config.duration, milliseconds(500));
  EXPECT_EQ(config.warmup_duration, seconds(5));
  EXPECT_EQ(config.iterations, 0u);
  EXPECT_EQ(config.max_buffer_mib, 128u);
  EXPECT_TRUE(config.shows_stream_waits);
  EXPECT_EQ(config.start_iteration, std::nullopt);
  EXPECT_TRUE(check_config(config).has_value());
}

TEST(ProfilerConfigTest, EveryKeyReachesItsField) {
  struct Case {
    std::string text;
    Config expected;
  };
  for (const Case& known : std::vector<Case>{
           {"ACTIVITIES_ENABLED=n", {.is_enabled = false}},
           {"ACTIVITY_TYPES=kernel,xpu_driver", {.kinds = {ActivityKind::kernel, ActivityKind::xpu_driver}}},
           {"ACTIVITY_TYPES= concurrent_kernel , cpu_op ,", {.kinds = {ActivityKind::kernel, ActivityKind::cpu_op}}},
           {"ACTIVITIES_LOG_FILE=trace.json", {.log_file = "trace.json"}},
           {"ACTIVITIES_DURATION_SECS=2", {.duration = seconds(2)}},
           {"ACTIVITIES_DURATION_MSECS=20", {.duration = milliseconds(20)}},
           {"ACTIVITIES_WARMUP_PERIOD_SECS=0", {.warmup_duration = seconds(0)}},
           {"ACTIVITIES_ITERATIONS=3", {.iterations = 3}},
           {"ACTIVITIES_WARMUP_ITERATIONS=2", {.warmup_iterations = 2}},
           {"ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB=2147483647", {.max_buffer_mib = 2'147'483'647}},
           {"ACTIVITIES_DISPLAY_CUDA_SYNC_WAIT_EVENTS=false", {.shows_stream_waits = false}},
           {"CUPTI_PER_THREAD_BUFFER_ENABLED=1", {.has_buffer_per_thread = true}},
           {"PROFILE_MEMORY=Yes", {.takes_memory_snapshot = true}},
           {"PROFILE_MEMORY_DURATION_MSECS=10", {.memory_snapshot_duration = milliseconds(10)}},
           {"PROFILE_REPORT_INPUT_SHAPES=T", {.with_shapes = true}},
           {"CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION=TRUE", {.with_shapes = true}},
           {"PROFILE_PROFILE_MEMORY=y", {.with_memory = true}},
           {"PROFILE_WITH_STACK=true", {.with_stack = true}},
           {"PYTHON_STACK_TRACE=true", {.with_stack = true}},
           {"PROFILE_WITH_FLOPS=true", {.with_flops = true}},
           {"PROFILE_WITH_MODULES=true", {.with_modules = true}},
           {"PROFILE_START_TIME=1790000000000", {.start_time_unix_ms = 1'790'000'000'000}},
           {"PROFILE_START_TIME=0", {}},
           {"PROFILE_START_ITERATION=0", {.start_iteration = 0}},
           {"PROFILE_START_ITERATION=-1", {}},
           {"PROFILE_START_ITERATION_ROUNDUP=100", {.iteration_multiple = 100}},
           {"PROFILE_START_ITERATION_ROUNDUP=0", {}},
           {"REQUEST_TRACE_ID=abc", {.trace_id = "abc"}},
           {"REQUEST_GROUP_TRACE_ID=def", {.group_trace_id = "def"}},
           {"ENABLE_IPC_FABRIC=f", {.listens_to_daemon = false}},
           {"ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=60", {.daemon_interval = seconds(60)}},
           {"VERBOSE_LOG_LEVEL=2", {.verbose_log_level = 2}},
           {"VERBOSE_LOG_MODULES=a.cpp,b.cpp", {.verbose_log_modules = {"a.cpp", "b.cpp"}}},
           {"CUSTOM_CONFIG=anything", {.custom = "anything"}},
           {"XPUPTI_PROFILER_METRICS=Time,Stalls", {.scope_metrics = {"Time", "Stalls"}}},
           {"XPUPTI_PROFILER_ENABLE_PER_KERNEL=true", {.scopes_are_kernels = true}},
           {"XPUPTI_PROFILER_MAX_SCOPES=10", {.max_scopes = 10}},
       }) {
    EXPECT_EQ(parsed(known.text), known.expected) << known.text;
  }
}

TEST(ProfilerConfigTest, BlanksCommentsAndFurtherEqualSignsAreFine) {
  EXPECT_EQ(parsed("\t ACTIVITIES_ITERATIONS \t=  3  # three\r\n#REQUEST_TRACE_ID=x\nCUSTOM_CONFIG=a=b==c"),
            (Config{.iterations = 3, .custom = "a=b==c"}));
  EXPECT_EQ(parsed("REQUEST_TRACE_ID="), Config());
}

TEST(ProfilerConfigTest, WhatIsNotSaidStaysAsItWas) {
  const Config base{.iterations = 7, .trace_id = "base"};
  EXPECT_EQ(parse_config("ACTIVITIES_ITERATIONS=8", base).value().config, (Config{.iterations = 8, .trace_id = "base"}));
  EXPECT_EQ(parse_config("", base).value().config, base);
}

TEST(ProfilerConfigTest, ALineThatIsNotUnderstoodIsRefusedWithWhatIsAllowed) {
  EXPECT_EQ(refusal("\nACTIVITIES_ITERATIONS=many"),
            "line 2 gives ACTIVITIES_ITERATIONS the value 'many'; allowed is a whole number from 0 to 2147483647");
  for (const char* value : {"", "-1", "2147483648", "1.5", "1 2", "0x10", "99999999999999999999"}) {
    EXPECT_THAT(refusal(std::string("ACTIVITIES_ITERATIONS=") + value), HasSubstr("allowed is a whole number")) << value;
  }
  EXPECT_THAT(refusal("PROFILE_START_ITERATION=-2"), HasSubstr("or -1 for none"));
  EXPECT_THAT(refusal("PROFILE_START_TIME=-5"), HasSubstr("milliseconds since 1970"));
  EXPECT_THAT(refusal("PROFILE_WITH_STACK=maybe"), HasSubstr("one of y, yes, t, true, 1, n, no, f, false and 0"));
  EXPECT_THAT(refusal("ACTIVITY_TYPES=kernels"), AllOf(HasSubstr("'kernels'"), HasSubstr("gpu_memcpy")));
  EXPECT_THAT(refusal("ACTIVITY_TYPES=,"), HasSubstr("at least one of"));
  EXPECT_EQ(refusal("# fine\nstart now"), "line 2 is 'start now'; allowed is KEY=VALUE");
  EXPECT_THAT(refusal("ACTIVITIES_ITERATIONS=\x1b[31m"), HasSubstr("'?[31m'"));
}

TEST(ProfilerConfigTest, ValuesThatMakeNoProfileAreRefused) {
  EXPECT_THAT(refusal("ACTIVITIES_DURATION_MSECS=0"), HasSubstr("at least 1"));
  EXPECT_EQ(refusal("ACTIVITIES_DURATION_MSECS=0\nACTIVITIES_ITERATIONS=1"), "");
  EXPECT_THAT(refusal("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=0"), HasSubstr("at least 1"));
  EXPECT_THAT(refusal("ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB=0"), HasSubstr("at least 1"));
  EXPECT_THAT(refusal("PROFILE_MEMORY=1\nPROFILE_MEMORY_DURATION_MSECS=0"), HasSubstr("at least 1"));
  EXPECT_FALSE(check_config({.kinds = {}}).has_value());
  EXPECT_FALSE(check_config({.warmup_duration = seconds(-1)}).has_value());
}

TEST(ProfilerConfigTest, WhatHasNoEffectIsSaidWithItsLine) {
  EXPECT_THAT(warnings("ACTIVITES_ITERATIONS=3\n\nREQUEST_TRACE_ID=a\nREQUEST_TRACE_ID=b"),
              ElementsAre("line 1: 'ACTIVITES_ITERATIONS' is no key of a profiler's configuration",
                          "line 4: REQUEST_TRACE_ID is given again, so that line 3 has no effect"));
  for (const char* key : {"ROCTRACER_MAX_EVENTS", "CUPTI_PM_SAMPLING_METRICS", "CUPTI_PM_SAMPLING_DEVICE_ID", "XPUPTI_PROFILER_DEVICES"}) {
    EXPECT_THAT(warnings(std::string(key) + "=1"), ElementsAre(HasSubstr("has no effect on an XPU"))) << key;
  }
  EXPECT_THAT(warnings("ACTIVITY_TYPES=kernel,cuda_runtime"), ElementsAre("line 1: nothing on an XPU is of the kind cuda_runtime"));
  EXPECT_EQ(parse_config("UNKNOWN=1\nACTIVITIES_ITERATIONS=4").value().config, (Config{.iterations = 4}));
}

TEST(ProfilerConfigTest, AStartThatIsLongPastIsRefused) {
  const Config config{.start_time_unix_ms = 1'000'000};
  EXPECT_TRUE(check_start_time(config, 1'010'000).has_value());
  const Result<> late = check_start_time(config, 1'010'001);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().message, "PROFILE_START_TIME is 10001 ms ago; allowed is at most 10000");
  EXPECT_TRUE(check_start_time(config, 0).has_value());
  EXPECT_TRUE(check_start_time({}, 1'000'000'000).has_value());
}

TEST(TracePathTest, TheProcessIsNamedBeforeTheEnding) {
  EXPECT_EQ(trace_path({}, "/traces", 42), "/traces/xpu_activities_42.json");
  EXPECT_EQ(trace_path({.log_file = "a.pt.trace.json"}, "/traces", 42), "a_42.pt.trace.json");
  EXPECT_EQ(trace_path({.log_file = "/b/a.json"}, "/traces", 42), "/b/a_42.json");
  EXPECT_EQ(trace_path({.log_file = "a.json.gz"}, "/traces", 42), "a.json.gz_42");
  EXPECT_EQ(trace_path({.log_file = "proto://x/a.json"}, "/traces", 42), "proto://x/a.json");
  EXPECT_EQ(trace_path({.log_file = "file:///x/a.json"}, "/traces", 42), "/x/a_42.json");
  EXPECT_EQ(trace_path({.log_file = "file://"}, "/traces", 42), "/traces/xpu_activities_42.json");
  EXPECT_EQ(trace_path({.log_file = "/x/a://b.json"}, "/traces", 42), "/x/a://b_42.json") << "a folder with a strange name";
}

TEST(TracePathTest, AConfigurationFromOutsideStaysInItsFolder) {
  EXPECT_EQ(confined_trace_path({}, "/traces", 42).value(), "/traces/xpu_activities_42.json");
  EXPECT_EQ(confined_trace_path({.log_file = "run/a.json"}, "/traces", 42).value(), "/traces/run/a_42.json");
  EXPECT_EQ(confined_trace_path({.log_file = "/traces/./a.json"}, "/traces/", 42).value(), "/traces/a_42.json");
  for (const char* file : {"/tracesx/a.json", "/etc/passwd", "../a.json", "/traces/../a.json", "x/../a.json", "proto://a", "file://a",
                           "/traces/a://b", ".."}) {
    const Result<std::string> path = confined_trace_path({.log_file = file}, "/traces", 42);
    ASSERT_FALSE(path.has_value()) << file;
    EXPECT_EQ(path.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(path.error().message, HasSubstr("allowed is a file in /traces")) << file;
  }
}

TEST(ActivityKindTest, NamesAndNumbersAreThoseOfTraces) {
  EXPECT_EQ(to_string(ActivityKind::kernel), "kernel");
  EXPECT_EQ(static_cast<int>(ActivityKind::xpu_runtime), 21);
  EXPECT_EQ(static_cast<int>(ActivityKind::xpu_sync), 27);
  for (unsigned number = 0; number < kActivityKinds; ++number) {
    const auto kind = static_cast<ActivityKind>(number);
    EXPECT_EQ(find_activity_kind(to_string(kind)), kind);
    EXPECT_TRUE(!default_activity_kinds().contains(kind) || has_producer(kind)) << to_string(kind);
  }
  EXPECT_EQ(find_activity_kind("Kernel"), std::nullopt);
  EXPECT_EQ(find_activity_kind(""), std::nullopt);
  EXPECT_FALSE(default_activity_kinds().contains(ActivityKind::xpu_driver));
}

TEST(ProfilerConfigTest, FiltersAreKeysOfOurOwn) {
  const Result<ParsedConfig> parsed = parse_config(
      "XPU_FILTER_KERNELS=^(gemm|conv)_.*=$\nXPU_FILTER_LEAST_DURATION_NSECS=2500\nXPU_FILTER_QUEUES= 1, 3 \nXPU_KEEP_LATE_COMMANDS=no");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->warnings.empty());
  EXPECT_EQ(parsed->config.filter.kernels, "^(gemm|conv)_.*=$");
  EXPECT_EQ(parsed->config.filter.least_duration.count(), 2'500);
  EXPECT_EQ(parsed->config.filter.queues, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_FALSE(parsed->config.keeps_late_commands);
  EXPECT_TRUE(Config().filter.is_empty());
  EXPECT_TRUE(Config().keeps_late_commands);
  for (const char* refused : {"XPU_FILTER_KERNELS=gemm[", "XPU_FILTER_LEAST_DURATION_NSECS=-1", "XPU_FILTER_QUEUES=0",
                              "XPU_FILTER_QUEUES=1,x", "XPU_KEEP_LATE_COMMANDS=perhaps"}) {
    const Result<ParsedConfig> result = parse_config(refused);
    ASSERT_FALSE(result) << refused;
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(result.error().message.find(std::string(refused).substr(0, std::string(refused).find('='))), std::string::npos) << refused;
  }
}

TEST(ProfilerConfigTest, AMemorySnapshotLiesWhereTheTraceWould) {
  const auto path = [](const char* log_file, bool is_confined) -> std::string {
    const Result<std::string> found = memory_snapshot_path({.log_file = log_file}, "/traces", is_confined, 42);
    return found ? *found : to_string(found.error().code);
  };
  for (const bool is_confined : {false, true}) {
    EXPECT_EQ(path("", is_confined), "/traces/memory_snapshot_42.pickle");
    EXPECT_EQ(path("/traces/x/a.json", is_confined), "/traces/x/memory_snapshot_42.pickle");
    EXPECT_EQ(path("proto://a/b", is_confined), "invalid_argument");
  }
  EXPECT_EQ(path("file:///x/a.json", false), "/x/memory_snapshot_42.pickle");
  EXPECT_EQ(path("a.json", false), "memory_snapshot_42.pickle");
  EXPECT_EQ(path("a.json", true), "/traces/memory_snapshot_42.pickle");
  EXPECT_EQ(path("file:///traces/a.json", true), "invalid_argument");
  EXPECT_EQ(path("/elsewhere/a.json", true), "invalid_argument");
  EXPECT_EQ(path("../a.json", true), "invalid_argument");
}

}  // namespace
}  // namespace xpu::profiler
