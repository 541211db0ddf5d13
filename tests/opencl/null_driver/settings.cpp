#include "null_driver/settings.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace xpu::null_driver {
namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : fallback;
}

std::uint32_t count_from_environment(const char* name) {
  constexpr std::uint64_t kMost = 64;
  const std::uint64_t count = number_from_environment(name, 1);
  return static_cast<std::uint32_t>(count < 1 ? 1 : count > kMost ? kMost : count);
}

/// True if `word` is `key`; `value` is then what follows the "=", or an empty text.
bool matches(std::string_view word, std::string_view key, std::string_view& value) {
  if (word.substr(0, key.size()) != key) return false;
  value = word.substr(key.size());
  if (value.empty()) return true;
  if (value.front() != '=') return false;
  value.remove_prefix(1);
  return true;
}

/// `text` is not terminated, but lies in a longer text in which a comma or the terminator ends the number.
std::uint64_t every_nth(std::string_view text) { return text.empty() ? 1 : std::strtoull(text.data(), nullptr, 0); }

void apply_fault(Faults& faults, std::string_view word) {
  std::string_view value;
  if (matches(word, "no_profiling", value)) {
    faults.no_profiling = true;
  } else if (matches(word, "zero_times", value)) {
    faults.zero_times = true;
  } else if (matches(word, "backward", value)) {
    faults.backward = true;
  } else if (matches(word, "no_timer", value)) {
    faults.no_timer = true;
  } else if (matches(word, "dead_in_children", value)) {
    faults.dead_in_children = true;
  } else if (matches(word, "refuse_profiling_queues", value)) {
    faults.refuse_profiling_queues = true;
  } else if (matches(word, "fail_enqueue", value)) {
    faults.fail_enqueue = every_nth(value);
  } else if (matches(word, "fail_command", value)) {
    faults.fail_command = every_nth(value);
  } else if (matches(word, "null_event", value)) {
    faults.null_event = every_nth(value);
  } else if (matches(word, "late", value)) {
    faults.late = every_nth(value);
  } else if (matches(word, "step", value)) {
    char* end = nullptr;
    faults.step_ns = value.empty() ? 0 : std::strtoll(value.data(), &end, 0);
    faults.step_after_commands = end != nullptr && *end == '@' ? std::strtoull(end + 1, nullptr, 0) : 1;
  } else {
    std::fprintf(stderr, "null driver: XPU_NULL_FAULTS knows no \"%.*s\"\n", static_cast<int>(word.size()), word.data());
  }
}

Settings read_settings() {
  Settings result;
  result.duration_ns = number_from_environment("XPU_NULL_DURATION_NS", 0);
  result.enqueue_ns = number_from_environment("XPU_NULL_ENQUEUE_NS", 0);
  result.timer_bracket_ns = number_from_environment("XPU_NULL_TIMER_BRACKET_NS", 0);
  result.platform_count = count_from_environment("XPU_NULL_PLATFORMS");
  result.device_count = count_from_environment("XPU_NULL_DEVICES");
  const char* name = std::getenv("XPU_NULL_PLATFORM_NAME");
  result.platform_name = name != nullptr && *name != '\0' ? name : "xpu null platform";
  const char* calls = std::getenv("XPU_NULL_CALLS");
  result.calls_path = calls != nullptr && *calls != '\0' ? calls : nullptr;
  result.faults = parse_faults(std::getenv("XPU_NULL_FAULTS"));
  result.enqueue_faults = result.faults.any_on_enqueue();
  result.process = getpid();
  result.clock = clock_parameters_from_environment();
  result.clock.step_ns = result.faults.step_ns;
  return result;
}

}  // namespace

Faults parse_faults(const char* text) {
  Faults faults;
  std::string_view rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (!word.empty()) apply_fault(faults, word);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return faults;
}

const Settings settings = read_settings();

void hang_in_child() noexcept {
  while (settings.faults.dead_in_children && getpid() != settings.process) pause();
}

}  // namespace xpu::null_driver
