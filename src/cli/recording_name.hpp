#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "xpu/base/result.hpp"

/// How recordings are called, and which one is meant.
namespace xpu::cli {

/// The working directory, absolute.
Result<std::string> working_directory();

/// PROGRAM-YYYYMMDD-HHMMSS (local time) from a program's path, without folder and suffix.
std::string default_recording_name(std::string_view program, const std::tm& local_time);

/// Absolute path NAME.xpu for what was given with -o; `a` and `a.xpu` are the same. invalid_argument: empty, or a folder.
Result<std::string> output_path(const std::string& given, const std::string& folder);

/// Absolute path of a default name in `folder` that is not taken, with -2, -3, ... behind it if need be.
std::string unused_default_path(std::string_view program, const std::tm& local_time, const std::string& folder);

/// What was named, or the newest recording in the working directory when `name` is empty. not_found says what to do.
Result<std::string> find_recording(const std::string& name);

/// Relative to `folder` when it lies inside, else as it is: what a person can type.
std::string short_path(const std::string& path, const std::string& folder);

/// A recording's path without .xpu or .xpu.live.
std::string without_suffix(const std::string& path);

}  // namespace xpu::cli
