#include "xpu/profiler/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "profiler/expression.hpp"
#include "xpu/base/text.hpp"
#include "xpu/profiler/outputs.hpp"

namespace xpu::profiler {
namespace {

constexpr std::uint32_t kMostNumber = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostAgeMs = 10'000;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\v\f\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string_view> list_of(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (const std::string_view item = trimmed(text.substr(0, end)); !item.empty()) items.push_back(item);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

// --- Values: each returns what is allowed where the text is nothing of it, and "" where it was read ---

constexpr std::string_view kAllowedNumber = "a whole number from 0 to 2147483647";

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_small_number(std::string_view text, std::uint32_t& number) { return read_number(text, number) && number <= kMostNumber; }

template <auto kField>
std::string_view read_whole(Config& config, std::string_view text) {
  std::uint32_t number = 0;
  if (!read_small_number(text, number)) return kAllowedNumber;
  config.*kField = number;
  return {};
}

template <auto kField, bool kZeroIsNothing = false>
std::string_view read_whole_or_nothing(Config& config, std::string_view text) {
  (config.*kField).reset();
  if (text == "-1") return {};
  std::uint32_t number = 0;
  if (!read_small_number(text, number)) return "a whole number from 0 to 2147483647, or -1 for none";
  if (number != 0 || !kZeroIsNothing) config.*kField = number;
  return {};
}

template <auto kField, typename Unit>
std::string_view read_duration(Config& config, std::string_view text) {
  std::uint32_t number = 0;
  if (!read_small_number(text, number)) return kAllowedNumber;
  config.*kField = Unit(number);
  return {};
}

template <auto kField>
std::string_view read_flag(Config& config, std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  constexpr std::array<std::string_view, 5> yes = {"y", "yes", "t", "true", "1"}, no = {"n", "no", "f", "false", "0"};
  const bool is_yes = std::find(yes.begin(), yes.end(), lower) != yes.end();
  if (!is_yes && std::find(no.begin(), no.end(), lower) == no.end()) return "one of y, yes, t, true, 1, n, no, f, false and 0";
  config.*kField = is_yes;
  return {};
}

template <auto kField>
std::string_view read_text(Config& config, std::string_view text) {
  config.*kField = text;
  return {};
}

template <auto kField>
std::string_view read_list(Config& config, std::string_view text) {
  const std::vector<std::string_view> items = list_of(text);
  (config.*kField).assign(items.begin(), items.end());
  return {};
}

std::string_view read_start_time(Config& config, std::string_view text) {
  std::int64_t unix_ms = 0;
  if (!read_number(text, unix_ms) || unix_ms < 0) return "a time in milliseconds since 1970, or 0 for as soon as possible";
  config.start_time_unix_ms = unix_ms == 0 ? std::nullopt : std::optional(unix_ms);
  return {};
}

std::string_view read_kinds(Config& config, std::string_view text) {
  static const std::string allowed = [] {
    std::vector<std::string_view> names;
    for (unsigned number = 0; number < kActivityKinds; ++number) names.push_back(to_string(static_cast<ActivityKind>(number)));
    return fmt::format("a list, separated by commas, of at least one of {}", fmt::join(names, ", "));
  }();
  ActivityKinds kinds;
  for (const std::string_view name : list_of(text)) {
    const std::optional<ActivityKind> kind = find_activity_kind(name);
    if (!kind) return allowed;
    kinds.insert(*kind);
  }
  if (kinds.is_empty()) return allowed;
  config.kinds = kinds;
  return {};
}

std::string_view read_kernels(Config& config, std::string_view text) {
  config.filter.kernels = text;
  return {};
}

std::string_view read_least_duration(Config& config, std::string_view text) {
  std::uint32_t nanoseconds = 0;
  if (!read_small_number(text, nanoseconds)) return kAllowedNumber;
  config.filter.least_duration = std::chrono::nanoseconds(nanoseconds);
  return {};
}

std::string_view read_queues(Config& config, std::string_view text) {
  config.filter.queues.clear();
  for (const std::string_view item : list_of(text)) {
    std::uint32_t queue = 0;
    if (!read_small_number(item, queue) || queue == 0) return "a list, separated by commas, of whole numbers from 1 to 2147483647";
    config.filter.queues.push_back(queue);
  }
  return {};
}

std::string_view read_nothing(Config&, std::string_view) { return {}; }

// --- Keys ---

struct Key {
  std::string_view name;
  std::string_view (*read)(Config& config, std::string_view text);
};

constexpr std::array<Key, 41> kKeys = {{
    {"ACTIVITIES_ENABLED", read_flag<&Config::is_enabled>},
    {"ACTIVITY_TYPES", read_kinds},
    {"ACTIVITIES_LOG_FILE", read_text<&Config::log_file>},
    {"ACTIVITIES_DURATION_SECS", read_duration<&Config::duration, std::chrono::seconds>},
    {"ACTIVITIES_DURATION_MSECS", read_duration<&Config::duration, std::chrono::milliseconds>},
    {"ACTIVITIES_WARMUP_PERIOD_SECS", read_duration<&Config::warmup_duration, std::chrono::seconds>},
    {"ACTIVITIES_ITERATIONS", read_whole<&Config::iterations>},
    {"ACTIVITIES_WARMUP_ITERATIONS", read_whole<&Config::warmup_iterations>},
    {"ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB", read_whole<&Config::max_buffer_mib>},
    {"ACTIVITIES_DISPLAY_CUDA_SYNC_WAIT_EVENTS", read_flag<&Config::shows_stream_waits>},
    {"CUPTI_PER_THREAD_BUFFER_ENABLED", read_flag<&Config::has_buffer_per_thread>},
    {"CUPTI_PM_SAMPLING_METRICS", read_nothing},
    {"CUPTI_PM_SAMPLING_DEVICE_ID", read_nothing},
    {"PROFILE_MEMORY", read_flag<&Config::takes_memory_snapshot>},
    {"PROFILE_MEMORY_DURATION_MSECS", read_duration<&Config::memory_snapshot_duration, std::chrono::milliseconds>},
    {"PROFILE_REPORT_INPUT_SHAPES", read_flag<&Config::with_shapes>},
    {"CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION", read_flag<&Config::with_shapes>},
    {"PROFILE_PROFILE_MEMORY", read_flag<&Config::with_memory>},
    {"PROFILE_WITH_STACK", read_flag<&Config::with_stack>},
    {"PYTHON_STACK_TRACE", read_flag<&Config::with_stack>},
    {"PROFILE_WITH_FLOPS", read_flag<&Config::with_flops>},
    {"PROFILE_WITH_MODULES", read_flag<&Config::with_modules>},
    {"PROFILE_START_TIME", read_start_time},
    {"PROFILE_START_ITERATION", read_whole_or_nothing<&Config::start_iteration>},
    {"PROFILE_START_ITERATION_ROUNDUP", read_whole_or_nothing<&Config::iteration_multiple, true>},
    {"REQUEST_TRACE_ID", read_text<&Config::trace_id>},
    {"REQUEST_GROUP_TRACE_ID", read_text<&Config::group_trace_id>},
    {"ENABLE_IPC_FABRIC", read_flag<&Config::listens_to_daemon>},
    {"ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS", read_duration<&Config::daemon_interval, std::chrono::seconds>},
    {"VERBOSE_LOG_LEVEL", read_whole_or_nothing<&Config::verbose_log_level>},
    {"VERBOSE_LOG_MODULES", read_list<&Config::verbose_log_modules>},
    {"ROCTRACER_MAX_EVENTS", read_nothing},
    {"CUSTOM_CONFIG", read_text<&Config::custom>},
    {"XPUPTI_PROFILER_METRICS", read_list<&Config::scope_metrics>},
    {"XPUPTI_PROFILER_ENABLE_PER_KERNEL", read_flag<&Config::scopes_are_kernels>},
    {"XPUPTI_PROFILER_MAX_SCOPES", read_whole_or_nothing<&Config::max_scopes>},
    {"XPUPTI_PROFILER_DEVICES", read_nothing},
    {"XPU_KEEP_LATE_COMMANDS", read_flag<&Config::keeps_late_commands>},
    {"XPU_FILTER_KERNELS", read_kernels},
    {"XPU_FILTER_LEAST_DURATION_NSECS", read_least_duration},
    {"XPU_FILTER_QUEUES", read_queues},
}};

const Key* find_key(std::string_view name) {
  const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& known) { return known.name == name; });
  return key == kKeys.end() ? nullptr : &*key;
}

template <typename... Arguments>
Error refused(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return {ErrorCode::invalid_argument, fmt::format(format, std::forward<Arguments>(arguments)...)};
}

class Parser {
 public:
  explicit Parser(const Config& base) : parsed_{base, {}} {}

  Result<ParsedConfig> parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++number_;
      XPU_TRY(read_line(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    XPU_TRY(check_config(parsed_.config));
    return std::move(parsed_);
  }

 private:
  Result<> read_line(std::string_view line) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) return {};
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return refused("line {} is '{}'; allowed is KEY=VALUE", number_, printable(line));
    const std::string_view name = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    const Key* const key = find_key(name);
    if (key == nullptr) {
      warn("'{}' is no key of a profiler's configuration", printable(name));
      return {};
    }
    if (const std::string_view allowed = key->read(parsed_.config, value); !allowed.empty()) {
      return refused("line {} gives {} the value '{}'; allowed is {}", number_, name, printable(value), allowed);
    }
    std::size_t& line_before = lines_[static_cast<std::size_t>(key - kKeys.data())];
    if (line_before != 0) warn("{} is given again, so that line {} has no effect", name, line_before);
    line_before = number_;
    if (key->read == read_nothing) warn("{} has no effect on an XPU", name);
    if (key->read == read_kinds) warn_of_kinds();
    return {};
  }

  void warn_of_kinds() {
    for (unsigned number = 0; number < kActivityKinds; ++number) {
      const auto kind = static_cast<ActivityKind>(number);
      if (parsed_.config.kinds.contains(kind) && !has_producer(kind)) warn("nothing on an XPU is of the kind {}", to_string(kind));
    }
  }
  template <typename... Arguments>
  void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    parsed_.warnings.push_back(fmt::format("line {}: {}", number_, fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  ParsedConfig parsed_;
  std::size_t number_ = 0;
  std::array<std::size_t, kKeys.size()> lines_ = {};  // that gave each key; 0 = none
};

/// Wherever it stands: what comes from outside the process gets no benefit of the doubt.
bool may_have_scheme(std::string_view path) { return path.find("://") != std::string_view::npos; }

}  // namespace

Result<ParsedConfig> parse_config(std::string_view text, const Config& base) { return Parser(base).parse(text); }

Result<> check_config(const Config& config) {
  if (config.kinds.is_empty()) return refused("ACTIVITY_TYPES names no kind of activity; allowed is at least one");
  if (config.iterations == 0 && config.duration.count() <= 0) {
    return refused("ACTIVITIES_DURATION_MSECS is {}; allowed is at least 1, or a number of ACTIVITIES_ITERATIONS", config.duration.count());
  }
  if (config.warmup_duration.count() < 0) {
    return refused("ACTIVITIES_WARMUP_PERIOD_SECS is {}; allowed is 0 or more", config.warmup_duration.count());
  }
  if (config.daemon_interval.count() < 1) {
    return refused("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS is {}; allowed is at least 1", config.daemon_interval.count());
  }
  if (config.max_buffer_mib == 0) return refused("ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB is 0; allowed is at least 1");
  if (config.filter.least_duration.count() < 0) {
    return refused("XPU_FILTER_LEAST_DURATION_NSECS is {}; allowed is 0 or more", config.filter.least_duration.count());
  }
  if (!config.filter.kernels.empty()) {
    if (const auto expression = Expression::compile(config.filter.kernels); !expression) {
      return refused("XPU_FILTER_KERNELS: {}", printable(expression.error().message));
    }
  }
  if (config.takes_memory_snapshot && config.memory_snapshot_duration.count() <= 0) {
    return refused("PROFILE_MEMORY_DURATION_MSECS is {}; allowed is at least 1", config.memory_snapshot_duration.count());
  }
  return {};
}

Result<> check_start_time(const Config& config, std::int64_t now_unix_ms) {
  if (!config.start_time_unix_ms || now_unix_ms - *config.start_time_unix_ms <= kMostAgeMs) return {};
  return refused("PROFILE_START_TIME is {} ms ago; allowed is at most {}", now_unix_ms - *config.start_time_unix_ms, kMostAgeMs);
}

std::string trace_path(const Config& config, const std::string& folder, std::int64_t pid) {
  if (!output_scheme(config.log_file).empty()) return config.log_file;
  std::string path(without_file_scheme(config.log_file));
  if (path.empty()) path = (std::filesystem::path(folder) / "xpu_activities.json").string();
  std::size_t position = path.size();
  for (const std::string_view suffix : {".pt.trace.json", ".json"}) {
    if (!path.ends_with(suffix)) continue;
    position = path.size() - suffix.size();
    break;
  }
  return path.insert(position, fmt::format("_{}", pid));
}

Result<std::string> confined_trace_path(const Config& config, const std::string& folder, std::int64_t pid) {
  const std::filesystem::path asked(config.log_file);
  const bool climbs = std::find(asked.begin(), asked.end(), "..") != asked.end();
  const std::filesystem::path file = asked.is_absolute() ? asked : std::filesystem::path(folder) / asked;
  const std::string inside = (std::filesystem::path(folder) / "").lexically_normal().string();
  if (may_have_scheme(config.log_file) || climbs || !file.lexically_normal().string().starts_with(inside)) {
    return refused("ACTIVITIES_LOG_FILE is '{}'; allowed is a file in {}", printable(config.log_file), printable(folder));
  }
  Config confined = config;
  if (!config.log_file.empty()) confined.log_file = file.lexically_normal().string();
  return trace_path(confined, folder, pid);
}

Result<std::string> memory_snapshot_path(const Config& config, const std::string& folder, bool is_confined, std::int64_t pid) {
  if (!output_scheme(config.log_file).empty()) {
    return refused("ACTIVITIES_LOG_FILE is '{}'; allowed for PROFILE_MEMORY is a file", printable(config.log_file));
  }
  std::string trace;
  if (is_confined) {
    XPU_TRY_ASSIGN(trace, confined_trace_path(config, folder, pid));
  } else {
    trace = trace_path(config, folder, pid);
  }
  return (std::filesystem::path(trace).parent_path() / fmt::format("memory_snapshot_{}.pickle", pid)).string();
}

}  // namespace xpu::profiler
