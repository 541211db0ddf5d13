#pragma once

#include <string>
#include <vector>

namespace xpu::trace {

inline constexpr const char* kFileSuffix = ".xpu";
inline constexpr const char* kLiveSuffix = ".xpu.live";
inline constexpr const char* kSegmentSuffix = ".seg";

/// The names under which a recording that a user calls `path` may lie, the likeliest first. A finished file goes before a folder of the
/// same name: the folder is removed a moment later.
std::vector<std::string> recording_candidates(const std::string& path);

/// Whether a folder holds what a live folder holds: a manifest, compacted records or segments.
bool is_live_folder(const std::string& path);

/// Paths of the segments of a live folder, sorted; spare ones, which no process has claimed, are left out.
std::vector<std::string> segment_paths(const std::string& folder);

}  // namespace xpu::trace
