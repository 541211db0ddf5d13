#include "drivers/host/options.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/process.hpp"

namespace xpu::drivers::host {
namespace {

constexpr std::uint32_t kLeastDefaultThreads = 4;  // two kernels that wait for each other end on one processor, too
constexpr std::uint64_t kLeastMemoryBytes = std::uint64_t{1} << 20;

Error bad_value(const char* variable, std::string_view value, std::string_view allowed) {
  return {ErrorCode::invalid_argument, fmt::format("{}={} is not understood; allowed is {}", variable, value, allowed)};
}

Result<std::uint32_t> parse_count(const char* variable, std::string_view value, std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1 || number > most) {
    return bad_value(variable, value, fmt::format("a whole number from 1 to {}", most));
  }
  return number;
}

Result<std::uint64_t> parse_bytes(const char* variable, std::string_view value) {
  constexpr std::string_view allowed = "a number of bytes of at least 1M, with K, M or G for units of 1024, e.g. 512M";
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const std::string_view suffix = value.substr(static_cast<std::size_t>(end - value.data()));
  if (error != std::errc() || suffix.size() > 1) return bad_value(variable, value, allowed);
  unsigned shift = 0;
  if (!suffix.empty()) {
    switch (suffix[0]) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      default: return bad_value(variable, value, allowed);
    }
  }
  if (number > (UINT64_MAX >> shift) || (number << shift) < kLeastMemoryBytes) return bad_value(variable, value, allowed);
  return number << shift;
}

Result<Executor> parse_executor(const char* variable, std::string_view value) {
  if (value == "adaptive") return Executor::adaptive;
  if (value == "pool") return Executor::pool;
  if (value == "inline") return Executor::caller;
  return bad_value(variable, value, "adaptive, pool or inline");
}

std::uint32_t usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
  return static_cast<std::uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

/// Of the machine, or of the container in which the process is: beyond that it would be killed and not refused.
std::uint64_t usable_memory_bytes() {
  std::uint64_t usable = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t limit = 0;
    if (std::ifstream(path) >> limit && limit != 0) usable = std::min(usable, limit);  // "max" is no number
  }
  return usable;
}

}  // namespace

Result<Options> read_options(ReadVariable read) {
  Options options;
  const auto value_of = [read](const char* variable) -> std::string_view {
    const char* value = read(variable);
    return value == nullptr ? "" : value;
  };
  if (const auto value = value_of("XPU_HOST_DEVICES"); !value.empty()) {
    XPU_TRY_ASSIGN(options.devices, parse_count("XPU_HOST_DEVICES", value, kMostDevices));
  }
  if (const auto value = value_of("XPU_HOST_EXECUTOR"); !value.empty()) {
    XPU_TRY_ASSIGN(options.executor, parse_executor("XPU_HOST_EXECUTOR", value));
  }
  if (const auto value = value_of("XPU_HOST_MEMORY"); !value.empty()) {
    XPU_TRY_ASSIGN(options.memory_bytes, parse_bytes("XPU_HOST_MEMORY", value));
  }
  if (const auto value = value_of("XPU_HOST_THREADS"); !value.empty()) {
    XPU_TRY_ASSIGN(options.threads, parse_count("XPU_HOST_THREADS", value, kMostThreads));
  }
  return options;
}

Result<Options> read_options() {
  if (base::has_raised_privileges()) return Options{};
  return read_options([](const char* name) -> const char* { return std::getenv(name); });
}

Options with_defaults(Options options) {
  if (options.processors == 0) options.processors = usable_processors();
  if (options.threads == 0) options.threads = std::clamp(options.processors, kLeastDefaultThreads, kMostThreads);
  if (options.memory_bytes == 0) {
    options.memory_bytes = std::max(usable_memory_bytes() / 4 * 3 / options.devices, kLeastMemoryBytes);
  }
  return options;
}

}  // namespace xpu::drivers::host
