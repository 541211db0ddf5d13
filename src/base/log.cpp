#include "base/log.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/mutex.hpp"

namespace xpu::base {
namespace {

constexpr std::size_t kMaxComponents = 16;
constexpr std::size_t kMaxComponentName = 24;

struct ComponentLevel {
  char name[kMaxComponentName] = {};
  LogLevel level = LogLevel::warn;
};

struct Levels {
  LogLevel common = LogLevel::warn;
  std::size_t component_count = 0;
  ComponentLevel components[kMaxComponents];
};

constinit Mutex g_levels_mutex;
constinit Levels g_levels XPU_GUARDED_BY(g_levels_mutex);
constinit std::atomic<bool> g_levels_known{false};
/// The most talkative level of all, so that a line that nobody wants costs one load.
constinit std::atomic<LogLevel> g_loudest{LogLevel::warn};
constinit Mutex g_sink_mutex;
constinit LogSink g_sink XPU_GUARDED_BY(g_sink_mutex) = nullptr;

std::optional<LogLevel> level_of(std::string_view name) {
  if (name == "off") return LogLevel::off;
  if (name == "error") return LogLevel::error;
  if (name == "warn") return LogLevel::warn;
  if (name == "info") return LogLevel::info;
  if (name == "debug") return LogLevel::debug;
  if (name == "trace") return LogLevel::trace;
  return std::nullopt;
}

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warn: return "warning";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
    case LogLevel::trace: return "trace";
    case LogLevel::off: break;
  }
  return "off";
}

std::optional<Levels> parse_levels(std::string_view text) {
  Levels levels;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (part.empty()) continue;
    const std::size_t colon = part.find(':');
    // "trace:debug" names a component; a lone "trace" is the level.
    const std::optional<LogLevel> level = level_of(colon == std::string_view::npos ? part : part.substr(colon + 1));
    if (!level) return std::nullopt;
    if (colon == std::string_view::npos) {
      levels.common = *level;
      continue;
    }
    if (colon == 0 || colon >= kMaxComponentName || levels.component_count == kMaxComponents) return std::nullopt;
    ComponentLevel& component = levels.components[levels.component_count++];
    std::memcpy(component.name, part.data(), colon);
    component.level = *level;
  }
  return levels;
}

void install(const Levels& levels) {
  LogLevel loudest = levels.common;
  for (std::size_t i = 0; i < levels.component_count; ++i) {
    if (levels.components[i].level > loudest) loudest = levels.components[i].level;
  }
  const MutexLock lock(g_levels_mutex);
  g_levels = levels;
  g_loudest.store(loudest, std::memory_order_relaxed);
  g_levels_known.store(true, std::memory_order_release);
}

void read_environment() {
  const char* text = secure_getenv("XPU_LOG");
  const std::optional<Levels> levels = parse_levels(text == nullptr ? "" : text);
  install(levels.value_or(Levels{}));
  if (!levels) XPU_LOG_WARN("base", "XPU_LOG={} is not understood; it must be a comma list of LEVEL or COMPONENT:LEVEL", text);
}

void write_to_standard_error(const char* line, std::size_t bytes) {
  // One write, so that lines of several threads and processes do not mix.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, bytes);
}

}  // namespace

void set_log_sink(LogSink sink) noexcept {
  const MutexLock lock(g_sink_mutex);
  g_sink = sink;
}

bool set_log_levels(std::string_view text) noexcept {
  const std::optional<Levels> levels = parse_levels(text);
  if (levels) install(*levels);
  return levels.has_value();
}

bool log_enabled(const char* component, LogLevel level) noexcept {
  if (!g_levels_known.load(std::memory_order_acquire)) read_environment();
  if (level > g_loudest.load(std::memory_order_relaxed)) return false;
  const MutexLock lock(g_levels_mutex);
  for (std::size_t i = 0; i < g_levels.component_count; ++i) {
    if (std::strcmp(g_levels.components[i].name, component) == 0) return level <= g_levels.components[i].level;
  }
  return level <= g_levels.common;
}

namespace internal {

void write_log(const char* component, LogLevel level, fmt::string_view format, fmt::format_args arguments) noexcept {
  // A fixed buffer: a line about memory that ran out must not need any. What does not fit is cut.
  char line[1024];
  constexpr std::size_t room = sizeof line - 1;
  std::size_t used = 0;
  try {
    used = fmt::format_to_n(line, room, "xpu: {}: {}: ", name_of(level), component).size;
    fmt::memory_buffer text;
    fmt::vformat_to(std::back_inserter(text), format, arguments);
    const std::size_t copied = text.size() < room - used ? text.size() : room - used;
    std::memcpy(line + used, text.data(), copied);
    used += copied;
  } catch (...) {
    if (used > room) used = room;
  }
  line[used] = '\0';
  const int saved_errno = errno;
  // write() is a cancellation point, and the caller may be a foreign program's thread.
  int cancel_state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  {
    const MutexLock lock(g_sink_mutex);
    if (g_sink != nullptr) {
      g_sink(level, component, line);
    } else {
      line[used] = '\n';
      write_to_standard_error(line, used + 1);
    }
  }
  pthread_setcancelstate(cancel_state, nullptr);
  errno = saved_errno;
}

}  // namespace internal
}  // namespace xpu::base
