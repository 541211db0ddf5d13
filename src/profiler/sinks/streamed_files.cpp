#include "profiler/sinks/streamed_files.hpp"

#include <unistd.h>

#include <string_view>
#include <utility>

namespace xpu::profiler {
namespace {

/// What came after `before`.
LinkSummary difference(const LinkSummary& until, const LinkSummary& before) {
  LinkSummary part;
  for (const auto figure : {&LinkSummary::commands, &LinkSummary::refused, &LinkSummary::linked, &LinkSummary::untimed,
                            &LinkSummary::unplaced, &LinkSummary::pending, &LinkSummary::lost, &LinkSummary::orphans,
                            &LinkSummary::duplicates, &LinkSummary::discarded_cpu_traces, &LinkSummary::discarded_cpu_operations}) {
    part.*figure = until.*figure - before.*figure;
  }
  return part;
}

void add(ExportSummary& sum, const ExportSummary& part) {
  for (const auto figure : {&ExportSummary::bytes, &ExportSummary::slices, &ExportSummary::kernels, &ExportSummary::flows,
                            &ExportSummary::overlapping, &ExportSummary::untimed}) {
    sum.*figure += part.*figure;
  }
}

}  // namespace

Result<std::unique_ptr<StreamedFiles>> StreamedFiles::create(const ExportOptions& options, std::uint64_t split_bytes) {
  std::unique_ptr<StreamedFiles> files(new StreamedFiles(options, split_bytes));
  XPU_TRY(files->open_next());
  return files;
}

/// trace.json.gz is trace.0.json.gz, trace.1.json.gz, …
std::string StreamedFiles::next_path() const {
  if (split_bytes_ == 0) return options_.path;
  const std::string_view path = options_.path;
  std::size_t end = path.size();
  for (const std::string_view ending : {".gz", ".json", ".pftrace"}) {
    if (path.substr(0, end).ends_with(ending)) end -= ending.size();
  }
  return std::string(path.substr(0, end)) + '.' + std::to_string(files_.size()) + std::string(path.substr(end));
}

Result<> StreamedFiles::open_next() {
  ExportOptions options = options_;
  options.path = next_path();
  XPU_TRY_ASSIGN(file_, FileOutput::create(options.path));
  file_->keep_part(true);
  named_ = make_sink_as_named([this](std::string_view piece) { return file_->write(piece); }, options);
  return {};
}

void StreamedFiles::begin(const SessionInfo& info) {
  info_ = info;
  sink().begin(info);
}

Result<> StreamedFiles::flush(const LinkSummary& so_far) {
  XPU_TRY(sink().flush(so_far));
  XPU_TRY(file_->flush());
  if (split_bytes_ == 0 || file_->bytes() < split_bytes_) return {};
  XPU_TRY(close(so_far));
  XPU_TRY(open_next());
  sink().begin(info_);
  return {};
}

Result<> StreamedFiles::end(const LinkSummary& summary) { return close(summary); }

Result<> StreamedFiles::close(const LinkSummary& so_far) {
  XPU_TRY(sink().end(difference(so_far, before_)));
  const std::string path = next_path();
  ExportSummary written = *named_.summary;
  XPU_TRY_ASSIGN(written.bytes, file_->finish());
  add(summary_, written);
  before_ = so_far;
  files_.push_back(path);
  summary_.path = files_.front();
  return {};
}

void StreamedFiles::remove() {
  if (file_) file_->keep_part(false);
  file_.reset();
  for (const std::string& path : files_) ::unlink(path.c_str());
}

}  // namespace xpu::profiler
