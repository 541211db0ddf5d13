#include "trace/recording/recorder_options.hpp"

#include <fmt/format.h>
#include <regex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>

#include "xpu/base/clock.hpp"
#include "xpu/base/version.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace xpu::trace {
namespace {

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_recorded_variable(std::string_view name) noexcept {
  for (const std::string_view prefix : {"XPU_", "OPENCL_", "OCL_ICD_", "ONEAPI_", "POCL_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

Manifest describe_recording(const RecorderOptions& options) {
  Manifest manifest;
  manifest.start_monotonic_ns = now_ns(ClockDomain::monotonic);
  manifest.start_raw_ns = now_ns(ClockDomain::monotonic_raw);
  manifest.start_realtime_ns = now_ns(ClockDomain::realtime);
  manifest.argv = options.argv;
  if (!options.argv.empty()) manifest.program = options.argv.front();
  char text[4096];
  if (::getcwd(text, sizeof text) != nullptr) manifest.working_directory = text;
  if (::gethostname(text, sizeof text) == 0) {
    text[sizeof text - 1] = '\0';
    manifest.host = text;
  }
  manifest.boot_id = read_line("/proc/sys/kernel/random/boot_id");
  manifest.xpu_version = version();
  struct utsname system{};
  if (::uname(&system) == 0) manifest.system = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view entry = *variable;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !is_recorded_variable(entry)) continue;
    manifest.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  manifest.mode = options.mode;
  manifest.kernels = options.kernels;
  return manifest;
}

Result<> check_kernel_expression(const std::string& kernels) {
  if (kernels.empty()) return {};
  if (kernels.size() >= sizeof(OptionsBlock::kernels) || kernels.find('\0') != std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the expression for kernels has {} bytes, it must have fewer than {} and no zero byte", kernels.size(),
                             sizeof(OptionsBlock::kernels))};
  }
  regex_t compiled;
  const int status = ::regcomp(&compiled, kernels.c_str(), REG_EXTENDED | REG_NOSUB);
  if (status != 0) {
    char reason[256];
    ::regerror(status, &compiled, reason, sizeof reason);
    return Error{ErrorCode::invalid_argument, fmt::format("the expression for kernels \"{}\" is wrong: {}", kernels, reason), status};
  }
  ::regfree(&compiled);
  return {};
}

OptionsBlock options_block(const RecorderOptions& options) {
  OptionsBlock block{};
  block.magic = kOptionsMagic;
  block.format = kSegmentFormat;
  block.mode = static_cast<std::uint32_t>(options.mode);
  block.max_live_bytes = options.max_live_bytes;
  block.start_paused = options.start_paused ? 1 : 0;
  block.recorder_pid = static_cast<std::uint64_t>(::getpid());
  options.kernels.copy(block.kernels, sizeof block.kernels - 1);
  return block;
}

}  // namespace xpu::trace
