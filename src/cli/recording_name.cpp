#include "cli/recording_name.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/text.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::cli {
namespace {

constexpr std::string_view kSuffix = ".xpu";
constexpr std::string_view kLiveSuffix = ".xpu.live";
/// A file name has at most 255 bytes; the date, a counter and ".xpu.live" follow.
constexpr std::size_t kLongestProgramName = 200;

/// A link that leads nowhere is something too.
bool exists(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0;
}

bool is_folder(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// The root ends with a slash already.
std::string as_prefix(const std::string& folder) { return folder.ends_with('/') ? folder : folder + "/"; }

}  // namespace

Result<std::string> working_directory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  if (error) return Error{ErrorCode::unavailable, fmt::format("the working directory is not usable: {}", error.message())};
  return path.string();
}

std::string default_recording_name(std::string_view program, const std::tm& local_time) {
  if (const auto slash = program.find_last_of('/'); slash != std::string_view::npos) program.remove_prefix(slash + 1);
  const std::string name(program.substr(0, kLongestProgramName));
  return fmt::format("{}-{:04}{:02}{:02}-{:02}{:02}{:02}", name.empty() ? "program" : name, local_time.tm_year + 1900,
                     local_time.tm_mon + 1, local_time.tm_mday, local_time.tm_hour, local_time.tm_min, local_time.tm_sec);
}

Result<std::string> output_path(const std::string& given, const std::string& folder) {
  if (given.empty() || given.ends_with('/'))
    return Error{ErrorCode::invalid_argument, fmt::format("-o {} does not name a file", shell_word(given))};
  std::string path = given.starts_with('/') ? given : as_prefix(folder) + given;
  if (!given.ends_with(kSuffix)) {
    if (is_folder(path))
      return Error{ErrorCode::invalid_argument,
                   fmt::format("-o {} is a folder; name a file in it, for example {}", shell_word(given), shell_word(given + "/a.xpu"))};
    path += kSuffix;
  }
  if (is_folder(path)) return Error{ErrorCode::invalid_argument, fmt::format("{} is a folder, not a recording", path)};
  return path;
}

std::string unused_default_path(std::string_view program, const std::tm& local_time, const std::string& folder) {
  const std::string base = as_prefix(folder) + default_recording_name(program, local_time);
  std::string name = base;
  for (int count = 2; exists(name + std::string(kSuffix)) || exists(name + std::string(kLiveSuffix)); ++count) {
    name = fmt::format("{}-{}", base, count);
  }
  return name + std::string(kSuffix);
}

Result<std::string> find_recording(const std::string& name) {
  if (!name.empty()) return name;
  XPU_TRY_ASSIGN(const std::string folder, working_directory());
  auto newest = trace::newest_recording(folder);
  if (newest || newest.error().code != ErrorCode::not_found) return newest;
  return Error{ErrorCode::not_found, fmt::format("there is no recording in {}; make one with: xpu record -- PROGRAM", folder)};
}

std::string short_path(const std::string& path, const std::string& folder) {
  const std::string prefix = as_prefix(folder);
  return path.starts_with(prefix) && path.size() > prefix.size() ? path.substr(prefix.size()) : path;
}

std::string without_suffix(const std::string& path) {
  std::string_view base = path;
  while (base.size() > 1 && base.ends_with('/')) base.remove_suffix(1);
  if (base.ends_with(kLiveSuffix)) return std::string(base.substr(0, base.size() - kLiveSuffix.size()));
  if (base.ends_with(kSuffix)) return std::string(base.substr(0, base.size() - kSuffix.size()));
  return std::string(base);
}

}  // namespace xpu::cli
