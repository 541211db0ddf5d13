#include "trace/recording/recording_path.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "trace/recording/compact_file.hpp"
#include "trace/recording/manifest.hpp"
#include "xpu/trace/recording/recording.hpp"

namespace xpu::trace {
namespace {

namespace fs = std::filesystem;

template <typename Visit>
void for_each_entry(const std::string& folder, std::error_code& error, Visit&& visit) {
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) visit(*entry);
}

}  // namespace

std::vector<std::string> recording_candidates(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  constexpr std::string_view live_suffix = kLiveSuffix, file_suffix = kFileSuffix;
  if (name.ends_with(live_suffix)) return {name, name.substr(0, name.size() - (live_suffix.size() - file_suffix.size()))};
  if (name.ends_with(file_suffix)) return {name, name + ".live"};
  return {name, name + kFileSuffix, name + kLiveSuffix};
}

bool is_live_folder(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  return fs::exists(path + "/" + kManifestName, error) || fs::exists(path + "/" + kCompactedName, error) || !segment_paths(path).empty();
}

std::vector<std::string> segment_paths(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for_each_entry(folder, error, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kSegmentSuffix) && !name.starts_with("spare-")) paths.push_back(entry.path().string());
  });
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::string> newest_recording(const std::string& folder) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  for_each_entry(folder, error, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().string();
    std::error_code ignored;
    const bool is_recording =
        name.ends_with(kFileSuffix) ? entry.is_regular_file(ignored) : name.ends_with(kLiveSuffix) && is_live_folder(name);
    if (is_recording) found.emplace_back(entry.last_write_time(ignored), name);
  });
  if (error) return Error{ErrorCode::not_found, "cannot list the folder " + folder + ": " + error.message(), error.value()};
  // A recording starts before it is last written to, and opening one reads all of it: once the best start is later than what is left was
  // written, the rest need not be opened.
  std::sort(found.begin(), found.end(), [](const auto& left, const auto& right) { return left.first > right.first; });
  std::string newest;
  std::uint64_t newest_start_ns = 0;
  for (const auto& [written, path] : found) {
    const auto written_ns = fs::file_time_type::clock::to_sys(written).time_since_epoch().count();
    if (!newest.empty() && written_ns >= 0 && static_cast<std::uint64_t>(written_ns) < newest_start_ns) break;
    const Result<Recording> recording = Recording::open(path);
    if (!recording) continue;
    const std::uint64_t start_ns = recording->manifest().start_realtime_ns;
    if (newest.empty() || start_ns > newest_start_ns) {
      newest = path;
      newest_start_ns = start_ns;
    }
  }
  if (newest.empty()) return Error{ErrorCode::not_found, "there is no recording in " + folder + " (looked for *.xpu and *.xpu.live)"};
  return newest;
}

}  // namespace xpu::trace
