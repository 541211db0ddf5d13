#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/pause_schedule.hpp"
#include "xpu/profiler/export.hpp"
#include "xpu/profiler/report.hpp"
#include "xpu/trace/recording/layout.hpp"

/// What each command does, apart from how it is typed (command_line.hpp). Each returns the exit code and says itself what went wrong.
namespace xpu::cli {

struct RecordRequest {
  std::optional<std::string> output;  ///< As given with -o.
  bool overwrite = false;
  trace::RecordMode mode = trace::RecordMode::standard;
  std::string kernels;
  PauseSchedule::Options schedule;
  std::optional<std::uint64_t> max_live_bytes;
  std::vector<std::string> program;  ///< Not empty.
};
int record(const RecordRequest& request);

enum class Format : std::uint8_t { text, json, csv };

struct ReportRequest {
  std::string name;  ///< Empty: the newest recording.
  profiler::ReportOptions options;
  Format format = Format::text;
  profiler::ReportTable table = profiler::ReportTable::kernels;  ///< For `Format::csv`.
};
int report(const ReportRequest& request);

enum class ExportFormat : std::uint8_t { chrome, perfetto };

struct ExportRequest {
  std::string name;
  ExportFormat format = ExportFormat::chrome;
  std::optional<std::string> output;
  bool overwrite = false;
  bool device_only = false;
  profiler::Compatibility compatibility = profiler::Compatibility::none;
};
int export_recording(const ExportRequest& request);

struct CheckRequest {
  std::string name;
  Format format = Format::text;
};
int check(const CheckRequest& request);

struct InfoRequest {
  std::optional<int> device;  ///< As given; not negative.
  bool open_devices = false;
  Format format = Format::text;
};
int info(const InfoRequest& request);

}  // namespace xpu::cli
